"""Handlers, loaded and asked as a replica does."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from forecastle.errors import LoadFailed
from forecastle.messages import Part
from runtimes.handlers import Handled

ECHO = """
def handle(data, context):
    if data is None:
        return None
    return [repr(row) for row in data]
"""
CLASS = """
class Base:
    initialized = False

class Handler(Base):
    def initialize(self, context):
        self.initialized = True
        self.properties = context.system_properties
        self.name = context.manifest["model"]["modelName"]

    def handle(self, data, context):
        return [{"name": self.name, "ready": self.initialized, "properties": self.properties} for _ in data]
"""


def raw(data: bytes, content_type: str = "") -> Part:
    return Part("", content_type, data)


@pytest.mark.parametrize(
    ("part", "row"),
    [
        (raw(b'{"a": [1, true]}', "application/json"), {"body": {"a": [1, True]}}),
        (raw(b"1,2\n", "text/csv; charset=utf-8"), {"body": "1,2\n"}),
        (raw("é".encode(), "text/plain"), {"body": "é"}),
        (raw(b"\xff\xd8", "image/jpeg"), {"body": bytearray(b"\xff\xd8")}),
        (raw(b"{}"), {"body": bytearray(b"{}")}),
        (Part("data", "", b"7"), {"data": bytearray(b"7")}),
        (Part("data", "application/json", b"[7]"), {"data": [7]}),
    ],
)
def test_a_request_is_a_row_of_fields(tmp_path: Path, part: Part, row: object) -> None:
    assert Handled(tmp_path, ECHO).ask(part) == (repr(row).encode(), "text/plain; charset=utf-8")


def test_a_form_has_a_field_for_each_part_and_no_field_twice(tmp_path: Path) -> None:
    handled = Handled(tmp_path, ECHO)
    body, _ = handled.ask(Part("a", "", b"1"), Part("b", "text/plain", b"2"))
    assert body.decode() == repr({"a": bytearray(b"1"), "b": "2"})
    assert handled.ask(Part("a", "", b"1"), Part("a", "", b"2")) == (
        400,
        "the field 'a' was sent twice; send each once",
    )
    assert handled.ask(raw(b"{", "application/json"))[0] == 400


@pytest.mark.parametrize("handler", ["service", "service.py", "service:handle", "service.py:handle"])
def test_a_class_is_made_once_and_initialized(tmp_path: Path, handler: str) -> None:
    body, content_type = Handled(tmp_path, CLASS, handler, batch_size=4).ask(raw(b"1"))
    answer = json.loads(body)
    assert content_type == "application/json"
    assert (answer["name"], answer["ready"]) == ("noop", True)
    properties = answer["properties"]
    assert Path(properties["model_dir"], "service.py").is_file()
    assert (properties["gpu_id"], properties["batch_size"], properties["server_name"]) == (None, 4, "MMS")


def test_a_function_is_called_once_with_nothing_before_it_is_asked(tmp_path: Path) -> None:
    counting = """
    calls = []

    def infer(data, context):
        calls.append(data)
        return data and [len(calls) for _ in data]
    """
    handled = Handled(tmp_path, counting, "service:infer")
    assert [handled.ask(raw(b"1"))[0] for _ in range(2)] == [b"2", b"3"]


ANSWERS = """
import numpy as np

VALUES = {"bytes": b"\\x00", "text": "é", "number": 3, "none": None, "array": np.ones(2), "bad": object()}

def handle(data, context):
    return data and [VALUES[row["body"]] for row in data]
