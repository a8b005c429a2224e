from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from cli.process import FORECASTLE, serving
from forecastle.cli import sagemaker

PROGRAM = FORECASTLE[:2]


def test_every_variable_of_the_platform_sets_its_option() -> None:
    environment = {
        "SAGEMAKER_BIND_TO_PORT": "9000",
        "SAGEMAKER_SAFE_PORT_RANGE": "9001-9010",
        "SAGEMAKER_MODEL_SERVER_WORKERS": "2",
        "SAGEMAKER_MODEL_SERVER_TIMEOUT": "2",
        "SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS": "30",
        "SAGEMAKER_STARTUP_TIMEOUT": "600",
        "SAGEMAKER_MAX_PAYLOAD_IN_MB": "6",
        "SAGEMAKER_MULTI_MODEL": "True",
        "SAGEMAKER_CONTAINER_LOG_LEVEL": "40",
        "SAGEMAKER_BASE_DIR": "/ml",
    }
    found = sagemaker.settings(environment, contained=False)
    assert {key: value for key, (_, value) in found.items()} == {
        "port": "9000",
        "management_port": "9001",
        "replicas": "2",
        "timeout": "30",
        "start_timeout": "600",
        "max_body": "6MB",
        "multi_model": "true",
        "log_level": "error",
        "model_root": "/ml/models",
    }
    unused = {"SAGEMAKER_MODEL_SERVER_TIMEOUT"}  # the newer one, in seconds, counts where both are set
    assert {source for source, _ in found.values()} == set(sagemaker.VARIABLES) - unused
    assert sagemaker.settings({"SAGEMAKER_MODEL_SERVER_TIMEOUT": "2"}, contained=False)["timeout"][1] == "2m"


def test_an_empty_variable_says_nothing_and_a_container_listens_to_all_its_networks() -> None:
    assert sagemaker.settings({"SAGEMAKER_BIND_TO_PORT": " "}, contained=False) == {}
    assert sagemaker.settings({}, contained=True)["host"][1] == "0.0.0.0"


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_a_model_directory_counts_only_with_something_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        (tmp_path / "model").mkdir()
    monkeypatch.setenv("SM_MODEL_DIR", str(tmp_path / "model"))
    assert sagemaker.model() is None
    (tmp_path / "model").mkdir(exist_ok=True)
    (tmp_path / "model" / "weights").touch()
    assert sagemaker.model() == str(tmp_path / "model")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def model(folder: Path) -> Path:
    code = folder / "ml" / "model" / "code"
    code.mkdir(parents=True)
    (code / "inference.py").write_text("def predict_fn(data, model):\n    return sum(data)\n")
    return code.parent


def test_serve_alone_serves_the_platforms_model_on_the_platforms_port(tmp_path: Path) -> None:
    port, directory = free_port(), model(tmp_path)
    environment = {
        "SM_MODEL_DIR": str(directory),
        "SAGEMAKER_BIND_TO_PORT": str(port),
        "SAGEMAKER_MODEL_SERVER_WORKERS": "2",
    }
    command = [*PROGRAM, "--management-port", "0"]
    with serving(folder=tmp_path, command=command, environment=environment) as server:
        assert server.url == f"http://127.0.0.1:{port}"
        assert len(server.replicas()) == 2
        assert server.post("/invocations", b"[1, 2, 3]").json() == 6
        assert httpx.get(f"{server.url}/execution-parameters").json()["MaxPayloadInMB"] == 6


def test_our_own_variable_and_flag_count_more(tmp_path: Path) -> None:
    environment = {"SM_MODEL_DIR": str(model(tmp_path)), "SAGEMAKER_BIND_TO_PORT": "1"}
    with serving(folder=tmp_path, environment=environment) as server:
        assert not server.url.endswith(":1")


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    environment = {"SAGEMAKER_BIND_TO_PORT": "many", "PATH": ""}
    done = subprocess.run(
        [*PROGRAM, "a=b.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "port in SAGEMAKER_BIND_TO_PORT: 'many' is not a port" in done.stderr
