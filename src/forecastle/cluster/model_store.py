"""Models that are registered by a URL or by their place in the model store, as MMS 1.x does it."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from forecastle.cluster.specs import parse_model, valid_name
from forecastle.cluster.threads import in_thread
from forecastle.errors import BadInput, ModelNotFound, SourceNotFound, StartError
from forecastle.models.artifact import open_artifact
from forecastle.models.identity import identity

FIRST_VERSION = "1"
"""The version of a model whose archive says none."""


class Found(NamedTuple):
    """A model as it can be registered: where it lies, and what it and its version are called."""

    source: str
    name: str
    version: str


class ModelStore:
    """Finds models: ``root`` is the folder in which relative URLs are looked up, ``cache`` where archives go."""

    def __init__(self, root: Path, cache: Path) -> None:
        self._root = root
        self._cache = cache

    async def find(self, url: str, *, name: str = "", handler: str = "") -> Found:
        """Fetch a model, and say what it is called: ``name``, else what its manifest says, else after its file.

        Raises:
            BadInput: it is no model, cannot be fetched, or cannot be called so.
            ModelNotFound: the URL is none, or nothing lies there.
        """
        source = self._source(url)
        try:
            artifact = await in_thread(partial(open_artifact, source, cache=self._cache, handler=handler))
            said = identity(artifact)
            called = valid_name(name or said.name or parse_model(source)[0])
        except SourceNotFound as error:
            if _is_http(source):
                raise BadInput(f"Failed to download model from: {url[:500]}: {error.message}") from None
            raise ModelNotFound(f"Model not found in model store: {url[:500]}: {error.message}") from None
        except StartError as error:
            raise BadInput(error.message) from None
        return Found(source, called, said.version or FIRST_VERSION)

    def _source(self, url: str) -> str:
        if _is_http(url):
            try:
                urlsplit(url).port  # noqa: B018 -- asked for, it is checked
            except ValueError as error:
                raise ModelNotFound(f"Invalid model url: {url[:500]}: {error}") from None
            return url
        if ".." in PurePosixPath(url).parts:
            raise ModelNotFound(f"Relative path is not allowed in url: {url[:500]}")
        if "://" in url or Path(url).is_absolute():
            return url
        path = self._root.absolute() / url
        if not _is_there(path):
            text = f"Model not found in model store: {url[:500]}; the store is {self._root}, set by --model-root"
            raise ModelNotFound(text)
        return str(path)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _is_http(url: str) -> bool:
    return url[:8].lower().startswith(("http://", "https://"))
