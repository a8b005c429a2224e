"""MMS's archives: which of their files is what.

An archive of MMS 0.x, unpacked: ``<prefix>-symbol.json`` and ``<prefix>-<epoch>.params`` of MXNet, ``signature.json``,
perhaps ``synset.txt``, and since 0.2 ``MANIFEST.json`` and a service file. The prefix need not be the archive's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from forecastle.errors import BadArtifact

SIGNATURE = "signature.json"
SYNSET = "synset.txt"
MANIFEST = "MANIFEST.json"
_SYMBOL = re.compile(r"(?P<prefix>.+)-symbol\.json")
_PARAMS = re.compile(r"(?P<prefix>.+)-(?P<epoch>\d+)\.params")
_EXPECTED = "expected exactly one <prefix>-symbol.json and one <prefix>-0000.params"


class MmsFiles(msgspec.Struct, frozen=True):
    """The files of an MMS archive; ``services`` are its Python files."""

    symbol: Path
    params: Path
    signature: Path
    synset: Path | None
    services: tuple[Path, ...]


def is_mms(names: Iterable[str]) -> bool:
    """Whether a directory with these files is meant as an MMS archive, complete or not."""
    return any(name == MANIFEST or name.endswith(("-symbol.json", ".params")) for name in names)


def find_files(directory: Path, origin: str, *, described: bool = True) -> MmsFiles:
    """The files of the unpacked archive in ``directory``; ``origin`` names it in messages.

    Unless it must be ``described``, the signature may be missing.

    Raises:
        BadArtifact: a file is missing, there are several of a kind, or symbol and parameters do not belong together;
            the message lists what was found.
    """
    names = sorted(path.name for path in directory.iterdir() if path.is_file())
    symbol = _only([name for name in names if name.endswith("-symbol.json")], "symbol file", names, origin)
    params = _only([name for name in names if name.endswith(".params")], "parameter file", names, origin)
    of_symbol, of_params = _SYMBOL.fullmatch(symbol), _PARAMS.fullmatch(params)
    if of_symbol is None:
        raise BadArtifact(f"{origin}: {symbol} has no prefix; {_EXPECTED}")
    if of_params is None:
        raise BadArtifact(f"{origin}: {params} has no epoch number; expected {of_symbol['prefix']}-0000.params")
    if of_symbol["prefix"] != of_params["prefix"]:
        raise BadArtifact(
            f"{origin}: {symbol} and {params} do not belong together, their prefixes are {of_symbol['prefix']!r} and "
            f"{of_params['prefix']!r}; expected the same"
        )
    if described and SIGNATURE not in names:
        raise BadArtifact(
            f"{origin} holds no {SIGNATURE}, which names the model's inputs, outputs and their shapes; it holds "
            f"{listing(names)}"
        )
    return MmsFiles(
        symbol=directory / symbol,
        params=directory / params,
        signature=directory / SIGNATURE,
        synset=directory / SYNSET if SYNSET in names else None,
        services=tuple(directory / name for name in names if name.endswith(".py")),
    )


def listing(names: Iterable[str]) -> str:
    """The names for a message, the first ten of them."""
    ordered = sorted(names)
    more = f" and {len(ordered) - 10} more" if len(ordered) > 10 else ""
    return (", ".join(ordered[:10]) or "nothing") + more


def _only(found: list[str], what: str, names: list[str], origin: str) -> str:
    if not found:
        raise BadArtifact(f"{origin} holds no {what}; {_EXPECTED}; it holds {listing(names)}")
    if len(found) > 1:
        raise BadArtifact(f"{origin} holds {len(found)} {what}s ({listing(found)}); {_EXPECTED}")
    return found[0]
