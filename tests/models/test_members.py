from __future__ import annotations

import pytest

from forecastle.errors import BadArtifact
from forecastle.models.members import archive_format, safe_parts


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ("a",)),
        ("./a//b/", ("a", "b")),
        ("a/...", ("a", "...")),
        ("..a/b..", ("..a", "b..")),
        ("Ü/猫.txt", ("Ü", "猫.txt")),
        ("./", ()),
    ],
)
def test_a_relative_name_is_split_into_its_parts(name: str, parts: tuple[str, ...]) -> None:
    assert safe_parts(name, "x.zip") == parts


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("/etc/passwd", "absolute"),
        ("//host/share", "absolute"),
        ("C:/x", "absolute"),
        ("c:x", "absolute"),
        ("C:\\x", "absolute"),
        ("\\\\host\\share", "backslash"),
        ("a\\..\\..\\b", "backslash"),
        ("..", r"\.\."),
        ("../a", r"\.\."),
        ("a/../../b", r"\.\."),
        ("a/..", r"\.\."),
        ("a\x00.txt", "unprintable"),
        ("a\nb", "unprintable"),
        ("a\udcff", "unprintable"),
        ("ä" * 128, "longer than 255 bytes"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str, fault: str) -> None:
    with pytest.raises(BadArtifact, match=f"x.zip is not safe to unpack: its member .* has .*{fault}"):
        safe_parts(name, "x.zip")


@pytest.mark.parametrize(
    ("head", "format_"),
    [
        (b"PK\x03\x04....", "zip"),
        (b"PK\x05\x06....", "zip"),
        (b"\x1f\x8b\x08", "tar"),
        (b"BZh9", "tar"),
        (b"x" * 257 + b"ustar\x0000", "tar"),
        (b"PK", None),
        (b"", None),
        (b"\x08\x0a\x12", None),
    ],
)
def test_an_archive_is_known_by_its_first_bytes(head: bytes, format_: str | None) -> None:
    assert archive_format(head) == format_