"""


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("bytes", (b"\x00", "application/octet-stream")),
        ("text", ("é".encode(), "text/plain; charset=utf-8")),
        ("number", (b"3", "application/json")),
        ("none", (b"null", "application/json")),
        ("array", (b"[1.0,1.0]", "application/json")),
    ],
)
def test_bytes_and_text_go_out_as_they_are_and_all_else_as_json(tmp_path: Path, asked: str, answer: object) -> None:
    assert Handled(tmp_path, ANSWERS).ask(raw(asked.encode(), "text/plain")) == answer


def test_what_is_no_json_is_named(tmp_path: Path) -> None:
    status, message = Handled(tmp_path, ANSWERS).ask(raw(b"bad", "text/plain"))
    assert status == 503
    assert message.startswith("Unsupported model output data type: the handler service:handle: the prediction (object)")


HEADERS = """
def handle(data, context):
    if data is None:
        return None
    for index, row in enumerate(data):
        if row["body"] == "refuse":
            context.set_response_status(507, "Insufficient", idx=index)
        if row["body"] == "xml":
            context.set_response_content_type(index, "text/xml")
            context.set_response_header(index, "dummy", "1")
        if row["body"] == "length":
            context.set_response_header(index, "Content-Length", "1")
        if row["body"] == "status":
            context.set_response_status(42, idx=index)
    return [f"{context.get_request_id(i)} {context.get_request_header(i, 'X-Who')}" for i in range(len(data))]
"""


def test_each_request_of_a_batch_has_its_own_status_headers_and_content_type(tmp_path: Path) -> None:
    handled = Handled(tmp_path, HEADERS, batch_size=3)
    bodies = [[raw(text, "text/plain")] for text in (b"plain", b"refuse", b"xml")]
    assert handled.info.together
    answers = handled.answers(*bodies, headers={"x-who": "me"})
    assert answers == [
        (b"r0 me", "text/plain; charset=utf-8"),
        (b"r1 me", "text/plain; charset=utf-8"),
        (b"r2 me", "text/xml"),
    ]
    assert [request.status for request in handled.requests] == [0, 507, 0]
    assert [request.reply_headers for request in handled.requests] == [{}, {}, {"dummy": "1"}]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (b"length", "the handler set the header 'content-length', which is the server's own"),
        (b"status", "the handler set the status 42; expected 200 to 599"),
    ],
)
def test_a_header_or_a_status_that_cannot_be_is_the_handlers_fault(tmp_path: Path, asked: bytes, message: str) -> None:
    assert Handled(tmp_path, HEADERS).ask(raw(asked, "text/plain")) == (500, message)


FAULTS = """
from mms.service import PredictionException

def handle(data, context):
    if data is None:
        return None
    context.set_all_response_status(201)
    for row in data:
        kind = row["body"]
        if kind == "chosen":
            raise PredictionException("Some Prediction Error", 599)
        if kind == "odd":
            raise PredictionException("Odd", 99)
        if kind == "value":
            raise ValueError("no such thing")
        if kind == "memory":
            raise MemoryError
        if kind == "text":
            return "one text"
        if kind == "many":
            return [1, 2, 3, 4, 5]
    return ["well"] * len(data)
"""


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        ("chosen", 599, "Some Prediction Error"),
        ("odd", 500, "Odd (the handler service:handle gave the status 99; expected 400 to 599)"),
        ("value", 503, "Prediction failed: the handler service:handle raised ValueError: no such thing"),
        ("memory", 507, "predict_fn ran out of memory"),
        (
            "text",
            503,
            "Invalid model predict output: the handler service:handle returned str; expected a list of 1",
        ),
        ("many", 503, "number of batch response mismatched: the handler service:handle was given 1 and returned 5"),
    ],
)
def test_a_fault_has_the_status_of_the_contract_and_says_whose_it_is(
    tmp_path: Path, asked: str, status: int, message: str
) -> None:
    assert Handled(tmp_path, FAULTS).ask(raw(asked.encode(), "text/plain")) == (status, message)


@pytest.mark.parametrize("bad", ["chosen", "value", "text", "many"])
def test_one_bad_request_of_a_batch_fails_alone(tmp_path: Path, bad: str) -> None:
    handled = Handled(tmp_path, FAULTS, batch_size=8)
    good, other = ([raw(text.encode(), "text/plain")] for text in ("fine", bad))
    first, second, third = handled.answers(good, other, good)
    assert first == third == (b"well", "text/plain; charset=utf-8")
    assert not isinstance(second, tuple)
    assert [request.status for request in handled.requests] == [201, 0, 201]


def test_a_batch_is_given_together_only_where_that_was_asked_for(tmp_path: Path) -> None:
    first_only = "def handle(data, context):\n    return data and [str(len(data))]\n"
    handled = Handled(tmp_path, first_only)
    assert not handled.info.together
    assert [answer[0] for answer in handled.answers([raw(b"1")], [raw(b"2")])] == [b"1", b"1"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("service", "handler", "message"),
    [
        ("x = 1", "service", "service has no function 'handle', and no class. Expected only one class"),
        (CLASS + "class Other: pass", "service", r"2 classes \(Handler, Other\)"),
        ("class Handler: pass", "service", "the class Handler has no method handle"),
        (CLASS, "missing:handle", r"the handler missing:handle: there is no missing.py in the archive; it holds serv"),
        (CLASS, "", "names no handler; expected model.handler to be MODULE:FUNCTION"),
        ("import not_there", "service", "imports 'not_there', which is not installed: name its package in a requirem"),
    ],
)
def test_a_handler_that_is_none_fails_at_its_loading_and_is_named(
    tmp_path: Path, service: str, handler: str, message: str
) -> None:
    with pytest.raises(LoadFailed, match=message):
        Handled(tmp_path, service, handler)


def test_what_initialize_raises_ends_the_loading(tmp_path: Path) -> None:
    broken = CLASS.replace("self.initialized = True", "raise OSError('no weights')")
    with pytest.raises(OSError, match="no weights"):
        Handled(tmp_path, broken, "service")


CONFIGURED = """
def handle(data, context):
    return data and [context.model_yaml_config for _ in data]
