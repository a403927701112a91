"""How long it takes to know whether a model that is not downloaded fits: `paddock plan --measure`.

Run by `make bench`. A hub on the loopback publishes a model with a real header and a hole for the weights;
the real command fetches the header, lets a real llama-server measure, and prints the plan, in a process of
its own each time. Asked for are about two seconds. The second answer is remembered, and starts no engine.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.engine_plan import find_engine
from bench.sparse_gguf import write_sparse_gguf
from framework.values.units_text import size
from tests.support.hub_stand_in import HubStandIn
from tests.support.memory_rows import measured_models

ROUNDS = 5
MODEL = "llama-3.1-8b"
REPO, FILE = "bench/Model-GGUF", "Model-Q4_K_M.gguf"
# What lies beyond is a hole for certain: headers with 128k tokens take some 2 MiB.
READ_BYTES = 16 * 2**20
TIMEOUT_S = 120.0


def publish(hub: HubStandIn, folder: Path) -> int:
    """The model on the stand-in; returns its size."""
    path, model = folder / FILE, measured_models()[MODEL]
    write_sparse_gguf(path, model.architecture, model.vocabulary, model.facts, model.tensors)
    with path.open("rb") as file:
        head = file.read(READ_BYTES)
    total = path.stat().st_size
    hub.add(REPO, {FILE: head}, holes={FILE: total - len(head)})
    return total


@dataclass(frozen=True)
class Answer:
    """One run of the command; `cpu_s` is that of all its processes, whatever else the machine does."""

    wall_s: float
    cpu_s: float
    fetched_mib: float


def plan(folder: Path, env: Mapping[str, str]) -> Answer:
    """Run the command."""
    command = [sys.executable, "-m", "framework", "plan", "m", "--measure", "--json"]
    began, used = time.perf_counter(), _children_cpu_s()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=TIMEOUT_S, check=False)
    wall_s, cpu_s = time.perf_counter() - began, _children_cpu_s() - used
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
    (instance,) = json.loads(done.stdout)["instances"]
    bases = {line["basis"] for line in instance["fit"]["lines"] if line["label"] == "weights"}
    assert bases == {"measured"}, bases
    fetched = next(reason for reason in instance["reasons"] if reason["code"] == "headers_only")
    return Answer(wall_s, cpu_s, fetched["evidence"]["fetched_bytes"] / 2**20)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(console: Console, rounds: Mapping[str, Sequence[Answer]], total: str) -> None:
    """A row for each kind of answer."""
    title = f"plan --measure of a hub source of {total}, {ROUNDS} rounds"
    table = Table(title=title, title_justify="left")
    table.add_column("answer")
    for column in ("median, s", "worst, s", "CPU, s", "headers fetched, MiB"):
        table.add_column(column, justify="right")
    for what, answers in rounds.items():
        walls = [answer.wall_s for answer in answers]
        cpu_s = statistics.median(answer.cpu_s for answer in answers)
        cells = (statistics.median(walls), max(walls), cpu_s, answers[0].fetched_mib)
        table.add_row(what, *(f"{cell:.2f}" for cell in cells))
    console.print(table)


def main() -> None:
    """Print seconds of first and second answers."""
    console = Console()
    if find_engine() is None:
        console.print("measure_speed: no llama-server on this machine")
        return
    rounds: dict[str, list[Answer]] = {"first": [], "second": []}
    with tempfile.TemporaryDirectory() as name, HubStandIn() as hub:
        folder = Path(name)
        total = publish(hub, folder)
        (folder / "serve.toml").write_text(f'[models.m]\nsource = "hf:{REPO}"\n', encoding="utf-8")
        for number in range(ROUNDS):
            env = {**os.environ, "HF_ENDPOINT": hub.url, "NO_PROXY": "*", "PYTHONPATH": str(Path.cwd())}
            env |= {variable: str(folder / f"{number}") for variable in ("XDG_CACHE_HOME", "HF_HOME")}
            env["PADDOCK_STATE_DIR"] = str(folder / f"{number}" / "state")
            for answers in rounds.values():
                answers.append(plan(folder, env))
    show(console, rounds, size(total))


if __name__ == "__main__":
    main()
