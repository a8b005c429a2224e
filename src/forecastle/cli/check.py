"""``forecastle check``: play a platform against a server, and say in a table what it does and what it does not."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from forecastle.check.sagemaker import CHECKS, MULTI_MODEL, Finding, Subject, run
from forecastle.check.target import Running, Target, image_command, may_be_first, started
from forecastle.cli import sources, table, values
from forecastle.errors import UsageError

HEADINGS = ("check", "verdict", "what was seen", "seconds")
_Duration = Annotated[float, Parameter(converter=sources.reads(values.duration), show_default="{:g}s".format)]

app = App(name="check", help="Check that a server keeps a platform's contract.")


@app.command
def sagemaker(
    target: str,
    *,
    body: Path | None = None,
    content_type: str = "application/json",
    command: bool = False,
    multi_model: bool = False,
    model_dir: Path | None = None,
    start_timeout: _Duration = 480.0,
) -> int:
    """Play SageMaker against a server: ping, headers, bodies, batch parameters, streams, models, SIGTERM.

    The exit code is 0 where every check passes, and 1 where one fails.

    Args:
        target: A URL of a server that runs; a model, as `forecastle serve` takes it, which is then served and stopped;
            or an image, which is run with the argument `serve` by a Docker engine.
        body: A file with a request that the model answers well; without one, {} is sent, and may be refused.
        content_type: What the body is.
        command: The target is a command line that starts a server on SAGEMAKER_BIND_TO_PORT, or on {port} in it.
        multi_model: Check a multi-model endpoint: the model is loaded over HTTP, invoked and unloaded.
        model_dir: The folder that an image finds under /opt/ml/model; of a URL or a command line, the path that a
            multi-model endpoint is told to load.
        start_timeout: How long the server may take until /ping is 200; the platform waits 8 minutes.
    """
    sample = _read(body)
    if multi_model and model_dir is None and (command or target.startswith(("http://", "https://"))):
        raise UsageError("name the model that the endpoint is to load with --model-dir")
    with _target(target, command, multi_model, model_dir, start_timeout) as (server, model_url):
        subject = Subject(server, sample or b"{}", content_type, given=sample is not None, model_url=model_url)
        findings = []
        for finding in run(subject, MULTI_MODEL if multi_model else CHECKS):
            _tell(finding)
            findings.append(finding)
    table.draw(HEADINGS, [_row(finding) for finding in findings], sys.stdout)
    failed = [finding.name for finding in findings if finding.verdict == "fail"]
    passed = sum(finding.verdict == "pass" for finding in findings)
    skipped = len(findings) - passed - len(failed)
    sys.stdout.write(f"{passed} passed, {len(failed)} failed, {skipped} skipped\n")
    return 1 if failed else 0


@contextlib.contextmanager
def _target(
    text: str, command: bool, multi_model: bool, model_dir: Path | None, patience: float
) -> Iterator[tuple[Target, str]]:
    """Yield the server, and what it is told to load as a multi-model endpoint."""
    variables = {"SAGEMAKER_MULTI_MODEL": "true"} if multi_model else {}
    if command:
        with started(shlex.split(text), variables, patience) as server:
            yield server, str(model_dir or "")
    elif text.startswith(("http://", "https://")):
        yield Running(text), str(model_dir or "")
    elif _is_image(text):
        with _container(text, model_dir, variables, patience) as server:
            yield server, "/opt/ml/model" if multi_model else ""
    else:
        with _served(text, multi_model, variables, patience) as found:
            yield found


@contextlib.contextmanager
def _served(
    model: str, multi_model: bool, variables: Mapping[str, str], patience: float
) -> Iterator[tuple[Target, str]]:
    serve = [sys.executable, "-m", "forecastle.cli", "serve", "--management-port", "0"]
    if not multi_model:
        with started([*serve, model], variables, patience, first=may_be_first()) as server:
            yield server, ""
        return
    path = Path(model).absolute()
    if not path.exists():
        raise UsageError(f"{model}: a multi-model endpoint loads models by path, and nothing lies there")
    with started([*serve, "--model-root", str(path.parent)], variables, patience, first=may_be_first()) as server:
        yield server, str(path)


@contextlib.contextmanager
def _container(image: str, model_dir: Path | None, variables: Mapping[str, str], patience: float) -> Iterator[Target]:
    name = f"forecastle-check-{uuid.uuid4().hex[:12]}"
    try:
        with started(image_command(image, name, model_dir, variables), {}, patience) as server:
            yield server
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)  # noqa: S603, S607


def _is_image(text: str) -> bool:
    """Say whether a Docker engine has an image of this name; a path that exists, or a NAME=SOURCE, is none."""
    if "=" in text or Path(text).exists() or shutil.which("docker") is None:
        return False
    asked = ["docker", "image", "inspect", text]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0  # noqa: S603


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"--body {path} cannot be read: {error.strerror}") from None


def _tell(finding: Finding) -> None:
    """Show on a terminal how far it is; elsewhere the table at the end is enough."""
    if sys.stderr.isatty():
        sys.stderr.write(f"  {finding.verdict}  {finding.name}\n")


def _row(finding: Finding) -> tuple[str, ...]:
    return (finding.name, finding.verdict, finding.reason, f"{finding.seconds:.1f}")
