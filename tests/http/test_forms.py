"""Forms, well-formed and not."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadInput
from forecastle.http.forms import MAX_PARTS, split_multipart, split_urlencoded
from forecastle.messages import Part

TYPE = 'multipart/form-data; boundary="b0und"'


def multipart(*parts: tuple[str, str, bytes]) -> bytes:
    lines = []
    for name, content_type, data in parts:
        kind = f"Content-Type: {content_type}\r\n" if content_type else ""
        lines.append(
            f'--b0und\r\nContent-Disposition: form-data; name="{name}"\r\n{kind}\r\n'.encode() + data + b"\r\n"
        )
    return b"".join(lines) + b"--b0und--\r\n"


def test_fields_and_files_keep_their_order_names_types_and_bytes() -> None:
    jpeg = b"\xff\xd8\r\n--b0un\r\n\r\n\x00"
    body = multipart(("input0", "image/jpeg", jpeg), ("größe", "", b"[1]"), ("empty", "text/plain; charset=utf-8", b""))
    assert split_multipart(body, TYPE) == [
        Part("input0", "image/jpeg", jpeg),
        Part("größe", "", b"[1]"),
        Part("empty", "text/plain; charset=utf-8", b""),
    ]


def test_a_file_part_keeps_its_type_and_loses_its_file_name() -> None:
    body = (
        b'--b0und\r\nContent-Disposition: form-data; name="data"; filename="../k\xc3\xa4tzchen.jpg"\r\n'
        b"Content-Type: image/jpeg\r\n\r\nJPEG\r\n--b0und--\r\n"
    )
    assert split_multipart(body, TYPE) == [Part("data", "image/jpeg", b"JPEG")]


@given(st.lists(st.tuples(st.from_regex(r"[a-z][a-zA-Z0-9_.:/-]{0,20}", fullmatch=True), st.binary(max_size=200))))
def test_what_a_client_encodes_is_what_is_split(fields: list[tuple[str, bytes]]) -> None:
    fields = [(name, data) for name, data in fields if b"--b0und" not in data]
    if fields:
        parts = split_multipart(multipart(*((name, "", data) for name, data in fields)), TYPE)
        assert parts == [Part(name, "", data) for name, data in fields]


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"--b0und\r\n", b"--b0und\r\nContent-Disposition: form-data; name=a"]),
)
def test_no_bytes_raise_anything_but_bad_input(noise: bytes, prefix: bytes) -> None:
    for body in (prefix + noise, prefix + noise + b"\r\n--b0und--\r\n"):
        with contextlib.suppress(BadInput):
            split_multipart(body, TYPE)


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=" + "x" * 71,
        "multipart/form-data; boundary=é",
    ],
)
def test_a_missing_or_unusable_boundary_is_named(content_type: str) -> None:
    with pytest.raises(BadInput, match="boundary"):
        split_multipart(multipart(("a", "", b"1")), content_type)


@pytest.mark.parametrize("cut", [1, 12, 40, 70, 85])
def test_a_body_cut_anywhere_is_refused(cut: int) -> None:
    with pytest.raises(BadInput, match="malformed or cut short"):
        split_multipart(multipart(("input0", "image/jpeg", b"JPEG"))[:cut], TYPE)


def test_the_wrong_boundary_is_refused() -> None:
    with pytest.raises(BadInput, match="boundary"):
        split_multipart(multipart(("a", "", b"1")).replace(b"b0und", b"other"), TYPE)


def test_a_part_without_a_name_is_refused_by_its_number() -> None:
    body = b"--b0und\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b0und--\r\n"
    with pytest.raises(BadInput, match=r"part 1 .* has no name"):
        split_multipart(body, TYPE)


def test_a_form_without_parts_is_refused() -> None:
    with pytest.raises(BadInput, match="no part"):
        split_multipart(b"--b0und--\r\n", TYPE)


def test_a_form_with_too_many_parts_is_refused() -> None:
    fields = [("a", "", b"1")] * (MAX_PARTS + 1)
    with pytest.raises(BadInput, match=str(MAX_PARTS)):
        split_multipart(multipart(*fields), TYPE)
    assert len(split_multipart(multipart(*fields[1:]), TYPE)) == MAX_PARTS
    with pytest.raises(BadInput, match=str(MAX_PARTS)):
        split_urlencoded(b"&".join([b"a=1"] * (MAX_PARTS + 1)))


def test_urlencoded_fields_are_decoded_to_bytes() -> None:
    assert split_urlencoded(b"input0=%5B1%2C+2%5D&gr%C3%B6%C3%9Fe=%ff%00&&flag") == [
        Part("input0", "", b"[1, 2]"),
        Part("größe", "", b"\xff\x00"),
        Part("flag", "", b""),
    ]


def test_an_urlencoded_name_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(BadInput, match="field 2"):
        split_urlencoded(b"a=1&%ff=2")
