"""What the documents say is true: their snippets run, their tables are complete."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.process import FORECASTLE, serving
from forecastle import errors
from forecastle.cluster.specs import ModelSpec
from forecastle.hooks.spec import HOOKS
from forecastle.http.control import control_routes
from forecastle.http.errors import InternalError

ROOT = Path(__file__).parents[1]
EXAMPLES = [ROOT / "README.md", ROOT / "docs" / "hooks.md"]


def fences(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", [*EXAMPLES, ROOT / "docs" / "applications.md"], ids=lambda path: path.stem)
def test_the_examples_of_a_document_run_as_they_are_printed(document: Path, tmp_path: Path) -> None:
    for source in fences(document, "python"):
        match = re.match(r"# ([\w/]+\.py)", source)
        assert match, "a Python example begins with its file's name"
        (tmp_path / match[1]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / match[1]).write_text(source)
    for test in sorted(tmp_path.glob("test_*.py")):
        running = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name]
        done = subprocess.run(running, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    for serve, asked in sessions(fences(document, "bash")):
        arguments = shlex.split(serve)[2:]
        with serving(*arguments, folder=tmp_path, command=FORECASTLE) as server:
            for line in asked:
                if line.startswith("forecastle "):
                    run(line, server.management, tmp_path)
                    continue
                there = line.replace(":8080", f":{port(server.url)}").replace(":8081", f":{port(server.management)}")
                reply = curl(there)
                assert reply.status_code == 200, (line, reply.text)
                assert not reply.headers.get("forecastle-default"), (line, reply.text)


def sessions(blocks: list[str]) -> list[tuple[str, list[str]]]:
    """Each command that serves, with the lines of the blocks after it."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks:
        if block.startswith("forecastle serve"):
            found.append((block, []))
        else:
            found[-1][1].extend(block.splitlines())
    assert all(asked for _, asked in found)
    return found


def run(line: str, management: str, folder: Path) -> None:
    """Run a command against a server that is not where the document has it."""
    command = [FORECASTLE[0], *shlex.split(line)[1:]]
    environment = {**os.environ, "FORECASTLE_SERVER": management}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (line, done.stderr)


def curl(line: str) -> httpx.Response:
    """Send what the command would, on machines that may not have it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-X", dest="method", default="GET")
    parser.add_argument("-d", dest="data")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    program, *words = shlex.split(line)
    assert program == "curl"
    asked = parser.parse_args(words)
    headers = {} if asked.data is None else {"content-type": "application/x-www-form-urlencoded"}
    for header in asked.headers:
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return httpx.request(asked.method, asked.url, content=asked.data, headers=headers)


def port(url: str) -> str:
    return url.rpartition(":")[2]


def error_types(error: type[errors.ForecastleError]) -> set[type[errors.ForecastleError]]:
    return {error}.union(*(error_types(child) for child in error.__subclasses__()))


def test_every_error_is_in_the_table_with_its_status_and_in_the_tree() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE))
    leaves = error_types(errors.RequestError) - {errors.RequestError}
    ours = [error for error in leaves if error.__module__ in {errors.__name__, InternalError.__module__}]
    assert table == {error.__name__: str(error.status) for error in ours}
    for error in error_types(errors.ForecastleError) - {InternalError}:
        if error.__module__ == errors.__name__:
            assert error.__name__ in str(errors.__doc__)


def test_every_route_of_the_control_interface_is_documented() -> None:
    table = (ROOT / "docs" / "applications.md").read_text()
    found = {
        (method, path)
        for methods, path in re.findall(r"^\| ((?:`?[A-Z]+`?(?:, )?)+) (/v1[\w/{}]*)`", table, re.MULTILINE)
        for method in re.findall(r"[A-Z]+", methods)
    }
    management: Any = None
    routes = control_routes(management, management, {}, ModelSpec("m", None))
    assert found == {(method, route.path) for route in routes for method in (route.methods or ()) if method != "HEAD"}


@pytest.mark.parametrize("document", EXAMPLES, ids=lambda path: path.stem)
def test_every_hook_is_documented(document: Path) -> None:
    text = document.read_text()
    assert [hook for hook in HOOKS if f"`{hook}" not in text] == []


def test_every_link_between_the_documents_leads_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
