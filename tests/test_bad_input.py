"""What clients do wrong, through a whole server: each fault has its status and its sentence, and is nobody else's."""

from __future__ import annotations

import concurrent.futures
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from cli.process import Server, serving
from runtimes import networks

HOOKS = """
import forecastle

def predict_fn(data, model):
    if data == "raise":
        raise RuntimeError("the hook's own words")
    if data == "exit":
        raise SystemExit(3)
    if data == "memory":
        raise MemoryError()
    if data == "nan":
        return {"a": float("nan"), "b": [float("inf"), 1.5]}
    if data == "object":
        return object()
    return data

def output_fn(prediction, accept):
    if prediction == "pair":
        return {"no": "pair"}
    if prediction == "header":
        return b"", "text/plain\\r\\nX-Evil: 1"
"""
COUNT = """
def predict_batch_fn(batch, model):
    return batch + batch
"""
BYTES = "def input_fn(input_data, content_type):\n    return content_type\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "hooks.py").write_text(HOOKS)
    (folder / "count.py").write_text(COUNT)
    (folder / "kind.py").write_text(BYTES)
    (folder / "contextlib.py").write_text("raise ImportError('a file of the working folder')\n")
    networks.dense(folder / "dense.onnx")
    models = ("hooks=hooks.py", "count=count.py", "kind=kind.py", "dense=dense.onnx")
    with serving(*models, "--max-body", "1MB", folder=folder) as server:
        yield server


def ask(server: Server, model: str, body: bytes, content_type: str | None = "application/json", **headers: str) -> Any:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if content_type is not None:
        sent["content-type"] = content_type
    with httpx.Client() as client:
        client.headers.pop("accept")
        url = f"{server.url}/invocations?model_name={model}"
        return client.post(url, content=body, headers=sent, timeout=30)


def npy(value: Any, **more: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value, **more)
    return file.getvalue()


GOOD = [[1.0, 2.0, 3.0]]
JSON_TYPE, NPY_TYPE = "application/json", "application/x-npy"
OBJECTS = npy(np.array([{"a": 1}], object), allow_pickle=True)
FAULTS = {
    # model, body and content type: status, type, and what the sentence says
    ("hooks", b"", JSON_TYPE): (400, "BadInput", "the body is empty; expected JSON"),
    ("hooks", b'{"a": [1', JSON_TYPE): (400, "BadInput", "the body is not JSON: it ends too early (8 bytes were read)"),
    ("hooks", b"\xff\xfe", JSON_TYPE): (400, "BadInput", "the body is not JSON: "),
    ("hooks", b'a,"b\n', "text/csv"): (400, "BadInput", "the body is not CSV: unexpected end of data (line 1)"),
    ("hooks", b"caf\xe9", "text/csv; charset=utf-8"): (400, "BadInput", "the body is not utf-8 text: "),
    ("hooks", b"a", "text/csv; charset=klingon"): (400, "BadInput", "the charset 'klingon' is unknown; send utf-8"),
    ("hooks", b"no numpy", NPY_TYPE): (400, "BadInput", "the body is not NPY: "),
    ("hooks", npy([1, 2])[:-1], NPY_TYPE): (400, "BadInput", "16 bytes); 15 bytes follow it"),
    ("hooks", OBJECTS, NPY_TYPE): (400, "BadInput", "object"),
    ("hooks", b" " * 1_000_001, JSON_TYPE): (413, "PayloadTooLarge", "send less, or raise it with --max-body"),
    ("hooks", b'"raise"', JSON_TYPE): (500, "PredictionFailed", "predict_fn raised RuntimeError: the hook's own words"),
    ("hooks", b'"exit"', JSON_TYPE): (500, "PredictionFailed", "predict_fn raised SystemExit: 3"),
    ("hooks", b'"memory"', JSON_TYPE): (507, "OutOfMemory", "predict_fn ran out of memory"),
    ("hooks", b'"pair"', JSON_TYPE): (
        500,
        "BadOutput",
        "must return (bytes, content type); it returned dict",
    ),
    ("hooks", b'"object"', JSON_TYPE): (500, "BadOutput", "the prediction (object) cannot be written as application"),
    ("hooks", b'"header"', JSON_TYPE): (500, "BadOutput", "a content type that no header can carry"),
    ("count", b"1", JSON_TYPE): (500, "BadOutput", "predict_batch_fn was given 1 inputs and returned 2 predictions"),
    ("dense", b"", JSON_TYPE): (400, "BadInput", "the input 'x' is empty; expected application/json"),
    ("dense", b"[1, 2]", JSON_TYPE): (400, "BadInput", "x has shape (2); expected (any, 3), or (3) for one record"),
    ("dense", b"[[1, 2, null]]", JSON_TYPE): (400, "BadInput", "x[0][2] is null; expected a number"),
    ("dense", b"[[1, 2, 3], [4]]", JSON_TYPE): (400, "BadInput", "x is ragged"),
    ("dense", b"[[1, 2, 3]]", "image/jpeg"): (
        415,
        "UnsupportedMediaType",
        "'x' cannot be read from image/jpeg; expected",
    ),
    ("dense", b"[[1, 2, 3]]", "a/never"): (415, "UnsupportedMediaType", "the input 'x' cannot be read from a/never"),
    ("dense", OBJECTS, NPY_TYPE): (400, "BadInput", "object"),
    ("dense", b"1,2,x\n", "text/csv"): (400, "BadInput", "x[0][2] is 'x'; expected a number"),
    ("gone", b"[]", JSON_TYPE): (404, "ModelNotFound", "no model 'gone' is served; served: count, dense, hooks, kind"),
}


