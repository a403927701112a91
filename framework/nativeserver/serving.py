"""The life of a server: answer while the model loads, serve it, end in order (12 §1.3-1.5).

Called by process. A signal ends it with status 0 within 5 s, at whatever it is; a second one ends it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial

from framework.chat.template_limits import TemplateError
from framework.http_limits import limits_of_process
from framework.http_server import HttpServer
from framework.nativeserver.app import loaded, make_app
from framework.nativeserver.bind import Listening
from framework.nativeserver.bridge import FAILED, EngineBridge
from framework.nativeserver.load_failed import LoadFailed
from framework.nativeserver.loading import Loading
from framework.nativeserver.off_loop import thread_of_its_own
from framework.nativeserver.settings import Settings
from framework.values.process import INTERRUPTED

log = logging.getLogger(__name__)

OK, BROKEN, DEVICE_GONE = 0, 1, 3
CANCELLED = "cancelled"
ENGINE_END_MS = 3000
LOADER_END_S = 1.0
# A request that was cut and does not end is a fault; an end as a whole may take 5 s.
FAULT_S = 2
# Of the 5 s that an end may take; whatever still runs then holds nothing that is worth waiting for.
LAST_RESORT_S = 4.5
STATE_EVERY_S = 0.2
TEMPLATE_HINTS = "; start with --no-jinja, or choose a built-in template such as --chat-template chatml"


async def serve(settings: Settings, listening: Listening, loading: Loading) -> int:
    """Serve until a signal or a failure; the exit status. Raises LoadFailed."""
    stop = asyncio.Event()
    with _signals(stop):
        engine, module = await asyncio.wrap_future(loading.engine)
        withheld = settings.options.undrafted_types
        async with EngineBridge(engine, module, withheld=withheld) as bridge:
            return await _Server(settings, listening, bridge, loading).run(stop)


class _Server:
    def __init__(
        self, settings: Settings, listening: Listening, bridge: EngineBridge, loading: Loading
    ) -> None:
        self._listening = listening
        self._bridge = bridge
        self._loading = loading
        self._app = make_app(settings.options, bridge)
        options = settings.options
        self._http = HttpServer(
            self._app,
            limits_of_process(),
            fault_s=FAULT_S,
            ssl_key_file=options.ssl_key_file,
            ssl_cert_file=options.ssl_cert_file,
        )

    async def run(self, stop: asyncio.Event) -> int:
        """From listening to the end."""
        http = asyncio.create_task(self._http.serve(sockets=[self._listening.socket]))
        log.info("server is listening on %s", self._listening.url)
        life = asyncio.create_task(self._live())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({http, life, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if stop.is_set():
            log.info("ending on a signal")
            status = OK
        elif http.done():
            log.error("the HTTP server has ended by itself", exc_info=http.exception())
            status = BROKEN
        else:
            status = BROKEN if life.exception() is not None else life.result()
        await self._end(status, http, life)
        # A load that the end broke off has failed as well, and nobody asks for the reason.
        failure = life.exception()
        if status == BROKEN and failure is not None:
            raise failure
        return status

    async def _live(self) -> int:
        """Wait for the model, then watch the engine until it fails or the server ends. Raises LoadFailed."""
        await asyncio.wrap_future(self._loading.model)
        await asyncio.to_thread(self._open)
        log.info("model loaded")
        while self._bridge.state != FAILED:
            if self._http.should_exit:
                return OK
            await asyncio.sleep(STATE_EVERY_S)
        log.error("the device has failed, and the engine with it; the process ends")
        return DEVICE_GONE

    def _open(self) -> None:
        """The model is there: take requests. Raises LoadFailed."""
        try:
            loaded(self._app)
        except TemplateError as error:
            raise LoadFailed("template", f"{error}{TEMPLATE_HINTS}") from error
        # What is there by now stays: no collection needs to look at it.
        gc.freeze()
        gc.enable()
        self._bridge.engine.start()

    async def _end(self, status: int, http: asyncio.Task[None], life: asyncio.Task[int]) -> None:
        """End the engine, then the server: a stream gets its last event from its task, which takes as long as
        the batch under way."""
        _arm_last_resort(status)
        has_ended = await thread_of_its_own(partial(self._bridge.engine.shutdown, ENGINE_END_MS))
        self._http.should_exit = True
        await asyncio.wait({http})
        _, running = await asyncio.wait({life}, timeout=LOADER_END_S)
        if has_ended is not True or running or self._bridge.text_work.is_busy:
            # Whoever frees the engine would wait for what still uses it.
            log.warning("the engine is still at work; the process ends without it")
            sys.stderr.flush()
            os._exit(status)


def _arm_last_resort(status: int) -> None:
    """A thread, since the event loop may be what hangs."""
    timer = threading.Timer(LAST_RESORT_S, os._exit, (status,))
    timer.daemon = True
    timer.start()


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def end() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED)
        stop.set()

    loop.add_signal_handler(signal.SIGINT, end)
    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield
    finally:
        # What is left is the end of the process, which a signal need not hasten.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
