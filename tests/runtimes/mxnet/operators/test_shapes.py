from __future__ import annotations

import numpy as np
import pytest

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.runtimes.mxnet.importer import to_onnx
from forecastle.runtimes.mxnet.symbol import SymbolBuilder
from runtimes.mxnet.converted import one_node, run

DATA = np.arange(2 * 6 * 4 * 5, dtype=np.float32).reshape(2, 6, 4, 5)


@pytest.mark.parametrize(
    ("codes", "shape"),
    [
        ((0, -1), (2, 120)),
        ((0, 0, 20), (2, 6, 20)),
        ((0, -2), (2, 6, 4, 5)),
        ((-3, 0, 0), (12, 4, 5)),
        ((0, -3, 0), (2, 24, 5)),
        ((0, -4, 2, -1, -2), (2, 2, 3, 4, 5)),
        ((0, -4, 2, 3, -3), (2, 2, 3, 20)),
        ((-1, 5), (48, 5)),
    ],
)
def test_reshape_codes_keep_merge_and_split_axes(codes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    answer = one_node("Reshape", DATA, shape=codes)
    assert answer.shape == shape
    assert (answer.ravel() == DATA.ravel()).all()


def test_reversed_codes_count_from_the_end() -> None:
    assert one_node("Reshape", DATA, shape=(-1, 0), reverse=True).shape == (48, 5)
    with pytest.raises(LoadFailed, match="reverse=True with the code -4"):
        one_node("Reshape", DATA, shape=(-4, 1, -1, 0, 0, 0), reverse=True)


@pytest.mark.parametrize("shape", [(-7,), (-4, 2), ()])
def test_codes_that_mean_nothing_are_a_bad_artifact(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadArtifact, match=r"the node 'node' \(Reshape\)"):
        one_node("Reshape", DATA, shape=shape)


def test_sizes_that_only_the_request_tells_are_computed_from_it() -> None:
    builder = SymbolBuilder()
    split = builder.op("Reshape", "r", [builder.variable("data")], shape=(0, 0, -4, -1, 2, -3))
    model = to_onnx(builder.write(split), {}, {"data": (None, None, None, 4, 5)})
    for batch, words, features in ((1, 3, 2), (4, 1, 6)):
        answer = run(model, {"data": np.zeros((batch, words, features, 4, 5))})["r_output"]
        assert answer.shape == (batch, words, features // 2, 2, 20)


def test_squeeze_never_drops_a_batch_of_one() -> None:
    assert one_node("squeeze", np.zeros((1, 3, 1, 1))).shape == (1, 3)


def test_axes_are_swapped_and_reversed() -> None:
    assert one_node("SwapAxis", DATA, dim1=1, dim2=3).shape == (2, 5, 4, 6)
    assert one_node("transpose", DATA).shape == (5, 4, 6, 2)
    with pytest.raises(BadArtifact, match="cannot be read"):
        one_node("SwapAxis", DATA, dim1=1, dim2=7)
