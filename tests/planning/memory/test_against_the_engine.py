"""Every row of what llama-server itself plans. These rows are the truth; where a rule and they differ, the
rule is wrong.
"""

import functools
import statistics
from collections import Counter, defaultdict

import pytest

from framework.planning.memory.architectures import MEASURED_ARCHITECTURES
from framework.planning.memory.fit import Extras, plan_memory
from framework.planning.memory.kv_cache import kv_bytes
from framework.planning.memory.recurrent_state import state_bytes
from framework.values.plan import FitPlan
from tests.support.memory_rows import (
    ENGINE_ONLY,
    MeasuredRow,
    measured_models,
    measured_rows,
    read_arguments,
)

MIB = 1 << 20
ROWS = measured_rows()
MODELS = sorted({row.model for row in ROWS})
COMPUTED = [row for row in ROWS if measured_models()[row.model].architecture in MEASURED_ARCHITECTURES]
HUNDREDTH = 0.02
CLOSE_MIB, CLOSE_SHARE = 16, 0.03


def planned(row: MeasuredRow) -> FitPlan:
    return _planned(row.model, row.arguments, row.gpus)


@functools.cache
def _planned(name: str, arguments: str, gpus: int) -> FitPlan:
    model = measured_models()[name]
    settings, hardware, offload = read_arguments(arguments, gpus)
    return plan_memory(model.shape, model.table, settings, hardware, offload, Extras(host=ENGINE_ONLY))


def mib(plan: FitPlan, device: str, *labels: str) -> float:
    """Of the lines that the engine's table knows."""
    return sum(line.bytes for line in plan.lines if line.device == device and line.label in labels) / MIB


def of(model: str) -> list[MeasuredRow]:
    return [row for row in ROWS if row.model == model]


@pytest.mark.parametrize("model", MODELS)
def test_the_cache_is_that_of_the_engine(model: str) -> None:
    facts = measured_models()[model]
    for row in of(model):
        settings, _, _ = read_arguments(row.arguments, row.gpus)
        assert kv_bytes(facts.shape, settings) / MIB == pytest.approx(row.kv_mib, abs=HUNDREDTH), row.name


@pytest.mark.parametrize("model", MODELS)
def test_the_state_is_that_of_the_engine(model: str) -> None:
    facts = measured_models()[model]
    for row in of(model):
        settings, _, _ = read_arguments(row.arguments, row.gpus)
        assert state_bytes(facts.shape, settings.slots) / MIB == pytest.approx(row.state_mib, abs=HUNDREDTH)


@pytest.mark.parametrize("model", MODELS)
def test_each_device_gets_the_weights_that_the_engine_gives_it(model: str) -> None:
    for row in of(model):
        plan = planned(row)
        planned_mib = Counter[str]()
        for line in plan.lines:
            if line.label == "weights":
                host = "Host" if line.mapped else "CPU_REPACK"
                planned_mib[host if line.device == "CPU" else line.device] += line.bytes
        for device in planned_mib.keys() | row.devices.keys():
            weights = row.devices.get(device, (0, 0, 0))[0]
            assert weights - 0.5 <= planned_mib[device] / MIB < weights + 1.5, (row.name, device)


@pytest.mark.parametrize("model", MODELS)
def test_each_device_gets_the_cache_that_the_engine_gives_it(model: str) -> None:
    for row in of(model):
        plan = planned(row)
        for device, (_, cache, _) in row.devices.items():
            name = {"Host": "CPU", "CPU_REPACK": ""}.get(device, device)
            assert cache - 0.5 <= mib(plan, name, "kv", "recurrent_state") + 0.5 <= cache + 2, row.name


def compute_errors(row: MeasuredRow) -> list[tuple[float, float]]:
    """Error and truth of each compute buffer in MiB. Rows of several GPUs are known to whole MiB only."""
    plan = planned(row)
    if row.compute_mib:
        truths = dict(row.compute_mib)
        return [(mib(plan, device, "compute") - truth, truth) for device, truth in truths.items()]
    found = []
    for device, (_, _, compute) in row.devices.items():
        if device != "CPU_REPACK":
            error = mib(plan, "CPU" if device == "Host" else device, "compute") - compute
            found.append((max(0.0, error - 1) if error > 0 else error, float(compute)))
    return found


def test_compute_buffers_are_within_three_percent_or_16_mib_for_every_kind_of_attention() -> None:
    """Where the lines say that they are computed."""
    within: defaultdict[str, list[bool]] = defaultdict(list)
    for row in COMPUTED:
        for error, truth in compute_errors(row):
            close = abs(error) <= max(CLOSE_MIB, CLOSE_SHARE * truth)
            within[measured_models()[row.model].attention].append(close)
    assert {kind: statistics.mean(answers) for kind, answers in within.items() if not all(answers)} == {
        kind: pytest.approx(1, abs=0.05) for kind, answers in within.items() if not all(answers)
    }


def test_most_compute_buffers_are_exact() -> None:
    errors = [error for row in COMPUTED for error, _ in compute_errors(row)]
    assert sum(abs(error) < 0.3 for error in errors) > 0.95 * len(errors)


@pytest.mark.parametrize("model", MODELS)
def test_no_device_gets_more_than_one_percent_less_than_it_needs(model: str) -> None:
    for row in of(model):
        plan = planned(row)
        for device, parts in row.devices.items():
            if device == "CPU_REPACK":
                continue
            name, truth = device, sum(parts)
            if device == "Host":
                name, truth = "CPU", truth + sum(row.devices.get("CPU_REPACK", (0,)))
            total = mib(plan, name, "weights", "kv", "recurrent_state", "compute")
            assert total >= 0.99 * truth - 1.5, (row.name, device)
