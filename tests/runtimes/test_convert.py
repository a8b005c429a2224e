from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadInput
from forecastle.models.signature import Tensor
from forecastle.runtimes.convert import numpy_dtype, to_array


def tensor(dtype: str = "float32", *shape: int | None) -> Tensor:
    return Tensor("x", shape or (None, 2), dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1, 2], "float32", [1.0, 2.0]),
        ([True, 0.5], "float32", [1.0, 0.5]),
        ([2**70, 1], "float64", [2.0**70, 1.0]),
        ([1e39, 1], "float32", [np.inf, 1.0]),
        ([1.0, -2.0], "int8", [1, -2]),
        ([True, False], "int64", [1, 0]),
        ([2**63 - 1, -(2**63)], "int64", [2**63 - 1, -(2**63)]),
        ([2**64 - 1, 0], "uint64", [2**64 - 1, 0]),
        ([1, 0.0], "bool", [True, False]),
        ((1, 2), "float32", [1.0, 2.0]),
        (["a", ""], "str", ["a", ""]),
        (np.array(["a", "b"]), "str", ["a", "b"]),
        (np.array([b"\xc3\xa4", b"b"]), "str", ["ä", "b"]),
        (np.array([1, 2], "int8"), "float16", [1.0, 2.0]),
        (np.array([1, 2], ">f8"), "float32", [1.0, 2.0]),
        ([1j, 2], "complex64", [1j, 2]),
    ],
)
def test_what_can_be_converted_without_loss_is(value: Any, dtype: str, expected: list[Any]) -> None:
    array, single = to_array(value, tensor(dtype))
    assert single
    assert array.dtype == numpy_dtype(dtype)
    assert array[0].tolist() == expected


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        ([1, None], "float32", r"x\[1\] is null; expected a number"),
        ([1, "2"], "float32", r"x\[1\] is '2'; expected a number"),
        (["1", "2"], "float32", r"x\[0\] is '1'"),
        ([[1, 2], [3, {}]], "float32", r"x\[1\]\[1\] is an object"),
        ([1, b"2"], "float32", r"x\[1\] is b'2'"),
        ("text" * 100, "float32", r"x is 'text.*…; expected a number"),
        (None, "float32", "x is null"),
        ([[1], [1, 2]], "float32", "x is ragged"),
        ([1, [2]], "float32", "x is ragged"),
        ([1.5, 2], "int64", r"x\[0\] is 1\.5; expected int64, a whole number"),
        ([300, 1], "uint8", r"x\[0\] is 300; expected uint8, a whole number from 0 to 255"),
        ([1, -1], "uint64", r"x\[1\] is -1"),
        ([2**63, 1], "int64", r"x\[0\] is 9223372036854775808"),
        ([2.0**63, 1], "int64", r"x\[0\] is 9\.22"),
        ([2**70, 1], "int64", r"x\[0\] is 1180591620717411303424"),
        ([10**400, 1], "float64", "beyond the range of float64"),
        ([np.nan, 1], "int32", r"x\[0\] is nan"),
        ([np.inf, 1], "int32", r"x\[0\] is inf"),
        ([2, 1], "bool", r"x\[0\] is 2; expected bool"),
        ([1j, 1], "float32", "x holds complex128; expected float32"),
        ([True, "a"], "str", r"x\[0\] is true; expected a text"),
        ([["a"], ["b", "c"]], "str", "x is ragged"),
        (np.array(["a", "b"]), "float32", "x holds <U1; expected float32"),
        (np.array(["2026-12-01", "2026-12-02"], "datetime64[D]"), "int64", "x holds datetime64"),
        (np.array([1, 2]), "str", "x holds int64; expected texts"),
        (np.array([b"\xff", b"b"]), "str", "not UTF-8"),
    ],
)
def test_what_cannot_is_refused_with_its_place(value: Any, dtype: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        to_array(value, tensor(dtype))


def test_lists_nested_beyond_any_shape_are_refused() -> None:
    value: Any = 1
    for _ in range(3000):
        value = [value]
    with pytest.raises(BadInput, match=r"x is ragged|x has shape"):
        to_array(value, tensor())


@pytest.mark.parametrize(
    ("shape", "value", "single"),
    [
        ((None, 2), [1, 2], True),
        ((None, 2), [[1, 2]], False),
        ((None, None), [1, 2, 3], True),
        ((None,), 1, True),
        ((None,), [1, 2], False),
        ((1, 2), [1, 2], True),
        ((1, 2), [[1, 2], [3, 4]], False),
        ((2, 2), [[1, 2], [3, 4]], False),
    ],
)
def test_a_value_of_one_rank_less_is_one_record(shape: tuple[int | None, ...], value: Any, single: bool) -> None:
    array, found = to_array(value, tensor("float32", *shape))
    assert found is single
    assert array.ndim == len(shape)


@pytest.mark.parametrize(
    ("shape", "value", "message"),
    [
        ((None, 3), [1, 2], r"x has shape \(2\); expected \(any, 3\), or \(3\) for one record"),
        ((None, 3), [[1, 2]], r"x has shape \(1, 2\); expected \(any, 3\)"),
        ((None, 3), 1, r"x has shape \(\); expected \(any, 3\)"),
        ((None, None, 3), [[[[1]]]], r"x has shape \(1, 1, 1, 1\); expected \(any, any, 3\), or \(any, 3\)"),
        ((2, 3), [[1, 2, 3]], r"x has shape \(1, 3\); expected \(2, 3\)$"),
        ((2, 3), [1, 2, 3], r"x has shape \(3\); expected \(2, 3\)$"),
        ((None, 0), np.zeros((0, 0)), r"x has no rows \(shape \(0, 0\)\)"),
        ((None,), [], "x has no rows"),
    ],
)
def test_another_shape_is_refused_with_both(shape: tuple[int | None, ...], value: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        to_array(value, tensor("float32", *shape))


def test_a_tensor_without_axes_has_no_batch() -> None:
    array, single = to_array(3, Tensor("x", (), "int64"))
    assert (array.shape, single) == ((), False)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=12,
)


@given(JSON_VALUES, st.sampled_from(["float32", "float64", "int8", "uint64", "bool", "str"]))
def test_any_value_is_an_array_of_the_type_or_refused(value: Any, dtype: str) -> None:
    outcome: Any = BadInput
    try:
        outcome = to_array(value, tensor(dtype, None, None))[0].dtype
    except BadInput as error:
        outcome = error.message.startswith("x")
    assert outcome in {True, numpy_dtype(dtype)}
