from __future__ import annotations

from pathlib import Path

import pytest

from forecastle.errors import BadArtifact
from forecastle.models.synset import read_synset


@pytest.mark.parametrize(
    ("data", "labels"),
    [
        (b"tench, Tinca tinca\ngoldfish\n", ["tench, Tinca tinca", "goldfish"]),
        (b"a\r\nb", ["a", "b"]),
        (b"  a  \n\tb\n\n \n\n", ["a", "b"]),
        (b"a\n\nc\n", ["a", "", "c"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        ("Öl\n猫\n".encode(), ["Öl", "猫"]),
        ("a\u2028b\x0cc\nd".encode(), ["a\u2028b\x0cc", "d"]),
    ],
)
def test_each_line_is_a_label(tmp_path: Path, data: bytes, labels: list[str]) -> None:
    path = tmp_path / "synset.txt"
    path.write_bytes(data)
    assert read_synset(path) == labels


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"a\nb\xe9\n", "synset.txt is not UTF-8 text: byte 3 is 0xe9"), (b"\n \n", "synset.txt is empty; expected")],
)
def test_a_broken_file_is_refused_by_name(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "synset.txt"
    path.write_bytes(data)
    with pytest.raises(BadArtifact, match=says):
        read_synset(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadArtifact, match=r"synset\.txt cannot be read: No such file"):
        read_synset(tmp_path / "synset.txt")
