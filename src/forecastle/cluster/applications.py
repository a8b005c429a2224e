"""The applications that are served, kept equal to those that are asked for; and what their policies learn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random

import msgspec

from forecastle.cluster.desired import Application, Desired
from forecastle.cluster.store.store import Store
from forecastle.errors import RequestError
from forecastle.serving.application import ServedApplication
from forecastle.serving.cache import Cache
from forecastle.serving.clock import Clock
from forecastle.serving.output import from_text
from forecastle.serving.router import Router
from forecastle.serving.selection import make

logger = logging.getLogger(__name__)

SAVE_SECONDS = 1.0
"""How often what policies have learned goes to the store; a server that is killed forgets so much of it."""

ALL = ""
"""The user whose state a policy has that makes no difference between users."""


class Applications:
    """Makes applications of what is registered; ``served`` has them by name."""

    def __init__(self, router: Router, clock: Clock, store: Store) -> None:
        self.served: dict[str, ServedApplication] = {}
        self._router = router
        self._clock = clock
        self._store = store
        self._made: dict[str, Application] = {}
        self._saving: asyncio.Task[None] | None = None

    def check(self, application: Application) -> None:
        """Refuse an application whose policy is none.

        Raises:
            BadInput: there is no such policy, or an option of it is wrong.
        """
        make(application.policy, application.policy_options, random.Random())

    async def match(self, state: Desired) -> None:
        """Serve the applications of ``state``, and no others. One call comes after the other."""
        served = self.served
        for name in served.keys() - state.applications.keys():
            del served[name], self._made[name]
        for name, application in state.applications.items():
            if not _same(self._made.get(name), application):
                served[name] = await self._serve(application)
            served[name].models = application.models
            self._made[name] = application
        if self._saving is None and served:
            self._saving = asyncio.create_task(self._save_now_and_then())

    async def stop(self) -> None:
        """Save what was learned since it was saved last."""
        if self._saving is not None:
            self._saving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._saving
            with contextlib.suppress(RequestError):
                await self._save()

    async def _serve(self, application: Application) -> ServedApplication:
        clock, limit = self._clock, application.cache_bytes
        policy = make(application.policy, application.policy_options, random.Random())
        learned = await self._store.load_state(application.name, ALL)
        if learned is not None:
            policy.restore(learned)
        return ServedApplication(
            application.name,
            input_type=application.input_type,
            default=from_text(application.default_output.encode()),
            slo=application.slo_micros / 1e6,
            models=application.models,
            policy=policy,
            cache=Cache(limit, application.cache_seconds, clock) if limit else None,
            router=self._router,
            clock=clock,
        )

    async def _save_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            try:
                await self._save()
            except RequestError as error:
                logger.warning("what policies have learned could not be saved: %s", error.message)

    async def _save(self) -> None:
        for name, application in list(self.served.items()):
            if application.learned:
                application.learned = False
                try:
                    await self._store.save_state(name, ALL, application.policy.state())
                except RequestError:
                    application.learned = True
                    raise


def _same(one: Application | None, other: Application) -> bool:
    """Whether two applications differ in nothing but what they are linked to."""
    return one is not None and msgspec.structs.replace(one, models=other.models) == other
