from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from cli.process import FORECASTLE, PATIENCE, PORTS, SHIPPING, Server, all_gone, eventually, serving, starting

# A model that says that it has begun and then waits until it may go on: both by files beside it.
WAITING = """
import pathlib, time
here = pathlib.Path(__file__).parent

def wait(step):
    (here / f"{step}.begun").touch()
    while not (here / f"{step}.go").exists():
        time.sleep(0.01)
"""
SLOW_TO_LOAD = WAITING + "def model_fn(model_dir):\n    wait('load')\n    return lambda data: data\n"
SLOW_TO_PREDICT = WAITING + "def predict_fn(data, model):\n    wait('predict')\n    return data\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shipping.py").write_text(SHIPPING)
    return tmp_path


def refused(*arguments: str, folder: Path) -> tuple[int, str]:
    """Run a command that must end by itself; return its exit code and what it said on stderr."""
    with starting(*arguments, folder=folder) as server:
        return server.end(), server.log


@pytest.mark.parametrize(
    ("source", "name"), [("shipping.py", "shipping"), ("ship=shipping.py", "ship"), ("ship=shipping", "ship")]
)
def test_a_hook_file_or_module_is_served_under_its_name(folder: Path, source: str, name: str) -> None:
    with serving(source, folder=folder) as server:
        reply = server.post(f"/{name}/predict", b'{"location": "Fair Isle"}')
        assert reply.json() == {"prediction": {"location": "Fair Isle", "weather": "Thundery showers."}}
        assert server.post("/invocations", b'{"location": "Viking"}').json()["location"] == "Viking"


def test_the_table_says_what_is_served_and_where(folder: Path) -> None:
    with serving("a=shipping.py", "b=shipping.py", "--replicas", "b=2", folder=folder) as server:
        assert [re.split(r"\s{2,}", line) for line in server.table] == [
            ["model", "version", "runtime", "replicas", "state", "endpoints"],
            ["a", "1", "script", "1", "ready", "/a/predict"],
            ["b", "1", "script", "2", "ready", "/b/predict"],
        ]
        assert httpx.get(f"{server.url}/ping").json() == {"health": "healthy!"}
        assert httpx.get(f"{server.management}/metrics").status_code == 200
        assert len(server.replicas()) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_its_replicas_with_exit_code_0(folder: Path, number: signal.Signals) -> None:
    with serving("shipping.py", folder=folder) as server:
        replicas = server.replicas()
        server.signal(number)
        assert server.end() == 0
        assert all_gone(replicas)
        assert "Traceback" not in server.log


def test_a_request_in_flight_is_answered_before_the_end(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW_TO_PREDICT)
    with serving("slow.py", folder=folder) as server:
        replies: list[httpx.Response] = []
        client = threading.Thread(target=lambda: replies.append(server.post("/slow/predict", b"[1]")))
        client.start()
        eventually((folder / "predict.begun").exists, "the prediction to begin")
        server.signal(signal.SIGTERM)
        eventually(lambda: "SIGTERM: stopping" in server.log, "the signal to be seen")
        (folder / "predict.go").touch()
        client.join(PATIENCE)
        assert server.end() == 0
        assert replies[0].json() == {"prediction": [1]}


def test_a_second_signal_ends_the_server_at_once(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW_TO_PREDICT)
    with serving("slow.py", folder=folder) as server:
        replicas = server.replicas()
        with socket.create_connection((httpx.URL(server.url).host, httpx.URL(server.url).port or 0)) as client:
            client.sendall(b"POST /slow/predict HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n[1]")
            eventually((folder / "predict.begun").exists, "the prediction to begin")
            server.signal(signal.SIGINT)
            eventually(lambda: "SIGINT: stopping" in server.log, "the first signal to be seen")
            server.signal(signal.SIGINT)
            assert server.end() == 128 + signal.SIGINT
        eventually(lambda: all_gone(replicas), "the replicas to be gone")


def listening(server: Server) -> str:
    """The URL of a server that may not be ready."""
    eventually(lambda: "listening on port" in server.log, "the port to open")
    match = re.search(r"listening on port (\d+)", server.log)
    assert match is not None
    return f"http://127.0.0.1:{match[1]}"


def test_the_port_is_open_and_not_ready_while_models_load(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW_TO_LOAD)
    with starting("slow.py", folder=folder) as server:
        url = listening(server)
        eventually((folder / "load.begun").exists, "the model to begin loading")
        assert httpx.get(f"{url}/ping").status_code == 503
        assert httpx.get(f"{url}/live").status_code == 200
        (folder / "load.go").touch()
        server.wait_ready()
        assert server.url == url
        assert httpx.get(f"{url}/ping").status_code == 200


def test_a_signal_while_models_load_ends_the_server_in_order(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW_TO_LOAD)
    with starting("slow.py", folder=folder) as server:
        eventually((folder / "load.begun").exists, "the model to begin loading")
        replicas = server.replicas()
        server.signal(signal.SIGTERM)
        assert server.end() == 0
        assert all_gone(replicas)


def test_a_signal_during_a_download_that_hangs_ends_the_server_at_once(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with starting(f"net=http://127.0.0.1:{silent.getsockname()[1]}/net.zip", folder=folder) as server:
            connection, _ = silent.accept()
            with connection:
                server.signal(signal.SIGTERM)
                assert server.end() == 0


@pytest.mark.parametrize(("option", "other"), [("--port", "--management-port"), ("--management-port", "--port")])
def test_a_port_that_is_taken_ends_the_start_with_the_flag_to_change(folder: Path, option: str, other: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = (option, port, other, "0", "shipping.py")
        with starting(*arguments, folder=folder, command=FORECASTLE[: -len(PORTS)]) as server:
            assert server.end() == 1
            said = server.log.splitlines()[-1]
    assert said.startswith(f"forecastle: port {port} on 127.0.0.1 is in use")
    assert said.endswith(f"choose another port with {option}")


def test_a_missing_source_ends_the_start_with_its_name(folder: Path) -> None:
    code, said = refused("net=nothing/here.onnx", folder=folder)
    assert code == 1
    assert "nothing/here.onnx" in said.splitlines()[-1]
    assert said.splitlines()[-1].startswith("forecastle: ")
    assert "Traceback" not in said


def test_an_unknown_artifact_ends_the_start_with_its_name(folder: Path) -> None:
    (folder / "notes.txt").write_text("no model")
    code, said = refused("net=notes.txt", folder=folder)
    assert code == 1
    assert "notes.txt" in said.splitlines()[-1]
    assert "Traceback" not in said


def test_a_model_that_fails_to_load_ends_the_start_with_the_tail_of_its_output(folder: Path) -> None:
    (folder / "broken.py").write_text(
        "def model_fn(model_dir):\n    print('reading the weights')\n    raise ValueError('the weights are torn')\n"
    )
    code, said = refused("shipping.py", "broken.py", folder=folder)
    assert code == 1
    message = said[said.rindex("\nforecastle: ") :]
    assert "the model 'broken' could not be loaded: ValueError: the weights are torn" in message
    assert "reading the weights" in message


def test_a_server_whose_stdout_is_closed_serves_on(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with (
        (folder / "log").open("w+") as log,
        subprocess.Popen(
            [*FORECASTLE, "shipping.py"], cwd=folder, stdout=writer, stderr=log, stdin=subprocess.DEVNULL
        ) as process,
    ):
        os.close(writer)
        try:
            eventually(lambda: "stdout is closed" in (folder / "log").read_text(), "the server to be ready")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
