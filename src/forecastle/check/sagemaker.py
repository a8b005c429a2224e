"""SageMaker's container contract as checks: each says in a sentence what it saw.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html
https://docs.aws.amazon.com/sagemaker/latest/dg/mms-container-apis.html
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from forecastle.check.client import HEADERS, Answer, NoAnswer, request
from forecastle.check.target import Target

PING_SECONDS = 2.0
"""How long the platform waits for one ping."""
MEGABYTE = 1 << 20
ATTRIBUTES = "x-amzn-sagemaker-custom-attributes"


class Failed(Exception):
    """The server does not do what it must; the text says what it did."""


class Skipped(Exception):
    """The check says nothing about this server; the text says why."""


@dataclass
class Subject:
    """What is checked and with what: a request that the model answers well, and what it may do besides.

    ``model_url`` is the path, as the server sees it, of a model that a multi-model endpoint is told to load.
    """

    target: Target
    body: bytes = b"{}"
    content_type: str = "application/json"
    given: bool = False
    model_url: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self, body: bytes | None = None, content_type: str | None = None, accept: str | None = None, **headers: str
    ) -> Answer:
        """Invoke the model; the sample is sent where no body is given."""
        sent = {"Content-Type": self.content_type if content_type is None else content_type, **self.headers}
        if not sent["Content-Type"]:
            del sent["Content-Type"]
        if accept is not None:
            sent["Accept"] = accept
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return request(self.target.url, "POST", "/invocations", self.body if body is None else body, sent)

    def get(self, path: str, method: str = "GET", timeout: float = 60.0) -> Answer:
        """Ask for a page."""
        return request(self.target.url, method, path, timeout=timeout)


class Finding(NamedTuple):
    """What one check saw: ``verdict`` is pass, fail or skip."""

    name: str
    verdict: str
    reason: str
    seconds: float


Check = Callable[[Subject], str]


def run(subject: Subject, checks: dict[str, Check] | None = None) -> Iterator[Finding]:
    """Make the checks one after the other, the stop last, and tell each finding when it is there."""
    for name, check in (checks or CHECKS).items():
        began = time.monotonic()
        try:
            verdict, reason = "pass", check(subject)
        except Skipped as skipped:
            verdict, reason = "skip", str(skipped)
        except (Failed, NoAnswer) as failed:
            verdict, reason = "fail", str(failed)
        yield Finding(name, verdict, reason, time.monotonic() - began)


def start(subject: Subject) -> str:
    """Look at what ``/ping`` said while the server started: no answer or not 200, then 200."""
    if not subject.target.starts:
        raise Skipped("it ran already")
    early = subject.target.early()
    return f"serve was taken, and the port; /ping was {_counted(early) or 'never'} and then 200"


def ping(subject: Subject) -> str:
    """Ping as often as the platform does, and sooner."""
    times = []
    for _ in range(10):
        answer = subject.get("/ping", timeout=PING_SECONDS)
        if answer.status != 200:
            raise Failed(f"/ping is {answer.status}")
        times.append(_timed(subject))
    return f"ten times 200, in {max(times) * 1000:.0f} ms at most"


def sample(subject: Subject) -> str:
    """Send the sample request."""
    answer = subject.ask()
    if answer.status == 200:
        return f"200, {answer.content_type}, {len(answer.body)} bytes"
    if subject.given:
        raise Failed(f"the sample request was answered with {answer.status}: {_quoted(answer)}")
    if answer.status >= 500:
        raise Failed(f"{{}} was answered with {answer.status}: {_quoted(answer)}; expected a 4xx, or a sample (--body)")
    raise Skipped(f"{{}} is no input of this model ({answer.status}); give one with --body")


def parameters(subject: Subject) -> str:
    """Add a parameter to the content type."""
    plain, with_parameter = subject.ask(), subject.ask(content_type=f"{subject.content_type}; charset=utf-8")
    return _same(plain, with_parameter, f"{subject.content_type}; charset=utf-8")


def accepts(subject: Subject) -> str:
    """Accept anything, in every way of saying so."""
    plain = subject.ask()
    own = plain.content_type or "application/json"
    tried = ["*/*", f"{own}, */*;q=0.1", f"text/x-never;q=0.9, {own};q=0.8"]
    for accept in tried:
        _same(plain, subject.ask(accept=accept), f"Accept: {accept}")
    return f"without Accept, {', '.join(tried)}: all {plain.status}"


def platform_headers(subject: Subject) -> str:
    """Send what the platform lets through; custom attributes come back only in a form that it takes."""
    answer = request(
        subject.target.url,
        "POST",
        "/invocations",
        subject.body,
        {"Content-Type": subject.content_type, **HEADERS},
    )
    _same(subject.ask(), answer, "the platform's headers")
    echoed = answer.headers.get(ATTRIBUTES)
    if echoed is None:
        return "taken; no custom attributes came back"
    if len(echoed) > 1024 or not (echoed.isascii() and echoed.isprintable()):
        raise Failed(f"custom attributes came back that the platform refuses: {echoed[:80]!r}")
    return f"taken; custom attributes came back: {echoed[:80]!r}"


def wrong_inputs(subject: Subject) -> str:
    """Send what no model takes: each is the client's fault, and nothing of the server's inside may show."""
    tried = {
        "an empty body": subject.ask(b""),
        "a malformed body": subject.ask(b'{"a": [1, 2', "application/json"),
        "an unknown content type": subject.ask(b"\x00\x01", "application/x-never"),
        "no content type": subject.ask(b"\x00\x01", ""),
    }
    for what, answer in tried.items():
        if b"Traceback (most recent call last)" in answer.body or b'File "/' in answer.body:
            raise Failed(f"{what} is answered with a traceback")
        if answer.status >= 500:
            raise Failed(f"{what} is answered with {answer.status}: {_quoted(answer)}; expected a 4xx")
    return ", ".join(f"{what} {answer.status}" for what, answer in tried.items())


def large_bodies(subject: Subject) -> str:
    """Send 6 MB, which must not be too much, and 25 MB and a byte, which must be answered."""
    six, more = subject.ask(b" " * (6 * MEGABYTE)), subject.ask(b" " * (25 * MEGABYTE + 1))
    if six.status == 413:
        raise Failed("a body of 6 MB is refused with 413; the platform sends as much")
    return f"6 MB {six.status}, 25 MB and a byte {more.status}"


def execution_parameters(subject: Subject) -> str:
    """Read the hints for batch transform: two integers and the name of a strategy, or 404."""
    answer = subject.get("/execution-parameters")
    if answer.status == 404:
        return "404, so the platform's defaults hold"
    found = _json(answer, "/execution-parameters")
    concurrent, megabytes, strategy = (
        found.get(key) for key in ("MaxConcurrentTransforms", "MaxPayloadInMB", "BatchStrategy")
    )
    for name, value in (("MaxConcurrentTransforms", concurrent), ("MaxPayloadInMB", megabytes)):
        if type(value) is not int or value < 0:
            raise Failed(f"{name} is {value!r}; expected a whole number")
    if strategy not in {"SingleRecord", "MultiRecord", "SINGLE_RECORD", "MULTI_RECORD"}:
        raise Failed(f"BatchStrategy is {strategy!r}; expected SingleRecord or MultiRecord")
    if isinstance(concurrent, int) and isinstance(megabytes, int) and concurrent * megabytes > 100:
        raise Failed(f"{concurrent} transforms of {megabytes} MB are over the platform's 100 MB")
    return f"{concurrent} at a time, {megabytes} MB, {strategy}"


def concurrent(subject: Subject) -> str:
    """Send 32 requests at once, and ping meanwhile."""
    plain = subject.ask()
    with ThreadPoolExecutor(32) as pool:
        asked = [pool.submit(subject.ask) for _ in range(32)]
        slowest = max(_timed(subject) for _ in range(5))
        statuses = [future.result().status for future in asked]
    if set(statuses) != {plain.status}:
        raise Failed(f"of 32 requests at once some are not {plain.status}: {_counted(statuses)}")
    if slowest > PING_SECONDS:
        raise Failed(f"/ping took {slowest:.1f} s meanwhile; the platform waits {PING_SECONDS:g} s")
    return f"32 at once, all {plain.status}; /ping took {slowest * 1000:.0f} ms at most"


def unknown_paths(subject: Subject) -> str:
    """Ask for what is not there."""
    missing, wrong = subject.get("/no-such-page"), subject.get("/invocations")
    if missing.status != 404:
        raise Failed(f"an unknown path is {missing.status}; expected 404")
    if wrong.status not in {404, 405}:
        raise Failed(f"GET /invocations is {wrong.status}; expected 405")
    return f"an unknown path 404, GET /invocations {wrong.status}"


def streaming(subject: Subject) -> str:
    """Where the sample's answer comes in chunks, see that the first leaves before the last is made."""
    answer = subject.ask()
    if answer.headers.get("transfer-encoding") != "chunked":
        raise Skipped("the sample's answer is not streamed")
    if answer.pieces < 2 or answer.last - answer.first < 0.001:
        raise Failed(f"the answer is in chunks, and all came at once ({answer.pieces} reads)")
    return f"{answer.pieces} pieces, the first after {answer.first:.3f} s, the last after {answer.last:.3f} s"


