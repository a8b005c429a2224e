"""The checker, against ourselves, against servers with one fault each, and against what others run on the platform."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.process import FORECASTLE
from forecastle.check.sagemaker import CHECKS, MULTI_MODEL, Subject, run
from forecastle.check.target import Running, may_be_first, started
from forecastle.errors import StartError
from side import side_environment

MODEL = """
import json, time, forecastle

def input_fn(input_data, content_type):
    if not content_type.startswith("application/json"):
        raise forecastle.UnsupportedMediaType("JSON, please")
    return json.loads(input_data)

def predict_fn(data, model):
    if data == "stream":
        return pieces()
    return data

def pieces():
    for number in range(3):
        yield {"number": number}
        time.sleep(0.01)
"""
SERVE = [sys.executable, "-m", "forecastle.cli", "serve", "--management-port", "0"]


def verdicts(subject: Subject, checks: Any = CHECKS) -> dict[str, str]:
    findings = list(run(subject, checks))
    assert not [finding for finding in findings if "\n" in finding.reason], "a reason is one line"
    return {finding.name: finding.verdict + ": " + finding.reason for finding in findings}


def passed(found: dict[str, str]) -> set[str]:
    return {name for name, said in found.items() if said.startswith("pass")}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "m.py"
    file.write_text(MODEL)
    return file


@pytest.mark.parametrize(("body", "not_made"), [(b'{"a": 1}', {"streaming"}), (b'"stream"', set())])
def test_our_own_server_passes_every_check(model: Path, body: bytes, not_made: set[str]) -> None:
    first = may_be_first()
    with started([*SERVE, str(model)], {}, 60, first=first) as server:
        found = verdicts(Subject(server, body, given=True))
    assert passed(found) == set(CHECKS) - not_made, found
    assert ("as PID 1" in found["stop"]) is first


def test_our_own_multi_model_endpoint_passes_every_check(tmp_path: Path) -> None:
    code = tmp_path / "models" / "abc" / "model" / "code"
    code.mkdir(parents=True)
    (code / "inference.py").write_text("def predict_fn(data, model):\n    return data\n")
    root = str(tmp_path / "models")
    with started([*SERVE, "--model-root", root], {"SAGEMAKER_MULTI_MODEL": "true"}, 60) as server:
        found = verdicts(Subject(server, given=True, model_url=str(code.parent)), MULTI_MODEL)
    assert passed(found) == set(MULTI_MODEL), found


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [FORECASTLE[0], "check", "sagemaker", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_the_command_prints_a_table_and_exits_by_it(model: Path, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text("[1]")
    done = command(str(model), "--body", str(tmp_path / "body.json"))
    assert (done.returncode, done.stderr) == (0, "")
    heading, *rows, last = done.stdout.splitlines()
    assert heading.split() == ["check", "verdict", "what", "was", "seen", "seconds"]
    assert len(rows) == len(CHECKS)
    assert last == f"{len(CHECKS) - 1} passed, 0 failed, 1 skipped"
    with faulty(ping=503) as url:
        done = command(url)
        assert done.returncode == 1
        assert "ping" in next(line for line in done.stdout.splitlines() if "fail" in line)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("gone.py",), 1, "the server ended with 1"),
        (("http://127.0.0.1:1", "--multi-model"), 2, "--model-dir"),
        (("http://127.0.0.1:1", "--body", "gone"), 2, "--body gone cannot be read: No such file"),
        (("no-such-program serve", "--command"), 1, "'no-such-program' cannot be started"),
    ],
)
def test_what_cannot_be_checked_is_said_in_a_sentence(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = command(*arguments)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


def test_a_server_that_never_becomes_ready_is_given_up_with_what_it_printed() -> None:
    silent = [sys.executable, "-c", "print('hello', flush=True); input() if 0 else __import__('time').sleep(60)"]
    with pytest.raises(StartError, match=r"(?s)/ping was not 200 within 0\.5 s:.*hello"), started(silent, {}, 0.5):
        pass


class Handler(BaseHTTPRequestHandler):
    """A container that keeps the contract but for the faults that its server names."""

    protocol_version = "HTTP/1.1"
    server: Any

    def reply(self, status: int, body: bytes = b"{}", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", headers.pop("content_type", "application/json"))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        faults = self.server.faults
        if self.path == "/ping":
            self.reply(faults.get("ping", 200), b"")
        elif self.path == "/execution-parameters":
            good = {"MaxConcurrentTransforms": 1, "BatchStrategy": "MultiRecord", "MaxPayloadInMB": 6}
            self.reply(200, json.dumps(good | faults.get("parameters", {})).encode())
        elif self.path == "/invocations":
            self.reply(405)
        else:
            self.reply(faults.get("unknown", 404))

    def do_POST(self) -> None:
        faults = self.server.faults
        length = int(self.headers["Content-Length"])
        if faults.get("limit") and length > faults["limit"]:
            self.reply(413)
            self.close_connection = True
            return
        body = self.rfile.read(length)
        content_type = self.headers.get("Content-Type", "")
        if faults.get("exact") and content_type != "application/json":
            self.reply(415)
        elif faults.get("accept") and self.headers.get("Accept"):
            self.reply(406)
        elif self.headers.get("X-Amzn-SageMaker-Custom-Attributes") and "echo" in faults:
            self.reply(200, **{"X-Amzn-SageMaker-Custom-Attributes": faults["echo"]})
        elif body.strip() in {b"{}", b""} and body:
            if faults.get("chunked"):
                self.chunked()
            else:
                self.reply(faults.get("sample", 200))
        else:
            self.reply(faults.get("wrong", 400), faults.get("body", b"{}"))

    def chunked(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


@contextmanager
def faulty(**faults: Any) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), Handler)
    server.faults = faults  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_faultless_container_fails_nothing() -> None:
    with faulty() as url:
        found = verdicts(Subject(Running(url), given=True))
    assert not [said for said in found.values() if said.startswith("fail")], found
    assert found["start"] == "skip: it ran already"
    assert found["stop"] == "skip: it is not ours to stop"


@pytest.mark.parametrize(
    ("faults", "check", "says"),
    [
        ({"ping": 500}, "ping", "/ping is 500"),
        ({"sample": 500}, "invocations", "the sample request was answered with 500"),
        ({"exact": True}, "content type parameters", "application/json; charset=utf-8 the answer is 415"),
        ({"accept": True}, "accept", "Accept: */* the answer is 406"),
        ({"echo": "caf\u00e9"}, "platform headers", "custom attributes came back that the platform refuses"),
        ({"echo": "x" * 1025}, "platform headers", "custom attributes came back that the platform refuses"),
        ({"wrong": 500}, "wrong inputs", "an empty body is answered with 500"),
        ({"body": b"Traceback (most recent call last)"}, "wrong inputs", "is answered with a traceback"),
        ({"limit": 5_000_000}, "large bodies", "a body of 6 MB is refused with 413"),
        ({"parameters": {"MaxPayloadInMB": "6"}}, "execution parameters", "MaxPayloadInMB is '6'"),
        ({"parameters": {"MaxConcurrentTransforms": True}}, "execution parameters", "MaxConcurrentTransforms is True"),
        ({"parameters": {"BatchStrategy": "Any"}}, "execution parameters", "BatchStrategy is 'Any'"),
        ({"parameters": {"MaxConcurrentTransforms": 20}}, "execution parameters", "20 transforms of 6 MB are over"),
        ({"unknown": 200}, "unknown paths", "an unknown path is 200"),
        ({"chunked": True}, "streaming", "all came at once"),
    ],
)
def test_a_fault_fails_its_check_and_says_what_was_seen(faults: dict[str, Any], check: str, says: str) -> None:
    with faulty(**faults) as url:
        found = verdicts(Subject(Running(url), given=True), {check: CHECKS[check]})
    assert found[check].startswith("fail: "), found
    assert says in found[check]


def test_a_server_that_is_cut_off_by_sigterm_fails_the_stop(tmp_path: Path) -> None:
    program = tmp_path / "cut.py"
    program.write_text(
        "import http.server, os, sys, time\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n        self.send_response(200); self.end_headers()\n"
        "    def do_POST(self):\n"
        "        self.rfile.read(int(self.headers['Content-Length'])); time.sleep(0.05)\n"
        "        self.send_response(200); self.send_header('Content-Length', '0'); self.end_headers()\n"
        "http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n"
    )
    with started([sys.executable, str(program), "{port}"], {}, 30) as server:
        findings = list(run(Subject(server), {"stop": CHECKS["stop"]}))
    assert findings[0].verdict == "fail"
    assert "SIGTERM ended it with exit code -15; expected 0" in findings[0].reason


def test_inference_server_under_gunicorn_shows_its_differences(tmp_path: Path) -> None:
    python = side_environment("inference-server==1.3.3", "pytest>=8", "gunicorn>=23")
    (tmp_path / "plugin.py").write_text(
        "import inference_server, json\n"
        "@inference_server.plugin_hook\n"
        "def input_fn(input_data, content_type):\n    return json.loads(input_data)\n"
        "@inference_server.plugin_hook\n"
        "def output_fn(prediction, accept):\n    return json.dumps(prediction).encode(), 'application/json'\n"
    )
    (tmp_path / "served.py").write_text(
        "import inference_server.testing, plugin\n"
        "inference_server.testing.plugin_manager().register(plugin)\n"
        "app = inference_server.create_app()\n"
    )
    gunicorn = [python, "-m", "gunicorn", "served:app", "-b", "127.0.0.1:{port}", "--chdir", str(tmp_path)]
    with started(gunicorn, {}, 60) as server:
        found = verdicts(Subject(server, b'{"a": 1}', given=True))
    assert found["wrong inputs"].startswith("fail: an empty body is answered with 500"), found
    assert passed(found) >= {"start", "ping", "invocations", "accept", "execution parameters", "unknown paths"}, found


TOOLKIT = """
import sys
sys.path.insert(0, {folder!r})
from sagemaker_inference.transformer import Transformer
from sagemaker_inference import environment

