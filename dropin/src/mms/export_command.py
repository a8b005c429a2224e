"""The command ``mms_export``: MMS's syntax for making an archive.

Contract: ``mms_export --model NAME=PATH --signature FILE [--synset FILE] [--export-path DIR]`` writes ``NAME.zip``;
``--model-name NAME --model-path PATH [--service-file-path FILE]``, the later syntax, writes ``NAME.model``. PATH is a
folder or an archive. What is new: nothing is written over without ``--force``, a signature that is missing is derived
where the network tells it, and the model is loaded before anything is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from forecastle.cli import report
from forecastle.cli.export import run, shapes
from forecastle.cluster.specs import default_cache_dir, parse_model, valid_name
from forecastle.errors import StartError, UsageError
from forecastle.models.export import Order

SUFFIX, LATER_SUFFIX = ".zip", ".model"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; try `mms_export --help`")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the archive that the arguments name (those of the process by default), and exit."""
    try:
        code = run(read(sys.argv[1:] if arguments is None else arguments), default_cache_dir())
    except StartError as error:
        code = report(error, "mms_export")
    sys.exit(code)


def read(arguments: Sequence[str]) -> Order:
    """The archive that MMS's arguments ask for.

    Raises:
        UsageError: an argument is wrong or missing.
    """
    given = _parser().parse_args(arguments)
    if given.model is not None:
        if given.model_name is not None or given.model_path is not None:
            raise UsageError("--model says what --model-name and --model-path say; give one or the other")
        if "=" not in given.model:
            raise UsageError(f"--model {given.model!r} is not NAME=PATH")
        name, source = parse_model(given.model)
    elif given.model_name is None or given.model_path is None:
        raise UsageError("name the model: --model NAME=PATH, or --model-name NAME --model-path PATH")
    else:
        name, source = valid_name(given.model_name), given.model_path
    folder: Path = given.export_path.expanduser()
    return Order(
        name=name,
        source=source,
        target=folder / f"{name}{SUFFIX if given.model is not None else LATER_SUFFIX}",
        signature=given.signature,
        synset=given.synset,
        service=given.service_file_path,
        shapes=shapes(given.shape),
        force=given.force,
        check=not given.no_check,
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="mms_export", description="Make an archive of a model, its signature and its labels.")
    add = parser.add_argument
    add("--model", metavar="NAME=PATH", help="the model's name, and its folder or archive")
    add("--model-name", metavar="NAME", help="the model's name, in the later syntax")
    add("--model-path", metavar="PATH", help="its folder or archive, in the later syntax")
    add("--signature", type=_file, metavar="FILE", help="its signature.json (default: the one in PATH)")
    add("--synset", type=_file, metavar="FILE", help="its labels, one a line (default: the synset.txt in PATH)")
    add("--service-file-path", type=_file, metavar="FILE", help="the Python file with its service class")
    add("--export-path", type=Path, default=Path(), metavar="DIR", help="where to write (default: the working folder)")
    add("--shape", action="append", default=[], metavar="NAME=SIZES", help="an input's shape, without a signature")
    add("--force", action="store_true", help="write over an archive that is there")
    add("--no-check", action="store_true", help="do not load the model before writing")
    return parser


def _file(text: str) -> Path:
    return Path(text).expanduser()


if __name__ == "__main__":
    main()