def multi_model(subject: Subject) -> str:
    """Load, list, describe, invoke and unload a model, and be refused at what cannot be."""
    name = "check-model"
    load = json.dumps({"model_name": name, "url": subject.model_url}).encode()
    outside = json.dumps({"model_name": "outside", "url": "/proc/self"}).encode()

    def step(what: str, expected: int, method: str, path: str, body: bytes | None = None) -> Answer:
        found = request(subject.target.url, method, path, body, {"Content-Type": "application/json"})
        if found.status != expected:
            raise Failed(f"{what} is {found.status}: {_quoted(found)}; expected {expected}")
        return found

    step("invoking a model that is not loaded", 404, "POST", f"/models/{name}/invoke", subject.body)
    step("loading", 200, "POST", "/models", load)
    step("loading it again", 409, "POST", "/models", load)
    listed = _json(step("listing", 200, "GET", "/models"), "/models").get("models", [])
    if name not in [model.get("modelName") for model in listed]:
        raise Failed(f"the list of models does not have it: {listed}")
    described = _json(step("describing", 200, "GET", f"/models/{name}"), f"/models/{name}")
    if described.get("modelUrl") != subject.model_url:
        raise Failed(f"its modelUrl is {described.get('modelUrl')!r}; expected {subject.model_url!r}")
    sent = {"Content-Type": subject.content_type}
    invoked = request(subject.target.url, "POST", f"/models/{name}/invoke", subject.body, sent)
    if invoked.status != 200 and (subject.given or invoked.status == 404):
        raise Failed(f"invoking is {invoked.status}: {_quoted(invoked)}")
    step("unloading", 200, "DELETE", f"/models/{name}")
    step("unloading it again", 404, "DELETE", f"/models/{name}")
    step("loading from outside the models' folder", 400, "POST", "/models", outside)
    return "loaded, 409 the second time, listed, described, invoked, unloaded, 404 the second time, 400 outside"


