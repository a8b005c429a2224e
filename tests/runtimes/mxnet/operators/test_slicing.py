from __future__ import annotations

import numpy as np
import pytest

from forecastle.errors import BadArtifact
from forecastle.runtimes.mxnet.importer import to_onnx
from forecastle.runtimes.mxnet.symbol import SymbolBuilder
from runtimes.mxnet.converted import one_node, run

DATA = np.arange(2 * 4 * 6, dtype=np.float32).reshape(2, 4, 6)


def test_a_slice_has_open_ends_and_steps_both_ways() -> None:
    answer = one_node("slice", DATA, begin=(None, 1, None), end=(None, 3, None), step=(None, 1, -2))
    assert (answer == DATA[:, 1:3, ::-2]).all()
    assert (one_node("slice_axis", DATA, axis=2, begin=-3, end=None) == DATA[:, :, -3:]).all()


def test_parts_are_equal_or_refused() -> None:
    assert (one_node("SliceChannel", DATA, num_outputs=2) == DATA[:, :2]).all()
    with pytest.raises(BadArtifact, match="size 4 cannot be split into 3 equal parts"):
        one_node("SliceChannel", DATA, num_outputs=3)
    with pytest.raises(BadArtifact, match="cannot be split"):
        one_node("SliceChannel", DATA, num_outputs=1_000_000_000, axis=0)


def test_a_slice_like_another_follows_its_size_in_each_request() -> None:
    builder = SymbolBuilder()
    data, like = builder.variable("data"), builder.variable("like")
    symbol = builder.write(builder.op("slice_like", "cut", [data, like], axes=(0, 2)))
    model = to_onnx(symbol, {}, {"data": (None, 4, 6), "like": (None, None, None)})
    assert run(model, {"data": DATA, "like": np.zeros((1, 1, 5))})["cut_output"].shape == (1, 4, 5)
    assert run(model, {"data": DATA, "like": np.zeros((2, 1, 3))})["cut_output"].shape == (2, 4, 3)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_padding_lies_before_and_after_each_axis(mode: str) -> None:
    widths = ((0, 0), (1, 2), (0, 3))
    flat = tuple(number for pair in widths for number in pair)
    answer = one_node("Pad", DATA, mode=mode, pad_width=flat)
    assert (answer == np.pad(DATA, widths, mode=mode)).all()  # type: ignore[call-overload]
