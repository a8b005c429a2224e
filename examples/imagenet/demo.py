"""``make demo``: build the archive, serve it, ask what is in the picture, and go on serving.

``DEMO=once`` ends after the answer. ``PORT`` chooses the port (default 8080, or a free one where that is taken). The
exit code is 0 only if the server named a cat and ended as it should.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from examples.imagenet import archive
from rich.console import Console
from rich.table import Table

from forecastle.errors import StartError

HOST = "127.0.0.1"
PORT = 8080
CACHE = Path(".cache/demo")
START_LIMIT = 120.0  # seconds from the server's launch to its first healthy ping
ANSWER_LIMIT = 60.0
STOP_LIMIT = 60.0
CATS = {
    "n02123045": "tabby",
    "n02123159": "tiger cat",
    "n02123394": "Persian cat",
    "n02123597": "Siamese cat",
    "n02124075": "Egyptian cat",
}

console = Console(highlight=False)


class DemoFailed(Exception):
    """What stops the demo, in a sentence for its reader."""


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is being done: with a spinner and the time it took on a terminal, else in one line before it starts."""
    if not console.is_terminal:
        say(f"{what} …")
        yield
        return
    started = time.monotonic()
    with console.status(f"{what} …"):
        yield
    console.print(f"[green]✓[/] {what} [dim]({time.monotonic() - started:.1f} s)[/]", soft_wrap=True)


def say(line: str) -> None:
    """Print a line as it is: never wrapped, so that a command can be copied from it."""
    console.print(line, soft_wrap=True, markup=False)


def prepare(cache: Path) -> tuple[Path, Path]:
    """Give the archive and the picture, building what is not there from an earlier run."""
    path, picture = cache / f"{archive.NAME}.zip", cache / "cat.jpg"
    if archive.is_built(path):
        say(f"Using the archive of an earlier run, {path}")
    else:
        with step(f"Building {path}: an MMS archive of {archive.NAME} from its published weights"):
            archive.build(path)
    archive.cat(picture)
    return path, picture


def chosen_port(setting: str | None) -> int:
    """The port that ``PORT`` asks for; without it 8080, or a free one, saying so."""
    if setting:
        if not (setting.isascii() and setting.isdecimal() and 0 < int(setting) < 2**16):
            raise DemoFailed(f"PORT is {setting!r}; expected a number from 1 to 65535")
        return int(setting)
    if is_free(PORT):
        return PORT
    port = free_port()
    say(f"Port {PORT} is taken; using {port} (choose one with PORT=…)")
    return port


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(path: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``forecastle serve`` on the archive and `stop` it on the way out."""
    management = PORT + 1 if port == PORT and is_free(PORT + 1) else free_port()
    arguments = ["serve", f"{archive.NAME}={path}", "--port", str(port), "--management-port", str(management)]
    say(f"$ {shlex.join(['forecastle', *arguments])}")
    # In a session of its own, so that Ctrl-C reaches the server once, from here: a second signal would end it at once.
    server = subprocess.Popen([Path(sys.executable).with_name("forecastle"), *arguments], start_new_session=True)
    try:
        yield server
    finally:
        stop(server)


def stop(server: subprocess.Popen[bytes]) -> None:
    """Let a running server finish; end it by force after `STOP_LIMIT` seconds or at a second Ctrl-C.

    Raises `DemoFailed` when it did not end well.
    """
    if server.poll() is not None:
        return
    server.terminate()
    try:
        server.wait(STOP_LIMIT)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()
        server.wait()
    if server.returncode:
        raise DemoFailed(f"the server was asked to stop and ended with exit code {server.returncode}")


def wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    """Return when ``/ping`` says healthy; raise `DemoFailed` when the server ends, or takes too long."""
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if is_healthy(port):
            return
        try:
            code = server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        raise DemoFailed(f"the server ended with exit code {code} before it was ready; it says why above")
    raise DemoFailed(f"the server was not ready {START_LIMIT:.0f} s after its start")


def is_healthy(port: int) -> bool:
    """Whether ``GET /ping`` is answered with 200."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/ping")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def curl(port: int, picture: Path) -> list[str]:
    """The command that asks about the picture, as users of MMS know it."""
    url = f"http://{HOST}:{port}/{archive.NAME}/predict"
    # A proxy between here and the machine's own address would not find the server.
    is_proxied = "http" in urllib.request.getproxies() and not urllib.request.proxy_bypass(HOST)
    return ["curl", *(["--noproxy", HOST] if is_proxied else []), "-X", "POST", url, "-F", f"input0=@{picture}"]


