from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecastle.errors import BadInput, DeadlineExceeded, PredictionFailed, RequestError, UnsupportedMediaType
from forecastle.hooks.resolve import Hooks
from forecastle.hooks.spec import BatchStrategy
from forecastle.messages import Part
from forecastle.replica.executor import Answer, Executor, Job


def read(parts: list[Part]) -> Any:
    (part,) = parts
    if part.content_type == "text/weird":
        raise UnsupportedMediaType("weird text cannot be read")
    return part.data.decode()


def predict(data: str) -> str:
    if data.startswith("bad"):
        raise RuntimeError(f"cannot predict {data}")
    if data.startswith("exit"):
        raise SystemExit(3)
    return data.upper()


def predict_batch(batch: list[str]) -> list[str]:
    return [predict(data) for data in batch]


def write(prediction: Any, accept: str) -> tuple[bytes, str]:
    if accept == "nothing":
        raise AttributeError("no writer")
    return str(prediction).encode(), "text/plain"


def hooks(**changes: Any) -> Hooks:
    values: dict[str, Any] = {
        "read": read,
        "predict": predict,
        "predict_batch": None,
        "write": write,
        "transform": None,
        "ping": None,
        "batch_strategy": BatchStrategy.MULTI_RECORD,
        "max_concurrent_transforms": 1,
        "max_payload_in_mb": 6,
    }
    return Hooks(**(values | changes))


def job(data: bytes, content_type: str = "text/plain", accept: str = "*/*", deadline: float = 1e9) -> Job:
    return Job("id", [Part("", content_type, data)], accept, deadline)


def plain(answers: list[Answer]) -> list[object]:
    return [(a.type, a.message) if isinstance(a, RequestError) else a for a in answers]


BODIES = st.sampled_from([b"good", b"fine", b"bad 1", b"bad 2", b"exit", b"\xff\xfe", b""])
JOBS = st.lists(
    st.builds(job, BODIES, st.sampled_from(["text/plain", "text/weird"]), st.sampled_from(["*/*", "nothing"])),
    max_size=12,
)


def again(jobs: list[Job]) -> list[Job]:
    return [Job(j.id, j.parts, j.accept, j.deadline) for j in jobs]


def without_hook(answers: list[Answer]) -> list[object]:
    """The hook that is named in the message differs; who fails, with what, must not."""
    return [
        (a.type, a.message.replace("predict_batch_fn", "predict_fn")) if isinstance(a, RequestError) else a
        for a in answers
    ]


@given(JOBS)
def test_batched_equals_unbatched_for_every_mix_of_good_and_bad(jobs: list[Job]) -> None:
    together = Executor(hooks(predict_batch=predict_batch)).answer(again(jobs))
    apart = [Executor(hooks(predict_batch=predict_batch)).answer([j])[0] for j in again(jobs)]
    unbatched = Executor(hooks()).answer(again(jobs))
    assert plain(together) == plain(apart)
    assert without_hook(together) == without_hook(unbatched)


def test_one_bad_input_fails_alone_and_its_text_reaches_nobody_else() -> None:
    answers = Executor(hooks(predict_batch=predict_batch)).answer([job(b"secret"), job(b"bad"), job(b"c")])
    assert plain(answers) == [
        (b"SECRET", "text/plain"),
        ("PredictionFailed", "predict_batch_fn raised RuntimeError: cannot predict bad"),
        (b"C", "text/plain"),
    ]


@pytest.mark.parametrize("wrong", [lambda batch: batch[:-1], lambda batch: [*batch, "x"], lambda batch: "abc"])
def test_a_wrong_number_of_predictions_is_never_spread_over_the_batch(wrong: Callable[[list[str]], Any]) -> None:
    answers = Executor(hooks(predict_batch=wrong)).answer([job(b"a"), job(b"b")])
    assert all(isinstance(answer, RequestError) for answer in answers)
    assert all("predict_batch_fn" in answer[1] for answer in plain(answers) if isinstance(answer, tuple))


def test_an_expired_item_is_not_predicted() -> None:
    predicted: list[str] = []

    def record(batch: list[str]) -> list[str]:
        predicted.extend(batch)
        return batch

    executor = Executor(hooks(predict_batch=record), clock=lambda: 100.0)
    late, in_time = executor.answer([job(b"late", deadline=99), job(b"in time", deadline=101)])
    assert isinstance(late, DeadlineExceeded)
    assert in_time == (b"in time", "text/plain")
    assert predicted == ["in time"]


@pytest.mark.parametrize(
    "error", [ValueError("no JSON"), KeyError("location"), UnicodeDecodeError("utf-8", b"", 0, 1, "x")]
)
def test_what_a_parser_raises_is_the_clients_fault(error: Exception) -> None:
    def refuse(parts: list[Part]) -> Any:
        raise error

    (answer,) = Executor(hooks(read=refuse)).answer([job(b"")])
    assert isinstance(answer, BadInput)
    assert type(error).__name__ in answer.message


def test_what_else_input_fn_raises_is_the_hooks_fault() -> None:
    def broken(parts: list[Part]) -> Any:
        raise AttributeError("oops")

    (answer,) = Executor(hooks(read=broken)).answer([job(b"")])
    assert isinstance(answer, PredictionFailed)
    assert answer.message == "input_fn raised AttributeError: oops"


def test_a_transform_takes_the_place_of_the_three_steps() -> None:
    def transform(parts: list[Part], accept: str) -> tuple[bytes, str]:
        return parts[0].data[::-1], accept

    (answer,) = Executor(hooks(transform=transform)).answer([job(b"abc", accept="text/x")])
    assert answer == (b"cba", "text/x")
