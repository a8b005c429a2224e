"""Answering a batch: read each item, predict them together, write each answer.

Every item ends in exactly one outcome, and no item's fault reaches another: reading and writing are per item, and a
batch whose prediction raises is predicted again one item at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from forecastle.errors import BadInput, BadOutput, DeadlineExceeded, OutOfMemory, PredictionFailed, RequestError
from forecastle.hooks.current import CurrentRequest, enter
from forecastle.hooks.resolve import Hooks
from forecastle.hooks.streaming import Stream
from forecastle.messages import Part

logger = logging.getLogger(__name__)

HOOK_FAILURES = (Exception, SystemExit)
"""What a hook may raise without ending the replica: anything, and ``sys.exit()`` too."""

CLIENT_FAULTS = (ValueError, LookupError)
"""What a parser raises at bad bytes (malformed JSON, a missing key): from ``input_fn`` these are the client's fault."""


@dataclass(slots=True)
class Job:
    """One item of a batch as the replica works on it; ``result`` is a prediction or the error that ended the item.

    ``request`` is what the hooks see of it.
    """

    id: str
    parts: list[Part]
    accept: str
    deadline: float
    result: Any = None
    request: CurrentRequest | None = None


class Begun(NamedTuple):
    """An answer in pieces, of which the first is there; ``rest`` makes the others, and says as an error why it ends."""

    first: bytes
    content_type: str
    rest: Iterator[bytes | RequestError]


Answer = tuple[bytes, str] | Begun | RequestError


class Executor:
    """Runs a model's hooks over batches, in the thread that calls it."""

    def __init__(self, hooks: Hooks, clock: Callable[[], float] = time.monotonic) -> None:
        self._hooks = hooks
        self._clock = clock

    def answer(self, jobs: list[Job]) -> list[Answer]:
        """Return one answer for each job, in order."""
        if self._hooks.transform is not None:
            transform = self._hooks.transform
            return [
                _begun(job, "transform_fn", self._in_time(job, "transform_fn", transform, job.parts, job.accept))
                for job in jobs
            ]
        for job in jobs:
            job.result = self._read(job)
        self._predict([job for job in jobs if not isinstance(job.result, RequestError)])
        return [self._write(job) for job in jobs]

    def _read(self, job: Job) -> Any:
        enter(job.request)
        try:
            return self._hooks.read(job.parts)
        except HOOK_FAILURES as error:
            return _read_failure(job, error)

    def _write(self, job: Job) -> Answer:
        if isinstance(job.result, RequestError):
            return job.result
        enter(job.request)
        try:
            body = self._hooks.write(job.result, job.accept)
        except HOOK_FAILURES as error:
            return _failure(job, "output_fn", error)
        return _begun(job, "a hook that yields", body) if isinstance(body, Stream) else body

    def _predict(self, jobs: list[Job]) -> None:
        """Put a prediction, or the error that took its place, into each job."""
        together = self._hooks.predict_batch
        if together is None:
            predict = self._hooks.predict
            for job in jobs:
                job.result = self._in_time(job, "predict_fn", predict, job.result)
            return
        now = self._clock()
        for job in jobs:
            if job.deadline <= now:
                job.result = _late(job)
        jobs = [job for job in jobs if not isinstance(job.result, RequestError)]
        if not jobs:
            return
        enter(None)
        try:
            predictions = _counted(together([job.result for job in jobs]), len(jobs))
        except HOOK_FAILURES as error:
            if len(jobs) == 1:
                jobs[0].result = _failure(jobs[0], "predict_batch_fn", error)
                return
            logger.warning("a batch of %d failed (%s); predicting its items one by one", len(jobs), _said(error))
            for job in jobs:
                self._predict([job])
            return
        for job, prediction in zip(jobs, predictions, strict=True):
            job.result = prediction

    def _in_time(self, job: Job, hook: str, function: Callable[..., Any], *args: Any) -> Any:
        if job.deadline <= self._clock():
            return _late(job)
        enter(job.request)
        try:
            return function(*args)
        except HOOK_FAILURES as error:
            return _failure(job, hook, error)


def _begun(job: Job, hook: str, body: Any) -> Any:
    """Make the first piece of a body that comes in pieces, so that what fails at once fails with a status."""
    if not isinstance(body, Stream):
        return body
    rest = _guarded(job, hook, body.pieces)
    first = next(rest, b"")
    return first if isinstance(first, RequestError) else Begun(first, body.content_type, rest)


def _guarded(job: Job, hook: str, pieces: Iterator[bytes]) -> Iterator[bytes | RequestError]:
    while True:
        enter(job.request)
        try:
            piece = next(pieces, None)
        except HOOK_FAILURES as error:
            yield _failure(job, hook, error)
            return
        if piece is None:
            return
        yield piece


def _counted(predictions: Any, expected: int) -> list[Any]:
    if not isinstance(predictions, list | tuple):
        raise BadOutput(f"predict_batch_fn must return a list; it returned {type(predictions).__name__}")
    if len(predictions) != expected:
        raise BadOutput(f"predict_batch_fn was given {expected} inputs and returned {len(predictions)} predictions")
    return list(predictions)


def _late(job: Job) -> RequestError:
    return DeadlineExceeded(f"the deadline of request {job.id} passed before the replica could predict")


def _read_failure(job: Job, error: BaseException) -> RequestError:
    if isinstance(error, CLIENT_FAULTS):
        logger.info("request %s: input_fn refused the input", job.id, exc_info=error)
        return BadInput(f"the input could not be read: {_said(error)}")
    return _failure(job, "input_fn", error)


def _failure(job: Job, hook: str, error: BaseException) -> RequestError:
    """Turn what a hook raised into the error its client gets; the traceback goes to the log alone."""
    if not isinstance(error, RequestError) or (error.__cause__ is not None and error.status >= 500):
        logger.error("request %s: %s raised", job.id, hook, exc_info=error)
    if isinstance(error, RequestError):
        return error
    if isinstance(error, MemoryError):
        return OutOfMemory(f"{hook} ran out of memory")
    return PredictionFailed(f"{hook} raised {_said(error)}")


def _said(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
