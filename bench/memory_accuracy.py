"""How far the memory model is from what llama-server itself plans, and how long a plan takes.

Run by `make bench`. The rows in tests/data/memory are the engine's own plans: for 50 models that the rules
were found with, and for more than 100 others that came later. With `--fresh N` as many new ones are made:
sparse files of all those models, cut to fewer layers, with settings drawn by chance, shown to a real
llama-server. README.md of this folder says what the columns are and where the model falls short.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.engine_plan import find_engine, planned_by, stand_ins
from bench.sparse_gguf import write_sparse_gguf
from framework.planning.memory.fit import Extras, plan_memory
from framework.planning.memory.placement import HOST
from framework.planning.memory.settings import CacheSettings, GpuBudget, Hardware
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable, table_of
from framework.values.plan import FitPlan
from tests.support.memory_rows import (
    ENGINE_ONLY,
    MeasuredModel,
    MeasuredRow,
    make_model,
    measured_models,
    measured_rows,
    read_arguments,
)

MIB, GIB = 1 << 20, 1 << 30
PERCENTILE = 0.95
COLUMNS = ("KV and state", "weights", "compute", "total")
MODELS_PLANNED = 100
# The source of rows that came after the rules.
FURTHER = "further"
# Of the table, also where output goes to a file.
WIDTH = 130
REPEATS = 5
LAYER = re.compile(r"blk\.(\d+)\.")
# Cut models of these kinds would lack what their last layers share or predict.
WHOLE = ("nextn_predict_layers", "attention.shared_kv_layers")


@dataclass(frozen=True)
class Errors:
    """Planned minus true of one device, in MiB. The truth is known to whole MiB; what rounds to it is no
    error.
    """

    kind: str
    by_column: Mapping[str, float]
    share: float
    """The total's error as a share of the device's total."""


def errors_of(model: MeasuredModel, row: MeasuredRow) -> Iterator[Errors]:
    """One answer per device that the engine lists."""
    settings, hardware, offload = read_arguments(row.arguments, row.gpus)
    extras = Extras(host=ENGINE_ONLY)
    plan = plan_memory(model.shape, model.table, settings, hardware, offload, extras)
    for device, truths in _by_device(row).items():
        planned = [
            _mib(plan, device, "kv", "recurrent_state"),
            _mib(plan, device, "weights"),
            _mib(plan, device, "compute"),
        ]
        ordered = (truths[1], truths[0], truths[2])
        errors = [_beyond_rounding(p, t) for p, t in zip(planned, ordered, strict=True)]
        total = _beyond_rounding(sum(planned), sum(truths), rounded=len(truths))
        by_column = dict(zip(COLUMNS, (*errors, total), strict=True))
        yield Errors(model.attention, by_column, total / max(1, sum(truths)))


def _by_device(row: MeasuredRow) -> dict[str, list[int]]:
    """Weights that are rearranged for the CPU count to host memory."""
    found: dict[str, list[int]] = {}
    for name, parts in row.devices.items():
        device = name if name.startswith("RPC") else HOST
        sums = found.setdefault(device, [0, 0, 0])
        found[device] = [a + b for a, b in zip(sums, parts, strict=True)]
    return found


def _beyond_rounding(planned: float, truth: int, rounded: int = 1) -> float:
    """The engine drops fractions of a MiB, once per number that went into `truth`."""
    if truth <= planned < truth + rounded + 1:
        return 0.0
    return planned - truth if planned < truth else planned - truth - rounded


def _mib(plan: FitPlan, device: str, *labels: str) -> float:
    return sum(line.bytes for line in plan.lines if line.device == device and line.label in labels) / MIB


def show(console: Console, title: str, errors: Sequence[Errors]) -> None:
    """One row per kind of attention: absolute errors in MiB, and the worst shortfall of a total."""
    table = Table(title=title, title_justify="left")
    table.add_column("attention")
    table.add_column("n", justify="right")
    for column in COLUMNS:
        table.add_column(f"{column}\nmedian   p95  worst", justify="right", no_wrap=True)
    table.add_column("lowest\ntotal", justify="right")
    grouped: defaultdict[str, list[Errors]] = defaultdict(list)
    for error in errors:
        grouped[error.kind].append(error)
    for kind, group in [*sorted(grouped.items()), ("all", list(errors))]:
        cells = [_cell([abs(error.by_column[column]) for error in group]) for column in COLUMNS]
        table.add_row(kind, str(len(group)), *cells, f"{min(error.share for error in group):+.1%}")
    console.print(table)


def _cell(values: list[float]) -> str:
    values.sort()
    p95 = values[min(len(values) - 1, int(PERCENTILE * len(values)))]
    return f"{statistics.median(values):6.1f} {p95:5.1f} {values[-1]:6.1f}"


def stored(*, further: bool) -> list[Errors]:
    """Of the rows that come with the tests: those that the rules were found with, or further ones."""
    models = measured_models()
    rows = (row for row in measured_rows() if (row.source == FURTHER) == further)
    return [error for row in rows for error in errors_of(models[row.model], row)]


def fresh(engine: Path, count: int, seed: int) -> Iterator[Errors]:
    """Of new rows, drawn by chance."""
    dice = random.Random(seed)
    names = sorted(measured_models())
    with tempfile.TemporaryDirectory() as folder, stand_ins(engine, 2) as gpus:
        path = Path(folder) / "model.gguf"
        for _ in range(count):
            model = _cut(measured_models()[dice.choice(names)], dice)
            arguments, used = _arguments(model, dice)
            write_sparse_gguf(path, model.architecture, model.vocabulary, model.facts, model.tensors)
            devices = planned_by(engine, path, arguments, gpus[:used])
            if devices:
                yield from errors_of(
                    model, MeasuredRow(model.name, "fresh", arguments, used, devices, 0, 0, {})
                )


def _cut(model: MeasuredModel, dice: random.Random) -> MeasuredModel:
    """The model with fewer layers, which is a model that nobody has measured."""
    layers = int(model.facts["block_count"])
    if any(model.facts.get(key) for key in WHOLE) or model.architecture == "t5":
        return model
    kept = dice.randrange(min(8, layers), layers + 1)
    facts = {key: _first(value, layers, kept) for key, value in model.facts.items()} | {"block_count": kept}
    tensors = [t for t in model.tensors if not (found := LAYER.search(t.name)) or int(found[1]) < kept]
    return make_model(model.name, model.attention, model.architecture, model.vocabulary, facts, tensors)


def _first(value: object, layers: int, kept: int) -> object:
    return value[:kept] if isinstance(value, list) and len(value) == layers else value


def _arguments(model: MeasuredModel, dice: random.Random) -> tuple[str, int]:
    """A command line, and the number of GPUs for it."""
    trained = int(model.facts.get("context_length", 4096))
    slots = dice.choice([1, 1, 2, 4, 6])
    flash = dice.choice(["on", "on", "on", "off"])
    keys, values = dice.choice([("f16", "f16"), ("q8_0", "q8_0"), ("q5_1", "q4_0"), ("f16", "q8_0")])
    parts = [f"-c {dice.randrange(256, min(trained, 100_000) + 1)}", f"-np {slots}", f"-fa {flash}"]
    parts += [f"-b 2048 -ub {dice.choice([64, 256, 512, 512, 1024, 2048])}"]
    parts += [f"-ctk {keys} -ctv {values if flash == 'on' else 'f16'}"]
    if slots > 1:
        parts.append(dice.choice(["--kv-unified", "--no-kv-unified"]))
    gpus = dice.choice([0, 1, 1, 1, 2])
    if gpus:
        parts.append(f"-ngl {dice.choice([99, 99, dice.randrange(1, 40)])}")
        if "ffn_gate_inp" in str(model.tensors[-20:]):
            parts.append(f"--n-cpu-moe {dice.choice([0, 0, 5, 999])}")
    return " ".join(parts), gpus


def plan_times_ms() -> tuple[float, float]:
    """Time of a plan for each of 100 models, all together: for the first time, and once more as after an edit
    of a manifest. The quickest of some tries."""
    models = [*measured_models().values()][:MODELS_PLANNED]
    times = []
    for _ in range(REPEATS):
        plannable = [(model.shape, table_of(model.tensors)) for model in models]
        times.append((_time_ms(plannable), _time_ms(plannable)))
    return min(first for first, _ in times), min(again for _, again in times)


def _time_ms(models: Iterable[tuple[ModelShape, TensorTable]]) -> float:
    gpu = Hardware((GpuBudget("CUDA0", 24 * GIB, 24 * GIB, "cuda"),), 64 * GIB)
    started = time.perf_counter()
    for shape, table in models:
        plan_memory(shape, table, CacheSettings(32_768, slots=4), gpu)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--fresh", type=int, default=0, metavar="N", help="also ask a real engine for N plans"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what --fresh draws")
    asked = parser.parse_args()
    console = Console()
    console.width = max(console.width, WIDTH)
    title = "Error against llama-server b10068, MiB per device"
    show(console, f"{title}: the models that the rules were found with", stored(further=False))
    show(console, f"{title}: further models and architectures", stored(further=True))
    if asked.fresh:
        engine = find_engine()
        if engine is None:
            raise SystemExit("--fresh needs llama-server: install the extra `engine`, or put one on PATH.")
        errors = list(fresh(engine, asked.fresh, asked.seed))
        show(console, f"The same over {asked.fresh} fresh rows, seed {asked.seed}", errors)
    first, again = plan_times_ms()
    console.print(f"a plan for each of {MODELS_PLANNED} models: {first:.0f} ms, again: {again:.0f} ms")


if __name__ == "__main__":
    main()
