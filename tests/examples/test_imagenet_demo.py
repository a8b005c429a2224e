from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from examples.imagenet import archive, demo

ROOT = Path(__file__).parents[2]
LIMIT = 60.0

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an earlier run has left its archive; each run here has a port of its own."""
    folder = tmp_path_factory.mktemp("demo")
    archive.build(folder / demo.CACHE / f"{archive.NAME}.zip")
    return folder


@pytest.fixture
def start(earlier: Path) -> Iterator[Start]:
    """Starts the demo, its two streams joined, in that folder; ends it after the test."""
    running: list[subprocess.Popen[str]] = []

    def started(**settings: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "examples.imagenet.demo"],
            cwd=earlier,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PORT": str(demo.free_port()), **settings},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        running.append(process)
        return process

    yield started
    for process in running:
        process.terminate()
        process.communicate(timeout=LIMIT)


def test_the_demo_names_the_cat_and_ends(start: Start) -> None:
    process = start(DEMO="once")
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    for name in ("tiger cat", "Egyptian cat", "tabby"):
        assert name in said


def test_the_demo_needs_no_curl(start: Start, tmp_path: Path) -> None:
    process = start(DEMO="once", PATH=str(tmp_path))
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    assert "curl is not installed" in said
    assert "Egyptian cat" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_demo_serves_until_it_is_told_to_end(start: Start, number: signal.Signals) -> None:
    port = demo.free_port()
    process = start(PORT=str(port))
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "Serving until Ctrl-C" in line:
            break
    else:
        pytest.fail("".join(said))
    assert demo.is_healthy(port)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, rest
    assert demo.is_free(port)


def test_a_server_that_cannot_start_ends_the_demo_with_its_reason(start: Start) -> None:
    with socket.create_server((demo.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        process = start(PORT=str(port), DEMO="once")
        said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert f"{port}" in said
    assert "before it was ready" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("setting", ["http", "0", "-1", "65536", "٨٠"])
def test_a_wrong_port_is_refused_by_value(setting: str) -> None:
    with pytest.raises(demo.DemoFailed, match=setting):
        demo.chosen_port(setting)


def test_an_error_for_an_answer_is_shown() -> None:
    with pytest.raises(demo.DemoFailed, match="no model of that name"):
        demo.top(b'{"code": 404, "message": "no model of that name"}')


def test_an_answer_without_a_cat_fails() -> None:
    with pytest.raises(demo.DemoFailed, match="plastic bag"):
        demo.check([{"class": "n03958227 plastic bag", "probability": 0.9}])
