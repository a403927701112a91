"""The load of the model, on a thread of its own, begun before the HTTP server is there (12 §1.3).

Called by process.

The library loads without the interpreter, whose other work until then is to import the server: so both take
the time of one of them. Imports nothing of HTTP.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from framework.nativeserver.context_memory import check_context
from framework.nativeserver.engine_params import engine_params
from framework.nativeserver.load_failed import LoadFailed, load_hint
from framework.nativeserver.missing_core import NO_CORE
from framework.nativeserver.settings import Settings

if TYPE_CHECKING:
    from framework.nativeserver.core import Engine

log = logging.getLogger(__name__)

CoreLoader = Callable[[], Any]
"""Imports the compiled core."""

NO_MEDIA = "this build has no media support; start without --mmproj"
# What comes before the library's own work takes a tenth of it, and more from a slow disk, which clients that
# ask meanwhile need not wait for.
BEGIN_S = 0.1


class Loading:
    """One load under way. Both futures end with LoadFailed where it failed."""

    def __init__(self, settings: Settings, load_core: CoreLoader) -> None:
        self.engine: Future[tuple[Engine, Any]] = Future()
        """The engine and the core's module, before the model is loaded."""
        self.model: Future[None] = Future()
        """The model is in memory."""
        self._settings = settings
        self._load_core = load_core
        self._has_begun = threading.Event()
        for future in (self.engine, self.model):
            # Whoever gives up waiting for a load does not call it off.
            future.set_running_or_notify_cancel()

    def begin(self) -> None:
        """Start the thread; returns once the library is at work and leaves the interpreter free.

        Nobody waits for the thread at the end of the process.
        """
        threading.Thread(target=self._run, name="loader", daemon=True).start()
        self._has_begun.wait(BEGIN_S)

    def _run(self) -> None:
        try:
            module = self._import()
            params = engine_params(module, self._settings.options.engine)
            engine: Engine = module.Engine(params)
            self.engine.set_result((engine, module))
            self._load(engine, module, params)
            self.model.set_result(None)
        except Exception as error:  # noqa: BLE001  raised by whoever waits
            self._has_begun.set()
            for future in (self.engine, self.model):
                if not future.done():
                    future.set_exception(error)

    def _import(self) -> Any:
        try:
            module = self._load_core()
        except ImportError as error:
            raise LoadFailed("library", f"{NO_CORE}: {error}") from error
        settings = self._settings
        module.set_log_verbosity(0 if settings.log.disabled else settings.options.verbosity)
        return module

    def _load(self, engine: Engine, module: Any, params: Any) -> None:
        if self._settings.projector is not None:
            raise LoadFailed("mmproj", f"{NO_MEDIA} '{self._settings.projector}'")
        check_context(params, module)
        log.info("loading model '%s'", params.model_path)
        self._has_begun.set()
        try:
            engine.load()
        except module.LoadError as error:
            raise LoadFailed(error.code, f"{error}{load_hint(error.code, str(error))}") from error
