"""Models that come and go while the server runs: SageMaker's multi-model endpoints load and unload them by name."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import msgspec

from forecastle.cluster.controller import Controller
from forecastle.cluster.prepare import prepared
from forecastle.cluster.specs import ServerOptions, valid_name
from forecastle.cluster.threads import in_thread
from forecastle.errors import AlreadyServed, BadInput, InstallFailed, LoadFailed, NotLoaded, OutOfMemory, StartError


class Registry:
    """Loads and unloads models from below one directory. ``urls`` has where each of them lies, by name."""

    def __init__(self, controller: Controller, options: ServerOptions) -> None:
        self.urls: dict[str, str] = {}
        self._controller = controller
        self._options = options
        self._turns: dict[str, asyncio.Lock] = {}

    async def load(self, name: str, url: str) -> None:
        """Load a model; it answers when this returns. One name is loaded and unloaded one after the other.

        Raises:
            BadInput: the name is none, or there is no model at the path, or it lies outside the directory.
            AlreadyServed: a model of this name is loaded, or being loaded.
            OutOfMemory: it does not fit.
            NotLoaded: it cannot be loaded for another reason.
        """
        if name in self.urls:
            raise AlreadyServed(f"the model {name!r} is loaded already; unload it first")
        path = self._inside(url)
        self.urls[name] = url
        try:
            async with self._turn(name):
                spec = msgspec.structs.replace(self._options.spec(valid_name(name), str(path)), required=False)
                spec, artifact = await in_thread(partial(prepared, spec, cache=self._options.cache_dir))
                await self._controller.add(spec, artifact)
        except LoadFailed as error:
            raise (OutOfMemory if error.memory else NotLoaded)(error.message.splitlines()[0]) from None
        except InstallFailed as error:
            raise NotLoaded(error.message) from None
        except StartError as error:
            raise BadInput(error.message) from None
        finally:
            if not self._controller.serves(name):
                self.urls.pop(name, None)

    async def unload(self, name: str) -> None:
        """Unload a model; its memory is free when this returns.

        Raises:
            ModelNotFound: no model of this name is loaded.
        """
        async with self._turn(name):
            self.urls.pop(name, None)
            await self._controller.remove(name, drain=self._options.drain_timeout)

    def _inside(self, url: str) -> Path:
        root = self._options.model_root.resolve()
        path = Path(url.removeprefix("file://")).resolve()
        if not path.is_relative_to(root) or path == root:
            raise BadInput(f"the url {url[:200]!r} lies outside {self._options.model_root}, set by --model-root")
        return path

    def _turn(self, name: str) -> asyncio.Lock:
        # Names are the platform's hashes; locks of those that are gone are let go of.
        for known in [known for known, lock in self._turns.items() if known not in self.urls and not lock.locked()]:
            del self._turns[known]
        return self._turns.setdefault(name, asyncio.Lock())
