"""An engine's numbers in a memory plan: exact bytes where ours agree, the engine's where not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.planning.memory.measured import apply_measurement
from framework.values.measurement import EngineChoice, MeasuredRow, Measurement
from framework.values.plan import FitPlan, MemoryLine, Remedy

MIB = 1 << 20
GPU, HOST = "CUDA0", "CPU"
LINES = (
    MemoryLine(GPU, "weights", 4403 * MIB + 77, "computed"),
    MemoryLine(GPU, "kv", 1000 * MIB, "computed"),
    MemoryLine(GPU, "recurrent_state", 24 * MIB + 5, "computed"),
    MemoryLine(GPU, "compute", 140 * MIB, "assumed"),
    MemoryLine(GPU, "runtime", 320 * MIB, "assumed"),
    MemoryLine(HOST, "weights", 281 * MIB + 9, "computed", mapped=True),
    MemoryLine(HOST, "compute", 24 * MIB + 1, "computed"),
    MemoryLine(HOST, "prompt_cache", 8192 * MIB, "assumed", grows=True),
)
PLAN = FitPlan(
    lines=LINES,
    budget_bytes={GPU: 5900 * MIB, HOST: 20_000 * MIB},
    total_bytes={GPU: 5887 * MIB + 82, HOST: 8497 * MIB + 10},
    fits=True,
    context=8192,
    slots=1,
)
ROWS = (
    MeasuredRow(GPU, GPU, 4403, 1024, 140, 24000),
    MeasuredRow(HOST, "Host", 281, 0, 24),
)


def lines(plan: FitPlan, device: str) -> dict[str, tuple[float, str]]:
    """MiB and basis by label; numbers of one label are added up."""
    found: dict[str, tuple[float, str]] = {}
    for line in plan.lines:
        if line.device == device:
            found[line.label] = (found.get(line.label, (0.0, ""))[0] + line.bytes / MIB, line.basis)
    return found


def test_numbers_that_round_to_the_engines_keep_their_bytes() -> None:
    plan = apply_measurement(PLAN, Measurement(ROWS))
    assert [line.bytes for line in plan.lines] == [line.bytes for line in LINES]
    assert plan.total_bytes == PLAN.total_bytes


def test_what_the_table_knows_is_measured_and_the_rest_keeps_its_basis() -> None:
    plan = apply_measurement(PLAN, Measurement(ROWS))
    assert {line.label: line.basis for line in plan.lines} == {
        "weights": "measured",
        "kv": "measured",
        "recurrent_state": "measured",
        "compute": "measured",
        "runtime": "assumed",
        "prompt_cache": "assumed",
    }


def test_another_number_replaces_ours() -> None:
    plan = apply_measurement(PLAN, Measurement((replace(ROWS[0], compute_mib=152), ROWS[1])))
    assert lines(plan, GPU)["compute"] == (152, "measured")
    assert plan.total_bytes[GPU] == PLAN.total_bytes[GPU] + 12 * MIB


def test_the_largest_line_takes_what_the_sum_of_several_lacks() -> None:
    plan = apply_measurement(PLAN, Measurement((replace(ROWS[0], context_mib=1500), ROWS[1])))
    kv, state = lines(plan, GPU)["kv"], lines(plan, GPU)["recurrent_state"]
    assert (kv[1], state[1]) == ("measured", "computed")
    assert kv[0] + state[0] == 1500


def test_a_sum_below_the_smaller_lines_is_one_line() -> None:
    plan = apply_measurement(PLAN, Measurement((replace(ROWS[0], context_mib=10), ROWS[1])))
    assert lines(plan, GPU)["kv"] == (10, "measured")
    assert "recurrent_state" not in lines(plan, GPU)


def test_more_than_the_budget_does_not_fit() -> None:
    plan = apply_measurement(PLAN, Measurement((replace(ROWS[0], compute_mib=400), ROWS[1])))
    assert plan.fits is False


def test_remedies_go_when_it_fits_after_all() -> None:
    remedy = Remedy("context", 4096, MIB, fits=True, sentence="Shorten it.")
    doubtful = replace(PLAN, fits=False, remedies=(remedy,))
    assert apply_measurement(doubtful, Measurement(ROWS)) == apply_measurement(PLAN, Measurement(ROWS))


def test_settings_of_the_engine_bring_their_table() -> None:
    table = (MeasuredRow(GPU, GPU, 2000, 500, 100, 24000), MeasuredRow(HOST, "Host", 2684, 524, 60))
    plan = apply_measurement(PLAN, Measurement(ROWS, choice=EngineChoice(table, gpu_layers=12)))
    assert (lines(plan, GPU)["weights"], lines(plan, HOST)["kv"]) == ((2000, "measured"), (524, "measured"))


def test_settings_without_a_table_leave_the_asked_ones() -> None:
    choice = EngineChoice((), gpu_layers=12)
    assert apply_measurement(PLAN, Measurement(ROWS, choice=choice)) == apply_measurement(
        PLAN, Measurement(ROWS)
    )


def test_a_device_that_is_not_in_the_table_holds_nothing_of_it() -> None:
    host = (MeasuredRow(HOST, "Host", 4684, 1024, 100),)
    plan = apply_measurement(PLAN, Measurement(host))
    assert set(lines(plan, GPU)) == {"runtime"}


def test_a_device_that_was_not_planned_comes_before_host_memory() -> None:
    more = (*ROWS, MeasuredRow("CUDA1", "CUDA1", 5, 6, 7, 24000))
    plan = apply_measurement(PLAN, Measurement(more))
    assert list(plan.total_bytes) == [GPU, "CUDA1", HOST]
    assert plan.total_bytes["CUDA1"] == 18 * MIB


def test_weights_in_another_order_are_not_mapped() -> None:
    rows = (ROWS[0], MeasuredRow(HOST, "Host", 100, 0, 24), MeasuredRow(HOST, "CPU_REPACK", 181, 0, 0))
    plan = apply_measurement(PLAN, Measurement(rows))
    assert [
        (line.bytes // MIB, line.mapped)
        for line in plan.lines
        if (line.device, line.label) == (HOST, "weights")
    ] == [(100, True), (181, False)]


def test_an_empty_plan_is_filled_and_judges_nothing() -> None:
    plan = apply_measurement(FitPlan(), Measurement(ROWS))
    assert (plan.total_bytes, plan.fits) == ({GPU: 5567 * MIB, HOST: 305 * MIB}, None)


def test_a_projector_is_measured_where_there_is_one() -> None:
    with_projector = replace(PLAN, lines=(*LINES, MemoryLine(GPU, "projector", 900 * MIB, "assumed")))
    plan = apply_measurement(with_projector, Measurement(ROWS, projector_mib=851))
    assert lines(plan, GPU)["projector"] == (851, "measured")
    assert "projector" not in lines(apply_measurement(PLAN, Measurement(ROWS, projector_mib=851)), GPU)


DRAFT = (MeasuredRow(GPU, GPU, 762, 1024, 92, 24000),)


def test_a_drafter_has_lines_of_its_own() -> None:
    plan = apply_measurement(PLAN, Measurement(ROWS, draft=DRAFT))
    own = {label: value for label, value in lines(plan, GPU).items() if label.startswith("drafter")}
    assert own == {
        "drafter_weights": (762, "measured"),
        "drafter_kv": (1024, "measured"),
        "drafter_compute": (92, "measured"),
    }


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(PLAN, id="nothing planned"),
        pytest.param(
            replace(PLAN, lines=(*LINES, MemoryLine(GPU, "drafter_kv", 9, "computed"))),
            id="planned as a head",
        ),
    ],
)
def test_an_embedded_head_shares_the_models_weights(plan: FitPlan) -> None:
    draft = (replace(ROWS[0], context_mib=128, compute_mib=130), replace(ROWS[1], compute_mib=0))
    found = lines(apply_measurement(plan, Measurement(ROWS, draft=draft)), GPU)
    assert found["drafter_kv"] == (128, "measured")
    assert "drafter_weights" not in found


@given(
    st.lists(
        st.builds(
            MeasuredRow,
            st.sampled_from([GPU, "CUDA1"]),
            st.just("x"),
            *[st.integers(0, 10**6)] * 3,
            st.just(24000),
        ),
        max_size=4,
    ),
    st.lists(
        st.builds(
            MeasuredRow, st.just(HOST), st.sampled_from(["Host", "CPU_REPACK"]), *[st.integers(0, 10**6)] * 3
        ),
        max_size=4,
    ),
)
def test_totals_are_the_engines_to_the_mib(gpus: list[MeasuredRow], host: list[MeasuredRow]) -> None:
    table = (*gpus, *host)
    known = {"weights", "kv", "recurrent_state", "compute"}
    plan = apply_measurement(PLAN, Measurement(table))
    for device in {row.device for row in table}:
        rows = [row for row in table if row.device == device]
        total = sum(line.bytes for line in plan.lines if line.device == device and line.label in known)
        assert 0 <= total / MIB - sum(row.total_mib for row in rows) < 3 * len(rows) + 1
