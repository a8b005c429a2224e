from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from forecastle.errors import BadArtifact, SourceNotFound
from forecastle.runtimes.mxnet.params import load, save

DTYPES = "float32 float64 float16 uint8 int32 int8 int64 bool int16 uint16 uint32 uint64"
ARRAYS = hnp.arrays(
    st.sampled_from(DTYPES.split()).map(np.dtype), hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)
)
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
CPU = struct.pack("<ii", 1, 0)


def shape(*sizes: int) -> bytes:
    return struct.pack(f"<i{len(sizes)}q", len(sizes), *sizes)


def file_of(*arrays: bytes, names: tuple[bytes, ...] | None = None) -> bytes:
    names = tuple(b"arg:%d" % i for i in range(len(arrays))) if names is None else names
    tail = b"".join(struct.pack("<Q", len(name)) + name for name in names)
    return struct.pack("<QQQ", 0x112, 0, len(arrays)) + b"".join(arrays) + struct.pack("<Q", len(names)) + tail


def dense(values: npt.NDArray[Any], code: int, magic: int = V2) -> bytes:
    head = struct.pack("<Ii", magic, 0) + shape(*values.shape) + CPU
    return head + struct.pack("<i", code) + values.tobytes()


def row_sparse(rows: list[int], values: npt.NDArray[np.float32], full: tuple[int, ...]) -> bytes:
    head = struct.pack("<Ii", V2, 1) + shape(*values.shape) + shape(*full) + CPU + struct.pack("<i", 0)
    return head + struct.pack("<i", 6) + shape(len(rows)) + values.tobytes() + np.array(rows, "<i8").tobytes()


def csr(starts: list[int], columns: list[int], values: list[float], full: tuple[int, ...]) -> bytes:
    head = struct.pack("<Ii", V2, 2) + shape(len(values)) + shape(*full) + CPU + struct.pack("<i", 0)
    head += b"".join(struct.pack("<i", 6) + shape(len(part)) for part in (starts, columns))
    return head + np.array(values, "<f4").tobytes() + np.array(starts + columns, "<i8").tobytes()


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_bytes(data: bytes) -> dict[str, npt.NDArray[Any]]:
        path = tmp_path / "m-0000.params"
        path.write_bytes(data)
        return load(path)

    return read_bytes


