"""Applications from the command line to the last byte: real servers, real commands, killed and started again."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.process import FORECASTLE, Server, eventually, serving, starting
from cluster.store.servers import RedisServer


class Commands:
    """Runs ``forecastle`` commands against a server."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self._folder = folder

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "FORECASTLE_SERVER": self._server.management, "COLUMNS": "200"}
        command = [FORECASTLE[0], *words]
        return subprocess.run(
            command, cwd=self._folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    def __call__(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


def says(folder: Path, name: str, text: str) -> str:
    (folder / f"{name}.py").write_text(f"def predict_fn(data, model):\n    return {text!r}\n")
    return f"{name}.py"


def ask(server: Server, application: str, value: object = 1, **more: object) -> Any:
    reply = httpx.post(f"{server.url}/{application}/predict", json={"input": value, **more}, timeout=30)
    assert reply.status_code == 200, reply.text
    return reply.json()["output"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving("--cluster", "c", folder=tmp_path) as server:
        yield server


@pytest.fixture
def forecastle(server: Server, tmp_path: Path) -> Commands:
    return Commands(server, tmp_path)


def test_a_server_that_was_killed_comes_back_with_everything(tmp_path: Path) -> None:
    with serving("--cluster", "c", folder=tmp_path) as server:
        forecastle = Commands(server, tmp_path)
        for version in ("1", "2"):
            source = says(tmp_path, f"m{version}", version)
            forecastle("model", "deploy", f"m={source}", "--version", version, "--label", "kept")
        forecastle("model", "deploy", f"other={says(tmp_path, 'other', 'other')}")
        forecastle("model", "scale", "m", "2")
        forecastle("model", "use", "m", "1")
        forecastle("app", "register", "a", "--link", "m", "--slo", "20s", "--default", "-1", "--type", "doubles")
        forecastle("app", "register", "b", "--link", "m", "--link", "other", "--policy", "exp4", "--slo", "20s")
        for _ in range(3):
            update = {"input": 1, "label": "other"}
            assert httpx.post(f"{server.url}/b/update", json=update, timeout=30).status_code == 200
        assert ask(server, "b") == "other"
        before = forecastle.json("app", "list"), forecastle.json("model", "list")
        time.sleep(1.2)  # what was learned is saved each second
        server.process.kill()
        server.process.wait()
    with serving("--cluster", "c", folder=tmp_path) as server:
        forecastle = Commands(server, tmp_path)
        eventually(lambda: forecastle.json("status")["ready"], "the models to be ready")

        def ready() -> bool:
            models = forecastle.json("status")["models"]
            return all(replica["state"] == "ready" for model in models for replica in model["replicas"])

        eventually(ready, "every replica")
        assert _settled(forecastle.json("app", "list"), forecastle.json("model", "list")) == _settled(*before)
        assert ask(server, "a", [1]) == "1"
        assert ask(server, "a", [1], version="2") == "2"
        assert ask(server, "b") == "other"


def _settled(applications: Any, models: Any) -> Any:
    """What is registered, without what is counted or changes with each start."""
    kept = ("name", "version", "source", "current", "labels", "wanted", "registered")
    return applications, [{key: model.get(key) for key in kept} | {"n": len(model["replicas"])} for model in models]


def test_no_query_is_lost_defaulted_or_answered_by_an_unready_version_while_versions_roll(
    server: Server, forecastle: Commands, tmp_path: Path
) -> None:
    for version in ("1", "2", "3"):
        says(tmp_path, f"m{version}", version)
    forecastle("model", "deploy", "m=m1.py", "--version", "1")
    forecastle("app", "register", "a", "--link", "m", "--slo", "30s", "--cache", "0")
    seen: list[tuple[float, Any]] = []
    stop = threading.Event()

    def load() -> None:
        with httpx.Client(timeout=60) as client:
            while not stop.is_set():
                reply = client.post(f"{server.url}/a/predict", json={"input": 1})
                seen.append((time.monotonic(), reply.json() if reply.status_code == 200 else reply.text))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    used: list[tuple[float, str]] = []

    def step(version: str, *words: str) -> None:
        forecastle(*words)
        at = time.monotonic()
        used.append((at, version))
        eventually(lambda: sum(when > at + 0.2 for when, _ in seen) > 20, "queries after the change")

    try:
        step("1", "model", "scale", "m", "2")
        step("2", "model", "deploy", "m=m2.py", "--version", "2")
        step("1", "model", "use", "m", "1")
        step("3", "model", "deploy", "m=m3.py", "--version", "3")
        step("3", "model", "delete", "m", "--version", "1")
        step("3", "model", "scale", "m", "4")
        step("3", "model", "scale", "m", "1")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert all(isinstance(reply, dict) and reply["default"] is False for _, reply in seen), [
        reply for _, reply in seen if not isinstance(reply, dict) or reply["default"]
    ][:3]
    for i, (at, version) in enumerate(used):
        until = used[i + 1][0] - 20 if i + 1 < len(used) else float("inf")
        after = {reply["output"] for when, reply in seen if at + 0.2 < when < max(until, at + 0.3)}
        assert after <= {version}


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_servers_of_one_store_agree(tmp_path: Path, kind: str) -> None:
    redis = RedisServer(tmp_path) if kind == "redis" else None
    store = redis.url if redis is not None else str(tmp_path / "shared.db")
    try:
        with (
            serving("--store", store, folder=tmp_path) as one,
            serving("--store", store, folder=tmp_path) as other,
        ):
            forecastle = Commands(one, tmp_path)
            forecastle("model", "deploy", f"m={says(tmp_path, 'm1', 'one')}")
            forecastle("app", "register", "a", "--link", "m", "--slo", "20s", "--cache", "0")
            eventually(lambda: answers(other, "a") == "one", "the other server")
            forecastle("model", "deploy", f"m={says(tmp_path, 'm2', 'two')}", "--version", "2")
            eventually(lambda: answers(other, "a") == "two", "the other server")
            Commands(other, tmp_path)("model", "use", "m", "1")
            eventually(lambda: answers(one, "a") == "one", "the first server")
            Commands(other, tmp_path)("app", "delete", "a")
            eventually(lambda: answers(one, "a") is None, "the first server")
    finally:
        if redis is not None:
            redis.kill()


def answers(server: Server, application: str) -> Any:
    """What an application answers, or None where there is none, or none that answers."""
    reply = httpx.post(f"{server.url}/{application}/predict", json={"input": 1}, timeout=30)
    return reply.json()["output"] if reply.status_code == 200 else None


def test_what_cannot_be_served_after_a_restart_is_told_and_the_rest_is_served(tmp_path: Path) -> None:
    with serving("--cluster", "c", folder=tmp_path) as server:
        forecastle = Commands(server, tmp_path)
        forecastle("model", "deploy", f"good={says(tmp_path, 'good', 'good')}")
        forecastle("model", "deploy", f"gone={says(tmp_path, 'gone', 'gone')}")
        for name in ("good", "gone"):
            forecastle("app", "register", f"app-{name}", "--link", name, "--default", "none", "--slo", "20s")
    (tmp_path / "gone.py").unlink()
    with serving("--cluster", "c", folder=tmp_path) as server:
        forecastle = Commands(server, tmp_path)
        eventually(lambda: answers(server, "app-good") == "good", "the good model")
        assert answers(server, "app-gone") == "none"
        eventually(lambda: "gone.py" in forecastle.run("status").stdout, "the reason")
        says(tmp_path, "gone", "back")
        eventually(lambda: answers(server, "app-gone") == "back", "the next try")


def test_lists_and_descriptions_are_tables_and_json(server: Server, forecastle: Commands, tmp_path: Path) -> None:
    forecastle("model", "deploy", f"m={says(tmp_path, 'm', 'x')}", "--label", "blue")
    printed = forecastle("app", "register", "a", "--link", "m", "--slo", "50ms", "--default", '{"n": 0}')
    assert "POST /a/predict" in printed
    ask(server, "a")
    listed = forecastle("app", "list")
    assert "a" in listed.split()
    assert "50" in listed
    (found,) = forecastle.json("app", "list")
    assert (found["name"], found["slo_micros"], found["models"]) == ("a", 50_000, ["m"])
    assert '{"n": 0}' in forecastle("app", "show", "a")
    assert forecastle("model", "list").splitlines()[1].split()[:5] == ["m", "1", "current", "serving", "1/1"]
    assert forecastle.json("model", "list")[0]["labels"] == ["blue"]
    forecastle("app", "unlink", "a", "m")
    assert forecastle.json("app", "list")[0]["models"] == []
    forecastle("app", "link", "a", "m")
    forecastle("app", "purge", "a")
    assert "1" in forecastle("status")
    assert "ready" in forecastle("top", "--rounds", "1", "--every", "100ms")
    forecastle("app", "delete", "a")
    assert forecastle.json("app", "list") == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["app", "show", "nothing"], "no application 'nothing' is registered"),
        (["app", "register", "a", "--policy", "bogus"], "there are current, weighted, shadow"),
        (["app", "register", "a", "--policy", "exp3", "--policy-option", "rate=-1"], "exp3"),
        (["app", "register", "a", "--type", "bogus"], "there are integers, floats"),
        (["app", "register", "a", "--link", "nothing"], "no model 'nothing' is registered"),
        (["app", "register", "a", "--slo", "2h"], "3600000000"),
        (["app", "register", "../a"], "cannot be an application's name"),
        (["model", "deploy", "m=nothing.py"], "nothing.py"),
        (["model", "scale", "nothing", "2"], "no model 'nothing' is registered"),
        (["model", "use", "nothing", "2"], "no model 'nothing' is registered"),
        (["model", "delete", "nothing"], "no model 'nothing' is registered"),
        (["app", "list", "--server", "http://127.0.0.1:1"], "http://127.0.0.1:1"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(forecastle: Commands, words: list[str], text: str) -> None:
    done = forecastle.run(*words)
    assert done.returncode in {1, 2}
    assert text in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_model_that_fails_to_load_is_told_with_its_reason_and_leaves_nothing(
    server: Server, forecastle: Commands, tmp_path: Path
) -> None:
    (tmp_path / "bad.py").write_text("raise RuntimeError('weights are missing')\n")
    before = len(server.replicas())
    done = forecastle.run("model", "deploy", "m=bad.py")
    assert done.returncode == 1
    assert "weights are missing" in done.stderr
    assert forecastle.json("model", "list") == []
    eventually(lambda: len(server.replicas()) == before, "its process to end")


def test_a_model_of_the_command_line_can_be_linked_and_its_name_is_not_to_be_had(tmp_path: Path) -> None:
    with serving("--cluster", "c", f"m={says(tmp_path, 'm', 'x')}", folder=tmp_path) as server:
        forecastle = Commands(server, tmp_path)
        forecastle("app", "register", "a", "--link", "m", "--slo", "20s")
        assert ask(server, "a") == "x"
        done = forecastle.run("model", "deploy", "m=m.py")
        assert done.returncode == 1
        assert "belongs to this run" in done.stderr
    with serving("--cluster", "c", folder=tmp_path) as server:  # a run without it
        reply = httpx.post(f"{server.url}/a/predict", json={"input": 1}, timeout=30).json()
        assert reply["default_cause"] == "no_replica"


@pytest.mark.parametrize(
    "arguments", [["--store", "http://x"], ["--cluster", "../x"], ["--store", "/proc/none/state.db"]]
)
def test_a_store_that_is_none_is_told_at_the_start(tmp_path: Path, arguments: list[str]) -> None:
    with starting(*arguments, folder=tmp_path) as server:
        if arguments[1].startswith("/proc"):
            server.wait_ready()  # a file is made by the first change, so that reading none is no failure
            done = Commands(server, tmp_path).run("app", "register", "a")
            assert done.returncode == 1
            assert "--store" in done.stderr
        else:
            assert server.end() == 2
            assert arguments[0] in server.log or "'../x'" in server.log


ADMIN = [
    ("add_app", b"", "Error parsing JSON"),
    ("add_app", b"[]", "Expected `object`"),
    ("add_app", b'{"name": "a"}', "input_type"),
    ("add_app", b'{"name": "a/b", "input_type": "ints", "default_output": "", "latency_slo_micros": 1}', "name"),
    ("add_app", b'{"name": "a", "input_type": "bogus", "default_output": "", "latency_slo_micros": 1}', "integers"),
    ("add_app", b'{"name": "a", "input_type": "ints", "default_output": "", "latency_slo_micros": 0}', "objective"),
    ("add_app", b'{"name": "a", "input_type": "ints", "default_output": "", "latency_slo_micros": "1"}', "int"),
    ("add_app", b'{"name": "a", "input_type": "ints", "default_output": 1, "latency_slo_micros": 1}', "str"),
    ("add_app", b"\xff", ""),
    ("delete_app", b'{"name": "nothing"}', "nothing"),
    ("add_model_links", b'{"app_name": "nothing", "model_names": ["m"]}', "nothing"),
    ("add_model", b'{"model_name": "m", "model_version": "1", "input_type": "ints", "batch_size": 0}', "batch_size"),
    ("add_model", b'{"model_name": "m:", "model_version": "1", "input_type": "ints"}', "m:"),
    ("set_model_version", b'{"model_name": "nothing", "model_version": "1"}', "nothing"),
    ("delete_versioned_model", b'{"model_name": "nothing", "model_version": "1"}', "nothing"),
    ("get_all_applications", b"{}", "verbose"),
    ("get_linked_models", b'{"app_name": "nothing"}', "nothing"),
]


def test_a_bad_admin_request_is_400_with_a_sentence_and_changes_nothing(server: Server, forecastle: Commands) -> None:
    for call, body, text in ADMIN:
        reply = httpx.post(f"{server.management}/admin/{call}", content=body, timeout=30)
        assert reply.status_code == 400, (call, body, reply.text)
        assert text in reply.text, (call, body, reply.text)
        assert len(reply.text) < 1000
    assert forecastle.json("app", "list") == forecastle.json("model", "list") == []
    assert httpx.post(f"{server.management}/admin/nothing", json={}).status_code == 404


def test_a_model_that_breaks_its_word_costs_its_own_queries_alone(
    server: Server, forecastle: Commands, tmp_path: Path
) -> None:
    (tmp_path / "odd.py").write_text(
        "def predict_batch_fn(batch, model):\n"
        "    if 'few' in batch:\n        return []\n"
        "    if 'die' in batch:\n        import os; os._exit(3)\n"
        "    odd = {'nan': float('nan'), 'odd': object()}\n"
        "    return [odd.get(each, each) for each in batch]\n"
    )
    forecastle("model", "deploy", "odd=odd.py")
    forecastle("app", "register", "a", "--link", "odd", "--slo", "20s", "--default", "none", "--cache", "0")
    for bad, cause in [("few", "error"), ("odd", "error"), ("die", "error"), (None, "")]:
        reply = httpx.post(f"{server.url}/a/predict", json={"input": bad}, timeout=30).json()
        assert reply.get("default_cause", "") == cause, reply
        eventually(lambda: ask(server, "a", "fine") == "fine", "an answer")
    assert ask(server, "a", "nan") is None
    assert httpx.post(f"{server.url}/a/predict", json={"input_batch": []}).json() == {"batch_predictions": []}
