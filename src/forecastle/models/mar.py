"""Archives of MMS 1.x and TorchServe: a handler, whatever it needs, and ``MAR-INF/MANIFEST.json``, which names it.

Both write a zip called ``.mar``; MMS's archiver also a ``.tar.gz`` and a plain folder of the same content.

https://github.com/awslabs/multi-model-server/blob/master/model-archiver/README.md
https://github.com/pytorch/serve/blob/master/model-archiver/README.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from forecastle.errors import BadArtifact
from forecastle.models.mms import is_mms, listing

FOLDER = "MAR-INF"
MANIFEST = f"{FOLDER}/MANIFEST.json"
KIND = "mar archive"
RUNTIME = "handler"
LANGUAGES = ("python", "python2", "python3")
"""What an archive may say that it runs on; the letters' case is left alone. All of it runs on the Python there is."""

BUNDLED = ("base_handler", "image_classifier")
"""TorchServe's own handlers that come with us, by the names that archives have for them. They need PyTorch."""


class Mar(msgspec.Struct, frozen=True):
    """What a manifest says: ``handler`` is ``MODULE[:FUNCTION]``, ``requirements`` a file; either may be empty."""

    name: str
    version: str
    handler: str
    requirements: str
    manifest: dict[str, Any]


def is_mar(directory: Path) -> bool:
    """Whether the directory is an unpacked archive of this kind, sound or not."""
    return (directory / MANIFEST).is_file()


def has_handler(directory: Path, handler: str) -> bool:
    """Whether a directory that is no archive of MMS's has the module of a handler."""
    module = handler.partition(":")[0].removesuffix(".py")
    if not module.isidentifier() or not (directory / f"{module}.py").is_file():
        return False
    return not is_mms(path.name for path in directory.iterdir())


def read_mar(directory: Path, origin: str) -> Mar:
    """Read the manifest of an unpacked archive; ``origin`` names the archive in messages.

    Raises:
        BadArtifact: it is no JSON, a key of it is wrong, or what it names is not in the archive.
    """
    try:
        document = msgspec.json.decode((directory / MANIFEST).read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadArtifact(f"{origin}: {MANIFEST} is not JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
        raise BadArtifact(
            f'{origin}: {MANIFEST} has no "model"; expected {{"model": {{"modelName": …, "handler": …}}}}'
        )
    language = document.get("runtime", LANGUAGES[0])
    if not isinstance(language, str) or language.lower() not in LANGUAGES:
        raise BadArtifact(
            f"{origin}: the runtime in {MANIFEST} is {language!r}; expected one of {', '.join(LANGUAGES)}"
        )
    model = document["model"]
    found = {key: _text(model, key, origin) for key in ("modelName", "modelVersion", "handler", "requirementsFile")}
    if not found["modelName"]:
        raise BadArtifact(f"{origin}: model.modelName is missing in {MANIFEST}; expected the model's name")
    needs = found["requirementsFile"]
    if needs and not (directory / Path(needs).name).is_file():
        there = listing(path.name for path in directory.iterdir())
        raise BadArtifact(f"{origin}: {MANIFEST} names {needs}, which is not in the archive; it holds {there}")
    return Mar(found["modelName"], found["modelVersion"], found["handler"], Path(needs).name, document)


def _text(model: dict[str, Any], key: str, origin: str) -> str:
    value = model.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    raise BadArtifact(f"{origin}: model.{key} in {MANIFEST} is {value!r}; expected a text")
