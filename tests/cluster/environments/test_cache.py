from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from forecastle.cluster.environments.cache import FOLDER, environments, interpreter, remove
from forecastle.errors import InstallFailed

SIX = ["six==1.16.0"]  # no other package of these tests needs it in this version


def ask(python: str, code: str) -> str:
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_an_environment_has_what_was_wanted_what_a_replica_needs_and_our_packages(tmp_path: Path) -> None:
    python = interpreter(SIX, "script", cache=tmp_path, origin="m")
    assert ask(python, "import six; print(six.__version__)") == "1.16.0"
    assert ask(python, "import inference_server, forecastle.replica.process as p; print(p.__name__)")
    with pytest.raises(subprocess.CalledProcessError):
        ask(python, "import numpy")  # the server's own packages are not the model's
    assert interpreter(SIX, "script", cache=tmp_path, origin="m") == python
    (found,) = environments(tmp_path)
    assert found.requirements == SIX
    assert found.in_use
    assert found.size > 100_000
    assert not remove(found), "what a server uses stays"


def test_the_servers_own_environment_serves_where_it_has_everything(tmp_path: Path) -> None:
    assert interpreter(["msgspec>=0.1"], "script", cache=tmp_path, origin="m") == sys.executable
    assert not (tmp_path / FOLDER).exists()


def test_a_failing_installation_ends_with_what_the_installer_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        InstallFailed, match=r"the requirements of 'm' could not be installed:\n(.|\n)*six==999"
    ) as caught:
        interpreter(["six==999"], "script", cache=tmp_path, origin="'m'")
    assert "satisf" in caught.value.message
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "empty"))
    with pytest.raises(InstallFailed, match=r"(?s)could not be installed.*network"):
        interpreter(SIX, "script", cache=tmp_path, origin="'m'")
    assert environments(tmp_path) == []


def test_what_a_killed_process_left_half_built_is_never_used(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from forecastle.cluster.environments.cache import interpreter\n"
        "interpreter(['six==1.16.0'], 'script', cache=Path(sys.argv[1]), origin='m')\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as index:  # an index that takes a connection and says nothing
        url = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        environment = {**os.environ, "UV_DEFAULT_INDEX": url, "UV_CACHE_DIR": str(tmp_path / "uv")}
        with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=environment) as builder:
            connection, _ = index.accept()
            with connection:
                children = psutil.Process(builder.pid).children(recursive=True)
                for process in (psutil.Process(builder.pid), *children):
                    process.send_signal(signal.SIGKILL)
    assert list((tmp_path / FOLDER).glob(".partial-*/environment/bin/python"))
    assert environments(tmp_path) == []
    python = interpreter(SIX, "script", cache=tmp_path, origin="m")
    assert ask(python, "import six; print(six.__version__)") == "1.16.0"


def test_several_who_want_the_same_at_once_all_get_one_that_works(tmp_path: Path) -> None:
    found: list[str] = []

    def want() -> None:
        found.append(interpreter(SIX, "script", cache=tmp_path, origin="m"))

    threads = [threading.Thread(target=want) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    assert ask(found[0], "import six; print(six.__version__)") == "1.16.0"
    assert not list((tmp_path / FOLDER).glob(".partial-*"))
