from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecastle.models.onnx_file import onnx_fault
from models.builders import make_onnx


def fault(tmp_path: Path, data: bytes) -> str | None:
    path = tmp_path / "m"
    path.write_bytes(data)
    return onnx_fault(path)


def test_a_model_is_one_whatever_its_file_is_called(tmp_path: Path) -> None:
    assert fault(tmp_path, make_onnx()) is None


def test_fields_of_later_versions_are_skipped(tmp_path: Path) -> None:
    varint, fixed32, fixed64, text = b"\xf8\x07\xff\xff\x01", b"\xfd\x07abcd", b"\xf9\x07abcdefgh", b"\xfa\x07\x02hi"
    assert fault(tmp_path, varint + fixed32 + make_onnx() + fixed64 + text) is None


def test_a_model_cut_anywhere_is_told_from_a_whole_one(tmp_path: Path) -> None:
    whole = make_onnx()
    # A cut between two of its last fields leaves a model that only lacks its operator set; no walk can tell.
    graph_end = whole.index(b"tests") + 5
    for length in range(graph_end):
        assert fault(tmp_path, whole[:length]), length
    assert "cut off" in (fault(tmp_path, whole[:-1]) or "")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no IR version or no graph"),
        (b"\x08\x08", "no IR version or no graph"),
        (b"\x08\x00\x3a\x00", "its IR version is 0"),
        (b"version https://git-lfs.github.com/spec/v1\n", "starts no protobuf field|cut off"),
        (b"\x08" + b"\xff" * 11, "a number longer than protobuf's"),
        (b"\x08\x80", "cut off in the middle"),
        (b"\x08\x08\x3a\xff\xff\xff\xff\x0f", "field 7 ends .* bytes after the end"),
        (b"\x08\x08" * 100_001, "more than 100000 fields"),
        (b"<html>", "protobuf field|cut off"),
    ],
)
def test_anything_else_is_no_model_and_it_says_why(tmp_path: Path, data: bytes, says: str) -> None:
    found = fault(tmp_path, data)
    assert found is not None
    assert re.search(says, found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_are_judged(tmp_path: Path, data: bytes) -> None:
    result = fault(tmp_path, data)
    assert result is None or result
