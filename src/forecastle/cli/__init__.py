"""The commands of ``forecastle``."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from forecastle.cli import app as applications
from forecastle.cli import build, check, client, env, model, sources
from forecastle.cli.export import export
from forecastle.cli.inspect import inspect
from forecastle.cli.serve import serve
from forecastle.cli.status import status, top
from forecastle.errors import StartError, UsageError

_EXAMPLES = """\
Examples:

```text
forecastle serve shipping=shipping.py         # a Python file with hooks
forecastle serve resnet-18=resnet-18.zip      # an MMS archive
forecastle serve iris=iris.onnx --replicas 2  # ONNX, in two processes
forecastle serve                              # the installed hook packages
forecastle serve --cluster prod               # what is registered, and deployed while it runs
forecastle model deploy iris=iris.onnx        # a model of a running server
forecastle app register flowers --link iris --slo 100ms --default -1
```
"""

app = App(
    name="forecastle",
    help="Serve predictions from trained models over HTTP.",
    help_epilogue=_EXAMPLES,
    help_format="markdown",
    version=lambda: f"forecastle {importlib.metadata.version('forecastle')}",
    config=[sources.environment, sources.file, sources.platform],
    default_parameter=Parameter(negative=()),
)
app.command(serve)
app.command(export)
app.command(inspect)
app.command(applications.app)
app.command(model.app)
app.command(status)
app.command(top)
app.command(env.app)
app.command(build.app)
app.command(check.app)
app.command(client.app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name (those of the process by default), and exit.

    The exit code is 0 after an orderly end, 2 for a wrong command line, environment or file, 1 for a start that failed;
    each failure is one sentence on stderr.
    """
    try:
        code = app(
            sys.argv[1:] if arguments is None else arguments,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
    except CycloptsError as error:
        code = report(UsageError(" ".join(str(error).split())))
    except StartError as error:
        code = report(error)
    except BrokenPipeError:  # who reads our output has enough of it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def report(error: StartError, program: str = "forecastle") -> int:
    """Say on stderr why the program ends, and return its exit code."""
    sys.stderr.write(f"{program}: {error.message}\n")
    return error.exit_code
