from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadOutput, NotAcceptable
from forecastle.hooks.discover import from_file, new_manager
from forecastle.hooks.resolve import load
from forecastle.hooks.spec import plugin_hook
from forecastle.hooks.streaming import EVENTS, NDJSON, Stream, of_elements, of_pieces
from forecastle.hooks.toolkit import Context
from forecastle.media import BYTES, JSON, TEXT, accept
from forecastle.messages import Part

ELEMENTS = st.lists(st.one_of(st.integers(-5, 5), st.none(), st.lists(st.text(max_size=3)), st.booleans()), max_size=6)


def events(body: bytes) -> list[str]:
    """Read server-sent events as a browser does."""
    found = [block.split("\n") for block in body.decode().split("\n\n")[:-1]]
    return ["\n".join(line.removeprefix("data: ") for line in lines) for lines in found]


def whole(stream: Any) -> bytes:
    assert isinstance(stream, Stream)
    return b"".join(stream.pieces)


@given(ELEMENTS)
def test_elements_can_be_read_back_from_every_form_they_are_written_in(elements: list[Any]) -> None:
    array = of_elements(iter(elements), accept(JSON))
    assert json.loads(whole(array)) == elements
    lines = of_elements(iter(elements), accept("*/*"))
    assert lines.content_type == NDJSON
    assert [json.loads(line) for line in whole(lines).splitlines()] == elements
    sent = of_elements(iter(elements), accept(EVENTS))
    assert sent.content_type == EVENTS
    assert [json.loads(event) for event in events(whole(sent))] == elements


@given(st.lists(st.text(alphabet="ab\r\n", min_size=1), min_size=1, max_size=5))
def test_text_stays_as_it_is_and_its_lines_stay_lines_in_events(texts: list[str]) -> None:
    plain = of_elements(iter(texts), accept("*/*"))
    assert (plain.content_type, whole(plain)) == (TEXT, "".join(texts).encode())
    found = events(whole(of_elements(iter(texts), accept(EVENTS))))
    assert found == [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]


def test_bytes_stay_as_they_are_and_empty_pieces_are_left_out() -> None:
    stream = of_elements(iter([b"a", b"", b"\0b"]), accept("*/*"))
    assert stream.content_type == BYTES
    assert list(stream.pieces) == [b"a", b"\0b"]


def test_no_element_is_made_before_it_is_wanted() -> None:
    made = []

    def count() -> Iterator[int]:
        for number in range(3):
            made.append(number)
            yield number

    stream = of_elements(count(), accept("*/*"))
    assert next(stream.pieces) == b"0\n"
    assert made == [0]


def test_what_the_client_does_not_accept_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(NotAcceptable, match="application/x-ndjson"):
        of_elements(iter([1]), accept("image/png"))


def test_a_piece_that_is_neither_bytes_nor_text_is_the_hooks_fault() -> None:
    with pytest.raises(BadOutput, match="a hook yielded dict; expected bytes or text"):
        whole(of_pieces(iter([{"a": 1}]), None, accept("*/*")))


def hooks(**functions: Any) -> Any:
    manager = new_manager()
    manager.register(SimpleNamespace(**{name: plugin_hook(function) for name, function in functions.items()}))
    return load(manager, None, "")


def count(data: Any, model: Any) -> Iterator[int]:
    yield from range(data)


def test_a_predict_fn_that_yields_is_written_element_by_element() -> None:
    loaded = hooks(predict_fn=count)
    assert whole(loaded.write(loaded.predict(3), "*/*")) == b"0\n1\n2\n"


def test_a_users_output_fn_writes_each_element_and_its_first_content_type_counts() -> None:
    def output_fn(prediction: Any, accept: Any) -> tuple[str, str]:
        return f"<{prediction}>", "text/html"

    loaded = hooks(predict_fn=count, output_fn=output_fn)
    stream = loaded.write(loaded.predict(3), "*/*")
    assert (stream.content_type, whole(stream)) == ("text/html", b"<0><1><2>")
    assert events(whole(loaded.write(loaded.predict(2), EVENTS))) == ["<0>", "<1>"]


def test_an_output_fn_that_yields_gets_the_whole_prediction_made_or_not() -> None:
    def output_fn(prediction: Any, accept: Any) -> Iterator[str]:
        for element in prediction:
            yield f"{element};"

    loaded = hooks(output_fn=output_fn, predict_fn=lambda data, model: list(range(data)))
    assert whole(loaded.write(loaded.predict(3), "*/*")) == b"0;1;2;"
    loaded = hooks(output_fn=output_fn, predict_fn=count)
    assert whole(loaded.write(loaded.predict(3), "*/*")) == b"0;1;2;"


def test_a_body_that_yields_keeps_the_content_type_that_comes_with_it() -> None:
    loaded = hooks(output_fn=lambda prediction, accept: (iter([b"a", "b"]), "application/x-own"))
    stream = loaded.write(None, "*/*")
    assert (stream.content_type, whole(stream)) == ("application/x-own", b"ab")


@pytest.mark.parametrize("context", [None, Context("/m")], ids=["plain", "toolkit"])
def test_functions_of_a_file_may_yield_too(tmp_path: Any, context: Context | None) -> None:
    file = tmp_path / "yielding.py"
    file.write_text(
        "def predict_fn(data, model):\n    yield from data\n\n"
        "def output_fn(prediction, accept):\n    for number in prediction:\n        yield str(number)\n"
    )
    loaded = load(from_file(file, context), None, "")
    assert whole(loaded.write(loaded.predict([1, 2]), "*/*")) == b"12"


def test_a_transform_fn_may_yield() -> None:
    def transform_fn(model: Any, data: bytes, content_type: str, accept: str) -> Iterator[bytes]:
        yield data
        yield data

    assert whole(hooks(transform_fn=transform_fn).transform([Part("", "", b"x")], "*/*")) == b"xx"
