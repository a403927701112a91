"""One run of `paddock-native-server`, from its arguments to its exit status (12 §1). Called by `__main__`.

Help and version import neither the compiled core nor the HTTP server.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from framework.nativeserver import command_line
from framework.nativeserver.flags.table import HELP, LIST_DEVICES, VERSION
from framework.nativeserver.help_text import help_text, version_text
from framework.nativeserver.load_failed import LoadFailed
from framework.nativeserver.missing_core import NO_CORE, PACKAGE, with_remedy
from framework.nativeserver.model_files import check_files
from framework.nativeserver.settings import Settings
from framework.nativeserver.usage_error import UsageError

log = logging.getLogger(__name__)

MIB = 2**20
FAILED = 1
OPEN_TO_PAGES = (
    "no API key is set and CORS allows every origin: any web page that somebody opens on this machine can use"
    " the server; set --api-key or --cors-origins"
)


def load_core() -> Any:
    """The compiled core. Raises ImportError with what to do."""
    # By name: it is built apart, and a checkout without it is complete.
    try:
        return import_module(PACKAGE)
    except ImportError as error:
        raise with_remedy(error) from error


def run(argv: Sequence[str], environ: Mapping[str, str], *, core: Callable[[], Any] = load_core) -> int:
    """Do what `argv` asks for; the exit status."""
    try:
        settings = command_line.read(argv, environ)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    if settings.action == HELP:
        sys.stdout.write(help_text())
    elif settings.action == VERSION:
        sys.stdout.write(version_text())
    elif settings.action == LIST_DEVICES:
        return _list_devices(core)
    else:
        return _serve(settings, core)
    return 0


def _list_devices(core: Callable[[], Any]) -> int:
    """The form of 15 §9."""
    try:
        devices = core().list_devices()
    except ImportError as error:
        sys.stderr.write(f"error: {NO_CORE}: {error}\n")
        return FAILED
    sys.stdout.write("Available devices:\n")
    for device in devices:
        total, free = device.total_bytes // MIB, device.free_bytes // MIB
        sys.stdout.write(f"  {device.name}: {device.description} ({total} MiB, {free} MiB free)\n")
    return 0


def _serve(settings: Settings, core: Callable[[], Any]) -> int:
    from framework.nativeserver import log as log_lines
    from framework.nativeserver.bind import CannotBind, Listening, tls_fault

    options = settings.options
    with ExitStack() as stack:
        if settings.log.file is not None or settings.log.jsonl:
            from framework.nativeserver.stderr_copy import StderrCopy

            try:
                stack.enter_context(StderrCopy(settings.log.file, as_json=settings.log.jsonl))
            except OSError as error:
                sys.stderr.write(f"error: cannot write --log-file: {error.strerror}\n")
                return FAILED
        log_lines.install(settings.log, options.verbosity)
        for warning in settings.warnings:
            log.warning("%s", warning)
        if fault := tls_fault(options):
            log.error("%s", fault)
            return FAILED
        try:
            check_files(options.engine)
            listening = Listening.open(options)
        except LoadFailed as error:
            sys.stderr.write(f"{error.last_line}\n")
            return FAILED
        except CannotBind as error:
            log.error("%s", error)
            log.error("exiting due to HTTP server error")
            return FAILED
        stack.callback(listening.close)
        if not options.api_keys and options.cors.origins == "*":
            log.warning(OPEN_TO_PAGES)
        return _live(settings, listening, core)


def _live(settings: Settings, listening: Any, core: Callable[[], Any]) -> int:
    from framework.nativeserver.loading import Loading

    loading = Loading(settings, core)
    loading.begin()
    # While the library loads.
    import uvloop

    from framework.nativeserver.serving import CANCELLED, OK, serve

    try:
        return uvloop.run(serve(settings, listening, loading))
    except LoadFailed as error:
        if error.code == CANCELLED:
            return OK
        sys.stderr.write(f"{error.last_line}\n")
        return FAILED