class Handler:
    def default_model_fn(self, model_dir): return None
    default_input_fn = default_predict_fn = default_output_fn = None

class Context:
    system_properties = {{"model_dir": {folder!r}}}
    def __init__(self, environ):
        self.status, self.type = "200 OK", "text/plain"
        self.request_processor = [self]
        self._properties = {{"Content-Type": environ.get("CONTENT_TYPE", ""), "Accept": environ.get("HTTP_ACCEPT", "")}}
    def get_request_properties(self): return self._properties
    def set_response_content_type(self, index, value): self.type = value
    def set_response_status(self, code, phrase, idx=0): self.status = f"{{int(code)}} {{phrase}}"

transformer = Transformer()

def app(environ, start_response):
    if environ["PATH_INFO"] == "/ping":
        start_response("200 OK", [("Content-Length", "0")])
        return [b""]
    if environ["PATH_INFO"] != "/invocations" or environ["REQUEST_METHOD"] != "POST":
        start_response("404 Not Found", [("Content-Length", "0")])
        return [b""]
    context = Context(environ)
    (body,) = transformer.transform([{{"body": environ["wsgi.input"].read()}}], context)
    body = body.encode() if isinstance(body, str) else body
    start_response(context.status, [("Content-Type", context.type), ("Content-Length", str(len(body)))])
    return [body]
"""


def test_the_toolkit_itself_shows_tracebacks_and_takes_no_parameters(tmp_path: Path) -> None:
    """Its handlers, with the smallest front there is: its own needs a Java server."""
    python = side_environment("sagemaker-inference==1.10.1", "gunicorn>=23")
    (tmp_path / "inference.py").write_text(
        "def model_fn(model_dir): return None\ndef predict_fn(data, model): return data\n"
    )
    (tmp_path / "served.py").write_text(TOOLKIT.format(folder=str(tmp_path)))
    gunicorn = [python, "-m", "gunicorn", "served:app", "-b", "127.0.0.1:{port}", "--chdir", str(tmp_path)]
    with started(gunicorn, {}, 60) as server:
        found = verdicts(Subject(server, b"[1, 2]", given=True))
    assert found["invocations"].startswith("pass"), found
    assert "is answered with a traceback" in found["wrong inputs"]
    assert found["content type parameters"].startswith("fail"), found
