from __future__ import annotations

import numpy as np
import pytest

from forecastle.errors import BadArtifact, LoadFailed
from runtimes.mxnet.converted import one_node


def test_a_convolution_is_a_sum_over_its_window() -> None:
    data = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    kernel = np.ones((1, 1, 2, 2), np.float32)
    answer = one_node("Convolution", data, {"arg:w": kernel}, kernel=(2, 2), num_filter=1, no_bias=True)
    assert answer.tolist() == [[[[8, 12], [20, 24]]]]


def test_a_dense_layer_takes_all_of_an_item_or_its_last_axis() -> None:
    data, weight = np.ones((2, 3, 4)), np.ones((5, 4))
    assert one_node("FullyConnected", data, {"arg:w": weight}, num_hidden=5, flatten=False).shape == (2, 3, 5)
    assert one_node("FullyConnected", data, {"arg:w": np.ones((5, 12))}, num_hidden=5).tolist() == [[12] * 5] * 2


@pytest.mark.parametrize("weight", [(6, 2, 3, 3), (6, 4, 3, 2), (5, 4, 3, 3), (6, 4, 3)])
def test_a_weight_that_does_not_fit_is_refused_with_both_shapes(weight: tuple[int, ...]) -> None:
    with pytest.raises(BadArtifact, match=r"the node 'node' .* its weight has the shape .* is expected"):
        one_node("Convolution", np.ones((1, 4, 5, 5)), {"arg:w": np.ones(weight)}, kernel=(3, 3), num_filter=6)


def test_channels_last_is_refused() -> None:
    with pytest.raises(LoadFailed, match="layout=NHWC"):
        one_node("Convolution", np.ones((1, 5, 5, 4)), {"arg:w": np.ones((6, 4, 3, 3))}, kernel=(3, 3), layout="NHWC")


def test_a_deconvolution_larger_than_possible_is_refused() -> None:
    params = {"arg:w": np.ones((1, 1, 2, 2))}
    with pytest.raises(BadArtifact, match=r"target_shape \(90, 90\) is larger"):
        one_node("Deconvolution", np.ones((1, 1, 2, 2)), params, kernel=(2, 2), num_filter=1, target_shape=(90, 90))


def test_words_beyond_the_vocabulary_take_its_ends() -> None:
    table = np.array([[1], [2], [3]], np.float32)
    answer = one_node("Embedding", np.array([[-7, 0, 2, 99]]), {"arg:w": table}, input_dim=3, output_dim=1)
    assert answer.ravel().tolist() == [1, 1, 3, 3]
