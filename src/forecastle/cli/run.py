"""One run of the server, from the sockets to the last replica's end: the place where all parts are put together."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import uvloop

from forecastle.cli import artifacts, client, logs, table, values
from forecastle.client.generate import FOLDER, generate
from forecastle.cluster.all_models import AllModels
from forecastle.cluster.applications import Applications
from forecastle.cluster.controller import Controller
from forecastle.cluster.management import Management
from forecastle.cluster.model_store import ModelStore
from forecastle.cluster.registered import RegisteredModels
from forecastle.cluster.registry import Registry
from forecastle.cluster.specs import ModelSpec, ServerOptions, cluster_store
from forecastle.cluster.store import open_store
from forecastle.errors import RequestError, StartError
from forecastle.http import swagger
from forecastle.http.app import InferenceApp
from forecastle.http.clipper_admin import admin_routes
from forecastle.http.control import control_routes
from forecastle.http.management import management_app
from forecastle.http.metrics_writer import WRITERS, MetricsWriter
from forecastle.http.mms_management import MmsManagement
from forecastle.http.server import HttpServer
from forecastle.http.stats import HttpStats
from forecastle.serving.clock import LoopClock
from forecastle.serving.router import Router

logger = logging.getLogger(__name__)

_MANAGEMENT_DRAIN = 1.0
"""How long in seconds requests may take to end that are no predictions."""


def serve(options: ServerOptions, specs: Sequence[ModelSpec], language: str = "") -> int:
    """Serve until a signal, and return the exit code: 0, since a server that was told to stop and did has done well.

    With a ``language``, a client's package is generated first, once the models are loaded.

    Raises:
        StartError: a port is taken, a model cannot be found, recognised or loaded, or a client not generated.
    """
    logs.configure(
        options.log_level,
        style=options.log_format,
        file=options.log_file,
        rotation=values.rotation(options.log_rotation_time),
    )
    return uvloop.run(run(options, specs, language))


async def run(options: ServerOptions, specs: Sequence[ModelSpec], language: str = "") -> int:
    """Open the ports, load the models, say what is served, and wait for SIGTERM or SIGINT.

    The ports open first: a taken one is told before any model is loaded, and ``/ping`` answers 503 until all are ready.
    Whatever ends the run, no replica outlives it.
    """
    loop = asyncio.get_running_loop()
    router = Router(loop, log_batches=options.log_batches)
    controller = Controller(router)
    stats = HttpStats()
    registry = Registry(controller, options) if options.multi_model else None
    router.may_be_empty = not specs
    cluster = options.cluster or "default"
    store = open_store(options.store or cluster_store(cluster), cluster)
    applications = Applications(router, LoopClock(loop), store)
    registered = Management(store, applications, RegisteredModels(controller, router, options))
    app = InferenceApp(
        router,
        stats,
        timeout=options.timeout,
        max_body=options.max_body,
        registry=registry,
        applications=applications.served,
        title=options.api_title,
        version=options.api_version,
    )
    inference = HttpServer(app, options.host, options.port)
    defaults = options.spec("model", "")
    everything = AllModels(registered, controller, router, drain=options.drain_timeout, registry=registry)
    models = ModelStore(options.model_root, options.cache_dir)
    routes = [
        *MmsManagement(registered, everything, models, defaults).routes(),
        *admin_routes(registered, router, defaults),
        *control_routes(registered, router, applications.served, defaults),
    ]
    management = HttpServer(
        management_app(router, stats, applications=applications.served, routes=routes, source=everything.source),
        options.management_host,
        options.management_port,
        option="--management-port",
    )
    stop = _stop_on_signals(loop, controller)
    drain = _MANAGEMENT_DRAIN
    writer: MetricsWriter | None = None
    writing: asyncio.Task[None] | None = None
    try:
        await inference.start()
        await management.start()
        logger.info("listening on port %d, loading %s", inference.port, ", ".join(spec.name for spec in specs))
        if await _unless(stop, _load(controller, registered, options, specs)):
            _collect_rarely()
            if language:
                await _generate(router, options, inference.port, language)
            if options.metrics_write_to is not None:
                writer = MetricsWriter(router, stats, WRITERS[options.metrics_write_to])
                writing = asyncio.create_task(writer.run())
            _announce(router, table.url(options.host, inference.port), table.url(options.host, management.port))
            await stop.wait()
            drain = options.drain_timeout
    finally:
        router.draining = True
        await inference.stop(drain)
        await registered.stop()
        await controller.stop()
        await management.stop(_MANAGEMENT_DRAIN)
        if writer is not None and writing is not None:
            writing.cancel()
            writer.tell()  # what has happened since the last minute
    return 0


async def _generate(router: Router, options: ServerOptions, port: int, language: str) -> None:
    models = [model.describe() for model in router.models.values()]
    host = table.url(options.host, port).removeprefix("http://")
    description = swagger.describe(models, host=host, title=options.api_title, version=options.api_version)
    client.told(await asyncio.to_thread(generate, description, language), language, FOLDER)


def _collect_rarely() -> None:
    """Take what is there by now out of garbage collection, and look for cycles rarely: a request makes none.

    Each request makes some dozens of objects, so that the default would look after every tenth of them or so. Measured
    on a small ONNX model at 64 connections: 7 % more requests a second (four pairs of runs, wrk -t1 -c64 -d4).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 1_000)


async def _load(
    controller: Controller, registered: Management, options: ServerOptions, specs: Sequence[ModelSpec]
) -> None:
    await controller.start(await artifacts.find(specs, options.cache_dir))
    try:
        await registered.start()
    except RequestError as error:
        raise StartError(error.message) from None


def _announce(router: Router, inference: str, management: str) -> None:
    try:
        table.show([model.describe() for model in router.models.values()], inference, management, sys.stdout)
    except OSError as error:
        logger.warning("stdout is closed (%s); serving on %s, management on %s", error.strerror, inference, management)
        # What is left in the buffer must go somewhere, else the end of the process reports the same error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do the work, unless told to stop before it is done; say whether it was done."""
    doing = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([doing, stopping], return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            await doing
        return doing.done()
    finally:
        doing.cancel()
        stopping.cancel()
        await asyncio.gather(doing, stopping, return_exceptions=True)


def _stop_on_signals(loop: asyncio.AbstractEventLoop, controller: Controller) -> asyncio.Event:
    """Let the first SIGTERM or SIGINT set the event, and the second end the process and its replicas at once."""
    stop = asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            controller.kill()
            os._exit(128 + number)
        logger.info("%s: stopping; a second one ends the server at once", number.name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return stop
