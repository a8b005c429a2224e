from __future__ import annotations

import numpy as np
import pytest

from forecastle.errors import BadArtifact, LoadFailed
from forecastle.runtimes.mxnet.importer import to_onnx
from forecastle.runtimes.mxnet.symbol import SymbolBuilder
from runtimes.mxnet.converted import one_node, run

DATA = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)


def test_valid_leaves_the_incomplete_window_out_and_full_keeps_it() -> None:
    valid = one_node("Pooling", DATA, kernel=(3, 3), stride=(2, 2))
    full = one_node("Pooling", DATA, kernel=(3, 3), stride=(2, 2), pooling_convention="full")
    assert valid.tolist() == [[[[11]]]]
    assert full.tolist() == [[[[11, 12], [15, 16]]]]


def test_an_average_counts_padding_unless_told_not_to() -> None:
    window = {"kernel": (2, 2), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg"}
    assert one_node("Pooling", DATA, **window)[0, 0, 0].tolist() == [0.25, 1.25, 1]
    assert one_node("Pooling", DATA, count_include_pad=False, **window)[0, 0, 0].tolist() == [1, 2.5, 4]


def test_an_average_never_counts_what_full_adds_at_the_end() -> None:
    answer = one_node("Pooling", DATA, kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full")
    assert answer[0, 0].tolist() == [[6, 7.5], [12, 13.5]]


@pytest.mark.parametrize(("kind", "value"), [("max", 16), ("avg", 8.5), ("sum", 136)])
def test_global_pooling_ignores_the_kernel(kind: str, value: float) -> None:
    assert one_node("Pooling", DATA, global_pool=True, kernel=(7, 7), pool_type=kind).tolist() == [[[[value]]]]


def test_full_needs_a_declared_size() -> None:
    builder = SymbolBuilder()
    pool = builder.op("Pooling", "p", [builder.variable("data")], kernel=(2, 2), pooling_convention="full")
    with pytest.raises(LoadFailed, match=r"an input whose size is not declared in the signature \(node 'p', Pooling\)"):
        to_onnx(builder.write(pool), {}, {"data": (None, 3, None, None)})


def test_another_rounding_and_a_wrong_count_of_numbers_are_refused() -> None:
    with pytest.raises(LoadFailed, match="pooling_convention=same"):
        one_node("Pooling", DATA, kernel=(2, 2), pooling_convention="same")
    with pytest.raises(BadArtifact, match="one number per spatial axis"):
        one_node("Pooling", DATA, kernel=(2, 2), stride=(1,))


def test_windows_beyond_the_end_and_zeros_in_a_maximum_are_refused() -> None:
    with pytest.raises(LoadFailed, match="full with windows that lie beyond the end"):
        one_node("Pooling", DATA, kernel=(1, 1), stride=(4, 4), pooling_convention="full")
    with pytest.raises(LoadFailed, match=r"pad=\(1, 1\) \(node 'node', Pooling_v1\)"):
        one_node("Pooling_v1", DATA, kernel=(2, 2), pad=(1, 1))


def test_zeros_padded_before_a_maximum_take_part_in_it() -> None:
    builder = SymbolBuilder()
    widths = (0, 0, 0, 0, 1, 1, 1, 1)
    padded = builder.op("Pad", "pad", [builder.variable("data")], mode="constant", pad_width=widths)
    pool = builder.op("Pooling", "pool", [padded], kernel=(3, 3), stride=(3, 3))
    model = to_onnx(builder.write(pool), {}, {"data": (None, 1, 4, 4)})
    assert run(model, {"data": -DATA})["pool_output"].tolist() == [[[[0, 0], [0, 0]]]]
