"""``forecastle export``: a model, with its signature and its labels, as one archive that a server takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from forecastle.cli import artifacts, sources, table, values
from forecastle.cluster.export import Exported
from forecastle.cluster.export import export as make
from forecastle.cluster.specs import default_cache_dir, parse_model
from forecastle.errors import UsageError
from forecastle.models.export import PATIENCE, Order
from forecastle.models.manifest import entry

HEADINGS = ("file", "bytes", "sha256")
SUFFIXES = (".zip", ".model")
_SHOWN = 16

_Duration = Annotated[float, Parameter(converter=sources.reads(values.duration), show_default="{:g}s".format)]
Shape = tuple[int | None, ...]


def export(
    model: str,
    *,
    output: Path | None = None,
    signature: Path | None = None,
    synset: Path | None = None,
    service: Path | None = None,
    requirements: Path | None = None,
    file: list[Path] | None = None,
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    force: bool = False,
    check: Annotated[bool, Parameter(negative="--no-check")] = True,
    start_timeout: _Duration = PATIENCE,
    cache_dir: Path | None = None,
) -> int:
    """Write a model and what belongs to it into one archive, once it has been checked and loaded.

    The same content makes the same bytes. The archive has a manifest with the digest of each file.

    Args:
        model: NAME=SOURCE; a SOURCE alone is named after its file. SOURCE is a model's file, a folder, an archive, a
            Python file with hooks, or a URL of these.
        output: The archive to write, or the folder to write NAME.zip into (default: the working folder).
        signature: The signature.json to pack, in the place of the source's.
        synset: The labels to pack, one a line, in the place of the source's.
        service: The Python file with the service class of an MXNet model.
        requirements: The requirements.txt to pack, in the place of the source's.
        file: A further file to pack beside the model, such as a module of hooks; may be repeated.
        shape: The shape of an input of an MXNet model without a signature: data=0,3,224,224. May be repeated.
        force: Write over an archive that is there.
        check: Load the model before writing; --no-check leaves it out.
        start_timeout: How long the model may take to load.
        cache_dir: Where downloads and unpacked archives are kept (default: ~/.cache/forecastle).
    """
    name, source = parse_model(model)
    order = Order(
        name=name,
        source=source,
        target=place(output, name, ".zip"),
        signature=signature,
        synset=synset,
        service=service,
        requirements=requirements,
        files=tuple(file or ()),
        shapes=shapes(shape or []),
        force=force,
        check=check,
        patience=start_timeout,
    )
    return run(order, default_cache_dir() if cache_dir is None else cache_dir.expanduser())


def run(order: Order, cache: Path) -> int:
    """Write the archive and say what is in it."""
    with artifacts.shown() as progress:
        exported = make(order, cache=cache, progress=progress)
    show(exported)
    return 0


def show(exported: Exported) -> None:
    """Print the files and the archive; what else there is to know goes to standard error."""
    for note in exported.notes:
        sys.stderr.write(f"note: {note}\n")
    rows = [(name, str(each.size), each.sha256[:_SHOWN]) for name, each in exported.entries.items()]
    table.draw(HEADINGS, rows, sys.stdout)
    whole = entry(exported.path)
    megabytes = f"{whole.size / 1e6:.1f} MB"
    sys.stdout.write(f"wrote {exported.path}, {exported.kind}, {megabytes}, sha256 {whole.sha256}\n")


def place(output: Path | None, name: str, suffix: str) -> Path:
    """Return the archive's path: the file that was named, or NAME with the suffix in the folder that was."""
    folder = Path() if output is None else output.expanduser()
    return folder if folder.suffix in SUFFIXES and not folder.is_dir() else folder / f"{name}{suffix}"


def shapes(given: list[str]) -> dict[str, Shape]:
    """Read ``NAME=SIZE,SIZE,…``; a size of 0 is any.

    Raises:
        UsageError: it is not of this form.
    """
    found: dict[str, Shape] = {}
    for text in given:
        name, equals, sizes = text.rpartition("=")
        numbers = [size.strip() for size in sizes.strip("[]() ").split(",")]
        if not equals or not name or not all(number.isascii() and number.isdigit() for number in numbers):
            raise UsageError(f"--shape {text!r} is no shape: expected NAME=SIZES, for instance data=0,3,224,224")
        found[name] = tuple(int(number) or None for number in numbers)
    return found