def stop(subject: Subject) -> str:
    """Send SIGTERM under load: what is in flight ends, and the process with it, with 0."""
    if not subject.target.starts:
        raise Skipped("it is not ours to stop")
    plain = subject.ask().status
    stopping = threading.Event()
    cut: list[str] = []
    answered: list[int] = []

    def ask() -> None:
        while not stopping.is_set():
            try:
                answered.append(subject.ask().status)
            except NoAnswer as nothing:  # noqa: PERF203 -- waiting for the answer takes far longer
                # Once it was told to stop, a new connection may be refused; an answer may not be cut off.
                if not stopping.is_set() or "refused" not in str(nothing):
                    cut.append(str(nothing))
                return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(answered) < 8 and not cut:
        time.sleep(0.01)
    stopping.set()
    code, seconds = subject.target.stop()
    for thread in threads:
        thread.join()
    if code is None:
        raise Failed("it still ran 30 s after SIGTERM; the platform kills it then")
    if code != 0:
        raise Failed(f"SIGTERM ended it with exit code {code}; expected 0\n{subject.target.tail()}")
    if cut:
        raise Failed(f"{len(cut)} of 8 requests in flight at SIGTERM were cut off: {cut[0]}")
    odd = {status for status in answered if status not in {plain, 503}}
    if odd:
        raise Failed(f"at SIGTERM requests were answered with {sorted(odd)}; expected {plain}, or 503")
    first = " as PID 1" if subject.target.first else ""
    return f"SIGTERM{first} under load: what was in flight was answered, exit 0 after {seconds:.1f} s"


CHECKS: dict[str, Check] = {
    "start": start,
    "ping": ping,
    "invocations": sample,
    "content type parameters": parameters,
    "accept": accepts,
    "platform headers": platform_headers,
    "wrong inputs": wrong_inputs,
    "large bodies": large_bodies,
    "execution parameters": execution_parameters,
    "concurrency": concurrent,
    "unknown paths": unknown_paths,
    "streaming": streaming,
    "stop": stop,
}
"""The checks by name, in their order: the one that stops the server is the last."""

MULTI_MODEL: dict[str, Check] = {
    "start": start,
    "ping": ping,
    "unknown paths": unknown_paths,
    "multi-model": multi_model,
    "stop": stop,
}
"""Those of a multi-model endpoint, which serves no model until it is told to load one."""


def _timed(subject: Subject) -> float:
    began = time.monotonic()
    subject.get("/ping")
    return time.monotonic() - began


def _same(plain: Answer, other: Answer, what: str) -> str:
    if (other.status, other.content_type) != (plain.status, plain.content_type):
        raise Failed(
            f"with {what} the answer is {other.status} {other.content_type}, without it {plain.status} "
            f"{plain.content_type}: {_quoted(other)}"
        )
    return f"{plain.status} with and without"


def _json(answer: Answer, path: str) -> dict[str, Any]:
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = None
    if answer.status != 200 or not isinstance(found, dict):
        raise Failed(f"{path} is {answer.status}: {_quoted(answer)}; expected a JSON object")
    return found


def _quoted(answer: Answer) -> str:
    text = " ".join(answer.body[:400].decode(errors="replace").split())
    return text[:160] or "(an empty body)"


def _counted(statuses: list[int]) -> str:
    names = {status: "no answer" if status == 0 else str(status) for status in statuses}
    return ", ".join(f"{statuses.count(status)} x {name}" for status, name in names.items())
