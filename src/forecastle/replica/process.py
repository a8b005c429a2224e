"""The replica's process: accept the frontend, load the model, answer batches until the frontend closes."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from pathlib import Path

import msgspec

from forecastle.errors import ForecastleError, RequestError
from forecastle.hooks.current import CurrentRequest
from forecastle.hooks.resolve import Hooks
from forecastle.messages import Part
from forecastle.replica import lifeline
from forecastle.replica.channel import Channel
from forecastle.replica.executor import HOOK_FAILURES, Answer, Begun, Executor, Job
from forecastle.replica.loading import load_model
from forecastle.replica.spec import ReplicaSpec
from forecastle.replica.streaming import stream
from forecastle.replica.wire import Answers, Batch, Failed, Item, Loading, Outcome, Ping, Pong, Ready, WireError

logger = logging.getLogger(__name__)

EXIT_LOAD_FAILED = 3
EXIT_CONNECTION_BROKE = 4


def main() -> int:
    """Run one replica; its specification is the first line of standard input. Returns the exit code."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return 0
        line += byte
    lifeline.hold(0)
    spec = msgspec.json.decode(bytes(line), type=ReplicaSpec)
    _log_to_stderr()
    forget_working_directory()
    if spec.artifact.kind == "module":
        sys.path.append(str(Path.cwd()))
    with socket.socket(fileno=spec.listen_fd) as listener:
        connection, _ = listener.accept()
    try:
        return serve(Channel(connection), spec)
    except (WireError, OSError, msgspec.DecodeError) as error:
        logger.error("the connection to the frontend broke: %s", error)  # noqa: TRY400 -- a traceback says no more
        return EXIT_CONNECTION_BROKE


def serve(channel: Channel, spec: ReplicaSpec) -> int:
    """Load the model and answer until the frontend closes the channel.

    Raises:
        WireError, OSError, msgspec.DecodeError: the frontend has gone, or sent what is no frame.
    """
    channel.send(Loading())
    try:
        hooks, info = load_model(spec.artifact, name=spec.model, batch_size=spec.batch_size)
    except HOOK_FAILURES as error:
        # Whatever a model's own code raises is the reason to tell; the traceback goes to the log, which is our stderr.
        reason = str(error) if isinstance(error, ForecastleError) else f"{type(error).__name__}: {error}"
        if not isinstance(error, ForecastleError):
            logger.exception("the model %s could not be loaded", spec.model)
        channel.send(Failed(reason, isinstance(error, MemoryError)))
        return EXIT_LOAD_FAILED
    channel.send(Ready(info))
    executor = Executor(hooks)
    while (received := channel.receive()) is not None:
        header, payload = received
        if isinstance(header, Batch):
            _answer(channel, executor, header, payload)
        elif isinstance(header, Ping):
            channel.send(_ping(hooks))
        # else it cancels a body that was whole already
    return 0


def _answer(channel: Channel, executor: Executor, batch: Batch, payload: memoryview) -> None:
    started = time.monotonic()
    offset = 0
    jobs = []
    for item in batch.items:
        job, offset = _job(item, payload, offset, started)
        jobs.append(job)
    answers = executor.answer(jobs)
    outcomes = [_outcome(answer, job) for answer, job in zip(answers, jobs, strict=True)]
    bodies = [answer[0] for answer in answers if not isinstance(answer, RequestError)]
    channel.send(Answers(batch.id, outcomes, time.monotonic() - started), bodies)
    begun = {index: answer.rest for index, answer in enumerate(answers) if isinstance(answer, Begun)}
    if begun:
        stream(channel, batch.id, begun)


def _job(item: Item, payload: memoryview, offset: int, now: float) -> tuple[Job, int]:
    parts = []
    for name, content_type, length in item.parts:
        parts.append(Part(name, content_type, bytes(payload[offset : offset + length])))
        offset += length
    return Job(item.id, parts, item.accept, now + item.budget, None, CurrentRequest(item.id, item.headers)), offset


def _outcome(answer: Answer, job: Job) -> Outcome:
    if isinstance(answer, RequestError):
        own = answer.status if answer.status != type(answer).status else 0
        return Outcome(answer.type, answer.message, 0, status=own)
    assert job.request is not None, "every job of a batch is a request"
    request = job.request
    return Outcome("", answer[1], len(answer[0]), isinstance(answer, Begun), request.reply_headers, request.status)


def _ping(hooks: Hooks) -> Pong:
    if hooks.ping is None:
        return Pong(healthy=True, reason="")
    try:
        healthy = hooks.ping()
    except HOOK_FAILURES as error:
        logger.exception("ping_fn raised")
        return Pong(healthy=False, reason=f"ping_fn raised {type(error).__name__}: {error}")
    return Pong(healthy=healthy, reason="" if healthy else "ping_fn says that the model is not well")


class _Formatter(logging.Formatter):
    """Level and text; what follows the first line is indented, so that the server knows it for a part of the same."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", "\n  ")


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def forget_working_directory() -> None:
    """Take the server's working directory off the import path, so that no file there shadows a module."""
    here = {"", str(os.getcwd())}  # noqa: PTH109 -- the very string that the interpreter put there
    sys.path[:] = [entry for entry in sys.path if entry not in here]
