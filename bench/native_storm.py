"""Ten thousand requests of random shapes against the native engine, a quarter of them cut off.

Run by `make bench`. Says what was answered, which slots stayed busy and how much memory the process holds
after each thousand: a leak shows as growth that goes on.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from tests.support.engine_pair import RunningServer, native_line, running_server
from tests.support.request_storm import storm
from tests.support.working_models import write_working_model

ROUNDS, REQUESTS = 10, 1000
ARGUMENTS = ("-c", "1024", "-np", "4", "-t", "1", "--cache-ram", "8", "--metrics")
MIB = 2**20


async def weather(server: RunningServer, table: Table) -> None:
    """A row for each round."""
    process = psutil.Process(server.process.pid)
    for number in range(ROUNDS):
        seen: Counter[int] = await storm(server.url, REQUESTS, number)
        await asyncio.sleep(1.0)
        slots = server.get("/slots").json()
        n_busy = sum(slot["is_processing"] for slot in slots)
        answers = ", ".join(f"{status}: {count}" for status, count in sorted(seen.items()))
        rss_mib = process.memory_info().rss / MIB
        table.add_row(
            str((number + 1) * REQUESTS), answers, str(n_busy), f"{rss_mib:.0f}", f"{process.num_fds()}"
        )


def main() -> None:
    """Print a table."""
    table = Table(title=f"{ROUNDS * REQUESTS} requests, 16 at once, a quarter cut off", title_justify="left")
    for column in ("requests", "answers by status", "busy slots", "RSS, MiB", "descriptors"):
        table.add_column(column, justify="left" if column == "answers by status" else "right")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "small.gguf"
        write_working_model(model)
        with running_server(native_line(), model, Path(folder) / "log", *ARGUMENTS) as server:
            asyncio.run(weather(server, table))
    Console().print(table)


if __name__ == "__main__":
    main()
