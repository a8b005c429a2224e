from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.workloads import Workload
from bench.wrk import pattern

from bench import limits, process, report


def lua_matches(expected: str, answer: str) -> bool:
    """Match as Lua does, for the few constructs that ``pattern`` uses."""
    python = re.sub(r"%([^de])", r"\\\1", pattern(expected).replace("[%de%-]", "[0-9e-]"))
    return re.match(python, answer) is not None


ANSWER = '{"prediction": [1,[0.695886611938,1.234567e-05,"a b (c)"]]}'


def test_an_answer_may_differ_beyond_the_sixth_digit_and_nowhere_else() -> None:
    assert lua_matches(ANSWER, ANSWER)
    assert lua_matches(ANSWER, ANSWER.replace("0.695886611938", "0.69588699"))
    assert not lua_matches(ANSWER, ANSWER.replace("0.69588", "0.69589"))
    assert not lua_matches(ANSWER, ANSWER.replace("[1,", "[0,"))
    assert not lua_matches(ANSWER, ANSWER + "x")


def row(subject: str, workload: str, connections: int, rate: float, wrong: int = 0) -> report.Row:
    return report.Row(subject, workload, connections, rate, wrong=wrong)


def test_medians_are_taken_of_rates_and_faults_are_added_up() -> None:
    (merged,) = report.medians([row("a", "W1", 1, 10, 1), row("a", "W1", 1, 30, 0), row("a", "W1", 1, 20, 2)])
    assert (merged.rate, merged.wrong) == (20, 3)


@pytest.mark.parametrize(
    ("ours", "wrong", "holds"), [(19, 0, [True, True]), (17, 0, [False, True]), (19, 1, [True, False])]
)
def test_a_floor_fails_on_a_low_ratio_and_on_any_wrong_answer(ours: float, wrong: int, holds: list[bool]) -> None:
    rows = [row("forecastle", "W2", 64, ours, wrong), row("bare echo", "W2", 64, 100)]
    assert [floor.holds for floor in report.floors(rows)] == holds


@pytest.fixture
def workload() -> Workload:
    source = Path(process.__file__).with_name("models") / "total.py"
    return Workload("W1", source, b"[1,2,3.5]", "application/json")


def test_a_measured_server_answers_is_weighed_and_ends_with_all_it_started(workload: Workload) -> None:
    port = process.free_port()
    with process.running(process.forecastle(workload, port), port, workload) as server:
        assert server.answer == b'{"prediction": 6.5}'
        assert server.megabytes() > 10
        assert server.cpu_seconds() > 0
        tree = process._tree(server.pid)
        assert len(tree) == 2
    assert not any(one.is_running() for one in tree)


@pytest.mark.parametrize("module", ["echo", "raw_asgi"])
def test_the_limits_send_the_body_back(workload: Workload, module: str) -> None:
    port = process.free_port()
    with process.running(process.plain(module, port), port, workload) as server:
        assert server.answer == b"[1,2,3.5]"


def test_the_limit_of_one_process_answers_what_the_server_does(workload: Workload) -> None:
    assert set(limits.measure(workload, 0.01)) == {1, 32}
