from __future__ import annotations

import numpy as np
import pytest

from forecastle.errors import BadArtifact, LoadFailed
from runtimes.mxnet.converted import Array, one_node

DATA = np.random.default_rng(1).normal(size=(3, 2, 4, 5)).astype(np.float32)
PARAMS: dict[str, Array] = {
    "arg:gamma": np.array([2, 3], np.float32),
    "arg:beta": np.array([0.5, -1], np.float32),
    "aux:mean": np.array([0.1, 0.2], np.float32),
    "aux:var": np.array([4, 9], np.float32),
}


def per_channel(name: str) -> Array:
    return PARAMS[name].reshape(1, 2, 1, 1)


@pytest.mark.parametrize("fix_gamma", [True, False])
def test_batch_norm_scales_by_gamma_unless_it_is_fixed_to_one(fix_gamma: bool) -> None:
    normal = (DATA - per_channel("aux:mean")) / np.sqrt(per_channel("aux:var") + 1e-3)
    expected = normal * (1 if fix_gamma else per_channel("arg:gamma")) + per_channel("arg:beta")
    answer = one_node("BatchNorm", DATA, PARAMS, fix_gamma=fix_gamma)
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-6)


def test_gamma_is_fixed_by_default() -> None:
    assert (one_node("BatchNorm", DATA, PARAMS) == one_node("BatchNorm", DATA, PARAMS, fix_gamma=True)).all()


def test_batch_norm_along_another_axis_is_the_same_numbers_elsewhere() -> None:
    last = one_node("BatchNorm", DATA.transpose(0, 2, 3, 1), PARAMS, axis=3, fix_gamma=False)
    first = one_node("BatchNorm", DATA, PARAMS, fix_gamma=False)
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), first, rtol=1e-5, atol=1e-6)


def test_parameters_for_another_number_of_channels_are_refused() -> None:
    with pytest.raises(BadArtifact, match="its data has 4 channels, where its moving_mean has 2"):
        one_node("BatchNorm", DATA.transpose(0, 2, 1, 3), PARAMS)


@pytest.mark.parametrize(("mode", "axes"), [("instance", (1, 2, 3)), ("channel", (1,)), ("spatial", (2, 3))])
def test_l2_normalization_gives_unit_length_over_its_axes(mode: str, axes: tuple[int, ...]) -> None:
    answer = one_node("L2Normalization", DATA, mode=mode)
    np.testing.assert_allclose((answer**2).sum(axes), 1, rtol=1e-5)


def test_local_response_norm_divides_alpha_by_the_neighbourhood() -> None:
    squares = np.pad(DATA**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    around = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    expected = DATA / (2 + 0.3 / 3 * around) ** 0.75
    np.testing.assert_allclose(one_node("LRN", DATA, nsize=3, alpha=0.3), expected, rtol=1e-5)


def test_a_layer_norm_over_another_axis_is_refused() -> None:
    with pytest.raises(LoadFailed, match=r"axis=1 \(node 'node', LayerNorm\)"):
        one_node("LayerNorm", DATA, {"arg:g": np.ones(2), "arg:b": np.ones(2)}, axis=1)
