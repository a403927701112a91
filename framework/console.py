"""What `paddock up` shows on the terminal besides log lines: a welcome, and a bar for each model that loads.

Called by app.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Literal

from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from framework.log_lines import TERMINAL, show
from framework.runtime.fleet import Fleet
from framework.runtime.logs import clean_line
from framework.telemetry.changes import Changes
from framework.values.instance import InstanceView, State
from framework.values.manifest import Listener, Manifest

# Listening on all addresses is no address that a client could use.
ANY_ADDRESS = ("0.0.0.0", "::")
# Ten a second look smooth and cost nothing.
REFRESH_S = 0.1
LOADING = (State.FETCHING, State.PLANNING, State.STARTING)


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
            show(line)

    def farewell(self, on_exit: Literal["stop", "keep"]) -> None:
        """The end has begun."""
        then = (
            "the models stop."
            if on_exit == "stop"
            else "models that serve are left to the next `paddock up`."
        )
        show(f"Ending: open requests are told, then {then}")

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