@pytest.mark.parametrize(("sent", "expected"), FAULTS.items(), ids=[f"{key[0]} {key[1][:12]!r}" for key in FAULTS])
def test_each_fault_has_its_status_and_its_sentence(
    server: Server, sent: tuple[str, bytes, str], expected: tuple[int, str, str]
) -> None:
    (model, body, content_type), (status, type_, says) = sent, expected
    reply = ask(server, model, body, content_type, x_request_id="mine")
    error = reply.json()
    assert (reply.status_code, error["code"], error["type"]) == (status, status, type_), error
    assert says in error["message"]
    assert error["request_id"] == reply.headers["x-request-id"] == "mine"
    assert "Traceback" not in reply.text
    assert str(Path(__file__).parent) not in reply.text


@pytest.mark.parametrize(
    ("content_type", "seen"),
    [(None, ""), ("", ""), ("text/csv; charset=utf-8", "text/csv; charset=utf-8"), ("A/b;c=D", "A/b;c=D")],
)
def test_a_hook_sees_the_content_type_as_it_was_sent(server: Server, content_type: str | None, seen: str) -> None:
    assert ask(server, "kind", b"x", content_type).json() == seen


@pytest.mark.parametrize(
    "content_type", ["text/csv; charset=utf-8", "TEXT/CSV", "text/csv;header=absent", "application/csv"]
)
def test_csv_is_csv_whatever_its_parameters(server: Server, content_type: str) -> None:
    assert ask(server, "hooks", b"1,a\n", content_type).json() == [[1.0, "a"]]


@pytest.mark.parametrize(
    ("accept", "status", "answered"),
    [
        (None, 200, "application/json"),
        ("*/*", 200, "application/json"),
        ("text/csv", 200, "text/csv"),
        ("text/csv;q=0.4, application/json;q=0.5", 200, "application/json"),
        ("text/csv;q=.9, application/json;q=0.5", 200, "text/csv"),
        ("application/*", 200, "application/json"),
        ("text/html, */*;q=0.1", 200, "application/json"),
        ("application/x-npy", 200, "application/x-npy"),
        ("application/json;q=0, */*", 200, "application/x-npy"),
        ("image/png", 406, "application/json"),
        ("text/csv;q=0, image/*", 406, "application/json"),
    ],
)
def test_accept_chooses_among_what_the_answer_can_be(
    server: Server, accept: str | None, status: int, answered: str
) -> None:
    headers = {} if accept is None else {"accept": accept}
    reply = ask(server, "dense", json.dumps(GOOD).encode(), **headers)
    assert (reply.status_code, reply.headers["content-type"]) == (status, answered)
    if status == 406:
        assert accept is not None
        assert reply.json()["type"] == "NotAcceptable"
        assert "it can be written as application/json" in reply.json()["message"]


def test_nan_and_the_infinities_are_null(server: Server) -> None:
    assert ask(server, "hooks", b'"nan"').json() == {"a": None, "b": [None, 1.5]}
    reply = ask(server, "dense", npy(np.array([[np.nan, 1, 2]], np.float32)), "application/x-npy")
    assert reply.json() == [[[None] * 4]]


def test_a_fault_is_its_clients_alone(server: Server) -> None:
    """Good and bad requests at once: each gets its own answer, and no bad one's words are in another's."""
    bodies = [b'"secret %d"' % index if index % 3 else b'{"secret %d": [1' % index for index in range(60)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda body: ask(server, "hooks", body), bodies))
    for index, reply in enumerate(replies):
        if index % 3:
            assert (reply.status_code, reply.json()) == (200, f"secret {index}")
        else:
            assert reply.status_code == 400
            assert "secret" not in reply.text