"""


def test_a_handler_has_what_its_model_config_says(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    config = "batchSize: 4\nhandler:\n  top: [1, 2]\n"
    handled = Handled(tmp_path, CONFIGURED, files={"config.yaml": config}, configFile="config.yaml")
    assert json.loads(handled.ask(raw(b"1"))[0]) == {"batchSize": 4, "handler": {"top": [1, 2]}}


@pytest.mark.parametrize(
    ("files", "said"),
    [({}, "cannot be read: .*No such file"), ({"c.yaml": "[1]"}, "holds list"), ({"c.yaml": "{"}, "cannot be read")],
)
def test_a_config_that_is_none_is_named(tmp_path: Path, files: dict[str, str], said: str) -> None:
    pytest.importorskip("yaml")
    status, message = Handled(tmp_path, CONFIGURED, files=files, configFile="c.yaml").ask(raw(b"1"))
    assert status == 503
    assert re.search(rf"raised LoadFailed: c\.yaml {said}", message.replace("\n", " "))


def test_without_a_config_it_is_empty_and_without_pyyaml_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert Handled(tmp_path, CONFIGURED).ask(raw(b"1"))[0] == b"{}"
    status, message = Handled(tmp_path, CONFIGURED, configFile="c.yaml").ask(raw(b"1"))
    assert status == 503
    assert "put pyyaml in requirements.txt" in message


def test_metrics_are_lines_of_the_log_with_their_dimensions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    counting = """
    class Dimension:
        name, value = "Colour", "red"

    def handle(data, context):
        if data is None:
            return None
        metrics = context.metrics
        metrics.add_counter("Seen", 2)
        metrics.add_counter("Seen", 2)
        metrics.add_time("Took", 1.5, 0, "s", [Dimension])
        metrics.add_size("Held", 3, unit="kB", dimensions={"Where": "here"})
        metrics.add_error("Lost", "why")
        if data[0]["body"] == "unit":
            metrics.add_time("Took", 1, unit="min")
        return ["OK"]
    """
    handled = Handled(tmp_path, counting)
    caplog.set_level("INFO")
    assert handled.ask(raw(b"1"))[0] == b"OK"
    lines = [message for message in caplog.messages if message.startswith("[METRICS]")]
    assert lines == [
        "[METRICS]Seen.Count:2|#Level:Model,ModelName:noop|#requestID:r0",
        "[METRICS]Seen.Count:4|#Level:Model,ModelName:noop|#requestID:r0",
        "[METRICS]Took.Seconds:1.5|#Colour:red,Level:Model,ModelName:noop|#requestID:r0",
        "[METRICS]Held.Kilobytes:3|#Where:here,Level:Model,ModelName:noop|#requestID:r0",
        "[METRICS]Lost:why|#Level:Error,ModelName:noop|#requestID:r0",
    ]
    assert "expected one of ms, s" in handled.ask(raw(b"unit", "text/plain"))[1]