@given(arrays=st.dictionaries(st.text(), ARRAYS, max_size=5))
def test_what_is_saved_is_loaded_bit_by_bit(
    arrays: dict[str, npt.NDArray[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "saved.params"
    save(path, arrays)
    loaded = load(path)
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert loaded[name].tobytes() == array.tobytes()


def test_an_array_of_the_other_byte_order_is_saved_by_value(tmp_path: Path) -> None:
    save(tmp_path / "p", {"a": np.arange(3, dtype=">i4")})
    assert load(tmp_path / "p")["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("values", [np.float32(1), np.zeros(2, np.complex64), np.array(["a"])])
def test_what_the_layout_cannot_hold_is_not_saved(values: npt.NDArray[Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a: a \.params file cannot hold"):
        save(tmp_path / "p", {"a": values})


def test_dense_arrays_are_views_and_cannot_be_changed(tmp_path: Path) -> None:
    save(tmp_path / "p", {"a": np.zeros(10), "b": np.zeros(10)})
    loaded = load(tmp_path / "p")
    assert not loaded["a"].flags.owndata
    assert not loaded["a"].flags.writeable


def test_the_layout_before_0_12_is_read(read: Any) -> None:
    array = struct.pack("<III", 2, 2, 3) + CPU + struct.pack("<i", 0) + np.arange(6, dtype="<f4").tobytes()
    assert read(file_of(array))["arg:0"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_layout_of_0_12_is_read(read: Any) -> None:
    head = struct.pack("<I", V1) + shape(2, 1) + CPU + struct.pack("<i", 4)
    assert read(file_of(head + np.array([7, 8], "<i4").tobytes()))["arg:0"].tolist() == [[7], [8]]


def test_numpy_shapes_are_read_with_scalars(read: Any) -> None:
    loaded = read(file_of(dense(np.array(2.5, np.float32), 0, V3), dense(np.zeros((0, 3), "<f4"), 0, V3)))
    assert loaded["arg:0"].shape == ()
    assert loaded["arg:0"] == 2.5
    assert loaded["arg:1"].shape == (0, 3)


def test_bfloat16_becomes_float32(read: Any) -> None:
    values = np.array([1.0, -2.5, 3.140625], "<f4")
    halves = (values.view("<u4") >> 16).astype("<u2")
    loaded = read(file_of(dense(halves, 12)))["arg:0"]
    assert loaded.dtype == np.float32
    assert loaded.tolist() == values.tolist()


def test_rows_become_dense(read: Any) -> None:
    values = np.array([[1, 2], [3, 4]], "<f4")
    assert read(file_of(row_sparse([2, 0], values, (3, 2))))["arg:0"].tolist() == [[3, 4], [0, 0], [1, 2]]


def test_a_csr_matrix_becomes_dense(read: Any) -> None:
    matrix = csr([0, 2, 2, 3], [0, 2, 1], [1, 2, 3], (3, 3))
    assert read(file_of(matrix))["arg:0"].tolist() == [[1, 0, 2], [0, 0, 0], [0, 3, 0]]


def test_an_array_that_was_never_initialised_is_left_out(read: Any) -> None:
    nothing = struct.pack("<Iii", V2, 0, 0), struct.pack("<Iii", V3, 0, -1), struct.pack("<I", 0)
    assert list(read(file_of(*nothing, dense(np.ones(1, "<f4"), 0)))) == ["arg:3"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"gone\.params: No such file"):
        load(tmp_path / "gone.params")


ONE = dense(np.ones(1, "<f4"), 0)
HUGE = 1 << 40


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the number 0x112"),
        (b"PK\x03\x04" + bytes(40), "the number 0x112"),
        (file_of(ONE) + b"x", "the list ends, but 1 bytes follow"),
        (file_of(ONE)[:-1], "bytes are expected"),
        (file_of(ONE, names=()), "1 arrays have 0 names"),
        (file_of(ONE, ONE, names=(b"a", b"a")), "two arrays have the same name"),
        (file_of(ONE, names=(b"\xff",)), "not UTF-8"),
        (struct.pack("<QQQ", 0x112, 0, 1 << 63), "bytes are expected"),
        (file_of(struct.pack("<Iii", V2, 0, 1 << 30)), "1073741824 axes"),
        (file_of(struct.pack("<Ii", V2, 0) + shape(2, -3)), r"impossible shape \(2, -3\)"),
        (file_of(struct.pack("<Ii", V2, 0) + shape(1 << 62, 1 << 62) + bytes(12)), "impossible shape"),
        (file_of(struct.pack("<Ii", V2, 0) + shape(0, 1 << 62) + bytes(12)), "impossible shape"),
        (file_of(struct.pack("<Ii", V2, 0) + shape(HUGE) + bytes(12)), f"{HUGE * 4} bytes are expected"),
        (file_of(struct.pack("<Ii", V2, 0) + shape(1) + CPU + struct.pack("<i", 99)), "dtype 99 is unknown"),
        (file_of(struct.pack("<Ii", V2, 7)), "storage type 7 is unknown"),
        (file_of(row_sparse([0], np.ones((1, 2), "<f4"), (HUGE, 2))), "out of all proportion"),
        (file_of(row_sparse([5], np.ones((1, 2), "<f4"), (3, 2))), "rows of a sparse array do not fit"),
        (file_of(row_sparse([-1], np.ones((1, 2), "<f4"), (3, 2))), "rows of a sparse array do not fit"),
        (file_of(row_sparse([0], np.ones((1, 3), "<f4"), (3, 2))), "rows of a sparse array do not fit"),
        (file_of(csr([0, 1], [5], [1], (1, 3))), "do not fit its shape"),
        (file_of(csr([0, 1 << 62, -1], [0], [1], (2, 3))), "do not fit its shape"),
        (file_of(csr([0, 1, 0], [0], [1], (2, 3))), "contradict each other"),
        (file_of(csr([0, 1], [0], [1], (2, 3))), "parts of a csr matrix do not fit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_or_hostile_file_is_refused_with_the_place(data: bytes, problem: str, read: Any) -> None:
    with pytest.raises(BadArtifact, match=rf"m-0000\.params is no readable .* at byte \d+, .*{problem}"):
        read(data)


def test_a_hostile_file_takes_no_memory(read: Any) -> None:
    data = file_of(*[row_sparse([0], np.ones((1, 2), "<f4"), (1 << 20, 2))] * 64)
    tracemalloc.start()
    try:
        with pytest.raises(BadArtifact, match="out of all proportion"):
            read(data)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


GOOD = file_of(
    dense(np.arange(6, dtype="<f4").reshape(2, 3), 0),
    row_sparse([2, 0], np.ones((2, 2), "<f4"), (3, 2)),
    csr([0, 2, 2, 3], [0, 2, 1], [1, 2, 3], (3, 3)),
    dense(np.array(1, np.float64), 1, V3),
    dense(np.arange(2, dtype="<u2"), 12),
)
PATCHES = st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=8)), max_size=4)


@given(patches=PATCHES, end=st.integers(0, len(GOOD)) | st.none())
def test_any_damage_is_either_harmless_or_a_bad_artifact(
    patches: list[tuple[int, bytes]], end: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(GOOD)
    for at, patch in patches:
        data[at : at + len(patch)] = patch
    path = tmp_path_factory.getbasetemp() / "damaged.params"
    path.write_bytes(data[:end])
    try:
        load(path)
    except BadArtifact as error:
        assert "damaged.params" in error.message  # noqa: PT017