def ask(port: int, picture: Path) -> list[dict[str, Any]]:
    """Post the picture, with curl where there is one, and give the answer's five classes, most probable first."""
    command = curl(port, picture)
    if shutil.which("curl"):
        say(f"$ {shlex.join(command)}")
        quiet = [*command[:1], "--silent", "--show-error", *command[1:]]
        try:
            done = subprocess.run(quiet, stdout=subprocess.PIPE, check=True, timeout=ANSWER_LIMIT)
        except subprocess.CalledProcessError as error:
            raise DemoFailed(f"curl ended with exit code {error.returncode}; it says why above") from error
        except subprocess.TimeoutExpired as error:
            raise DemoFailed(f"the server did not answer within {ANSWER_LIMIT:.0f} s") from error
        return top(done.stdout)
    say("curl is not installed; posting the same form from Python")
    return top(post(port, picture))


def post(port: int, picture: Path) -> bytes:
    """What curl does with ``-F``, without curl."""
    boundary = uuid.uuid4().hex
    disposition = f'Content-Disposition: form-data; name="input0"; filename="{picture.name}"'
    head = f"--{boundary}\r\n{disposition}\r\nContent-Type: image/jpeg\r\n\r\n"
    body = b"".join([head.encode(), picture.read_bytes(), f"\r\n--{boundary}--\r\n".encode()])
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_LIMIT)
    try:
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        connection.request("POST", f"/{archive.NAME}/predict", body, headers)
        return connection.getresponse().read()
    except (OSError, http.client.HTTPException) as error:
        raise DemoFailed(f"the server did not answer: {error}") from error
    finally:
        connection.close()


def top(body: bytes) -> list[dict[str, Any]]:
    """The classes in ``{"prediction": [[{"class": …, "probability": …}, …]]}``."""
    try:
        classes = json.loads(body)["prediction"][0]
        return [{"class": str(found["class"]), "probability": float(found["probability"])} for found in classes]
    except (ValueError, LookupError, TypeError) as error:
        raise DemoFailed(f"the answer is no classification: {body[:500].decode(errors='replace')}") from error


def show(classes: list[dict[str, Any]]) -> None:
    """Print the classes as a table."""
    table = Table("probability", "class")
    for found in classes:
        table.add_row(f"{found['probability']:.3f}", found["class"])
    console.print(table)


def check(classes: list[dict[str, Any]]) -> None:
    """Raise `DemoFailed` unless the most probable class is a cat."""
    best = classes[0]["class"] if classes else "nothing"
    if best.partition(" ")[0] not in CATS:
        raise DemoFailed(f"the picture shows a cat, but the server sees {best}")


def run(*, once: bool, setting: str | None) -> None:
    """The whole demo; raises `DemoFailed` or `StartError` where it fails, `KeyboardInterrupt` when asked to end."""
    path, picture = prepare(CACHE)
    port = chosen_port(setting)
    with serving(path, port) as server:
        wait_until_ready(server, port)
        classes = ask(port, picture)
        show(classes)
        check(classes)
        if once:
            return
        say(f"Ask again, from here in another terminal:\n  {shlex.join(curl(port, picture))}")
        say("Serving until Ctrl-C.")
        raise DemoFailed(f"the server ended by itself with exit code {server.wait()}")


def interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """End as by Ctrl-C."""
    raise KeyboardInterrupt


def main() -> int:
    """Run the demo and give its exit code."""
    # All three by hand: a background job starts with SIGINT ignored, and the server must be stopped whichever comes.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        run(once=os.environ.get("DEMO") == "once", setting=os.environ.get("PORT"))
    except KeyboardInterrupt:
        say("Stopped.")
    except (DemoFailed, StartError) as error:
        Console(stderr=True).print(f"demo: {error}", soft_wrap=True, markup=False, highlight=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
