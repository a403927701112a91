"""What `paddock up` shows on the terminal: a welcome, log lines, and a bar for each model that loads.

Called by app. Log lines hold text from files, engines and clients: control characters are made visible.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from typing import IO, Literal, cast

from rich.console import Console as RichConsole
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from framework.runtime.fleet import Fleet
from framework.runtime.logs import clean_line
from framework.standard_streams import LastingErrors
from framework.telemetry.changes import Changes
from framework.values.instance import InstanceView, State
from framework.values.manifest import Listener, Manifest

log = logging.getLogger(__name__)

# A reader that leaves, as in `paddock up 2>&1 | head`, or a full disk below the log: serving goes on.
TERMINAL = RichConsole(file=cast(IO[str], LastingErrors()), highlight=False)
# Listening on all addresses is no address that a client could use.
ANY_ADDRESS = ("0.0.0.0", "::")
# Ten a second look smooth and cost nothing.
REFRESH_S = 0.1
LOADING = (State.FETCHING, State.PLANNING, State.STARTING)


class CleanFormatter(logging.Formatter):
    """Time in UTC, level, text; one line, whatever is in the text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)sZ %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  name of the base class
        """The line without terminal control; a trace that follows keeps its lines."""
        return clean_line(super().formatMessage(record))


class TerminalHandler(logging.Handler):
    """Log lines above the bars, through the same terminal, so that neither tears the other apart."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        TERMINAL.print(Text(self.format(record)), soft_wrap=True)


class Console:
    """The terminal of one `up`. Without a terminal there are log lines only."""

    def __init__(self, fleet: Fleet, changes: Changes) -> None:
        self._fleet = fleet
        self._changes = changes
        self._bars: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TimeElapsedColumn(),
            console=TERMINAL,
            transient=True,
            auto_refresh=False,
            # Everything here prints through TERMINAL already, which writes to standard error itself.
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def welcome(self, manifest: Manifest, scheme: str, address: Listener) -> None:
        """Where everything is."""
        count = len(manifest.models)
        reached = f"{socket.gethostname()}:{address.port}" if address.host in ANY_ADDRESS else str(address)
        lines = (
            f"paddock    {clean_line(str(manifest.path))}: {count} {'model' if count == 1 else 'models'}",
            f"endpoint   {scheme}://{reached}/v1",
            f"dashboard  {scheme}://{reached}/",
            "Ctrl-C ends it; `paddock status` in another terminal shows what runs.",
        )
        for line in lines:
            TERMINAL.print(Text(line), soft_wrap=True)

    def farewell(self, on_exit: Literal["stop", "keep"]) -> None:
        """The end has begun."""
        then = (
            "the models stop."
            if on_exit == "stop"
            else "models that serve are left to the next `paddock up`."
        )
        TERMINAL.print(Text(f"Ending: open requests are told, then {then}"), soft_wrap=True)

    async def run(self) -> None:
        """Bars on a terminal while something loads, until cancelled."""
        if not TERMINAL.is_terminal:
            return
        try:
            while True:
                seen = self._changes.version
                self._show()
                if self._bars:
                    self._progress.start()
                    self._progress.refresh()
                    await asyncio.sleep(REFRESH_S)
                else:
                    # Nothing to draw: the cursor is the user's again.
                    self._progress.stop()
                    await self._changes.wait(seen)
        finally:
            self._progress.stop()

    def _show(self) -> None:
        loading = {
            instance.instance: instance
            for model in self._fleet.views()
            for instance in model.instances
            if instance.state in LOADING
        }
        for name in self._bars.keys() - loading.keys():
            self._progress.remove_task(self._bars.pop(name))
        for name, instance in loading.items():
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(clean_line(instance.model), total=None)
            self._update(self._bars[name], instance)

    def _update(self, bar: TaskID, instance: InstanceView) -> None:
        several = instance.request.live.replicas > 1
        name = f"{instance.model}, replica {instance.replica}" if several else instance.model
        text = f"{clean_line(name)} {instance.state}"
        progress = instance.progress
        if progress is None:
            self._progress.update(bar, description=text)
        else:
            total = progress.total_bytes or None
            self._progress.update(bar, description=text, completed=progress.loaded_bytes, total=total)


def set_up_logging(*, debug: bool) -> None:
    """Log lines on standard error; those of libraries only when they warn."""
    handler = TerminalHandler()
    handler.setFormatter(CleanFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("framework").setLevel(logging.DEBUG if debug else logging.INFO)
