"""The memory plan of a launch: what the engine's fit step will come to, reasons and remedies (03, 04 §10)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from framework.planning.launch_memory import LaunchMemory, ModelMemory, layer_fault, plan_launch_memory
from framework.planning.line_settings import read_line
from framework.planning.memory.remedies import Variant
from framework.planning.memory.settings import GpuBudget, Hardware
from framework.planning.memory.shape import ModelShape
from framework.planning.memory.tensor_table import TensorTable
from framework.values.plan import FitPlan
from tests.support.memory_rows import measured_models

GIB = 1 << 30
MIB = 1 << 20
DENSE, EXPERTS = "llama-3.1-8b", "qwen3-30b-a3b"
TRAINED = 131_072
LAYERS = 33
AUTO = "--fit on --fit-ctx 8192 --parallel 4 --kv-unified"
ASKED = f"{AUTO} -c {TRAINED}"
MANUAL = f"--fit off --gpu-layers {LAYERS} -c {TRAINED}"
HOST_ONLY = "--device none --fit off -c 0"


def hardware(gpu_gib: float = 0.0, host_gib: float = 64.0, *, host_total_gib: float = 64.0) -> Hardware:
    """One GPU of 24 GiB with so much free, or none, and host memory."""
    gpus = (GpuBudget("CUDA0", int(gpu_gib * GIB), 24 * GIB, "cuda"),) if gpu_gib else ()
    return Hardware(gpus, int(host_gib * GIB), int(host_total_gib * GIB))


def plan(text: str, memory: Hardware, *, model: str = DENSE, **sizes: object) -> LaunchMemory:
    """The plan for one of the measured models."""
    measured = measured_models()[model]
    facts = ModelMemory(measured.shape, measured.table, **sizes)  # type: ignore[arg-type]
    return plan_launch_memory(read_line(text.split(), {}), facts, memory)


def codes(memory: LaunchMemory) -> list[str]:
    return [reason.code for reason in memory.reasons]


def within_budgets(fit: FitPlan) -> bool:
    return all(fit.needed_bytes(name) <= budget for name, budget in fit.budget_bytes.items())


def test_what_fits_is_granted_as_asked_without_a_word() -> None:
    found = plan(ASKED, hardware(23.5))
    assert (found.fit.fits, found.fit.context, found.fit.slots) == (True, TRAINED, 4)
    assert (found.fit.gpu_layers, found.reasons, found.fit.remedies) == (None, (), ())


def test_an_automatic_context_that_fits_is_the_trained_one() -> None:
    found = plan(AUTO, hardware(23.5))
    assert (found.fit.context, found.reasons) == (TRAINED, ())


def test_an_automatic_context_is_shortened_to_what_fits() -> None:
    found = plan(AUTO, hardware(14.0))
    assert found.fit.fits
    assert found.fit.context is not None
    assert 65_536 < found.fit.context < TRAINED
    assert found.fit.context % 256 == 0
    assert found.fit.gpu_layers is None
    assert codes(found) == ["context_fitted"]
    assert found.reasons[0].evidence == {"trained_tokens": TRAINED, "context_tokens": found.fit.context}
    assert found.reasons[0].remedy


def test_a_shortened_context_leaves_the_margin_of_the_fit_step() -> None:
    found = plan(AUTO, hardware(14.0)).fit
    assert found.needed_bytes("CUDA0") <= 13 * GIB


def test_layers_move_where_the_shortest_context_does_not_suffice() -> None:
    found = plan(AUTO, hardware(5.0))
    assert (found.fit.fits, found.fit.context) == (True, 8192)
    assert found.fit.gpu_layers is not None
    assert 0 < found.fit.gpu_layers < LAYERS
    assert codes(found) == ["context_fitted", "layers_delegated"]


def test_an_asked_context_is_kept_and_layers_move() -> None:
    found = plan(ASKED, hardware(14.0))
    assert (found.fit.fits, found.fit.context) == (True, TRAINED)
    assert within_budgets(found.fit)
    assert codes(found) == ["layers_delegated"]
    assert found.reasons[0].severity == "warning"


def test_no_more_layers_move_than_have_to() -> None:
    found = plan(ASKED, hardware(14.0)).fit
    assert found.gpu_layers is not None
    with_one_more = f"--fit off --gpu-layers {found.gpu_layers + 1} --parallel 4 --kv-unified -c {TRAINED}"
    assert plan(with_one_more, hardware(14.0)).fit.needed_bytes("CUDA0") > 13 * GIB


def test_remedies_of_moved_layers_say_what_would_keep_them_on_gpus() -> None:
    found = plan(ASKED, hardware(14.0)).fit.remedies
    kinds = {remedy.kind for remedy in found}
    assert {"cache_type", "context"} <= kinds
    assert not kinds & {"layers", "experts"}
    assert found[0].fits


def test_experts_move_before_layers() -> None:
    found = plan(AUTO, hardware(14.0), model=EXPERTS)
    assert found.fit.cpu_experts > 0
    assert found.fit.gpu_layers == 49
    assert "the experts of" in found.reasons[-1].message


def test_a_fixed_placement_that_does_not_fit_is_kept_and_told() -> None:
    found = plan(MANUAL, hardware(14.0))
    assert (found.fit.fits, found.fit.context, found.fit.gpu_layers) == (False, TRAINED, LAYERS)
    assert codes(found) == ["does_not_fit"]
    assert found.reasons[0].severity == "warning"
    assert found.reasons[0].evidence["needed_bytes"].keys() == {"CUDA0"}
    assert found.reasons[0].remedy == found.fit.remedies[0].sentence


def test_remedies_are_computed_and_ranked() -> None:
    found = plan(MANUAL, hardware(14.0)).fit.remedies
    enough = [remedy.kind for remedy in found if remedy.fits]
    assert enough == ["cache_type", "context", "layers"]
    assert [remedy.fits for remedy in found] == sorted((remedy.fits for remedy in found), reverse=True)
    assert all(remedy.frees_bytes > 0 for remedy in found)


def test_another_variant_is_a_remedy() -> None:
    found = plan(MANUAL, hardware(14.0), variants=(Variant("Q2_K", 3 * GIB),)).fit.remedies
    assert "Q2_K" in [remedy.to for remedy in found]


def test_host_memory_alone_keeps_the_trained_context() -> None:
    found = plan(HOST_ONLY, hardware(0.0, 8.0))
    assert (found.fit.fits, found.fit.context, found.fit.gpu_layers) == (False, TRAINED, 0)
    assert codes(found) == ["does_not_fit"]
    assert found.fit.remedies[0].kind in ("cache_type", "context")


def test_without_gpus_the_fit_step_goes_by_all_host_memory() -> None:
    found = plan(AUTO, hardware(0.0, 12.0, host_total_gib=14.0)).fit
    assert found.context is not None
    assert 8192 < found.context < TRAINED


def test_an_engine_that_will_take_more_than_is_free_is_told_of() -> None:
    found = plan(AUTO, hardware(0.0, 6.0, host_total_gib=64.0))
    assert (found.fit.context, found.fit.fits) == (TRAINED, False)
    assert codes(found) == ["does_not_fit"]


def test_weights_that_do_not_fit_into_host_memory_are_read_again_and_again() -> None:
    found = plan("-c 4096 --no-repack --cache-ram 0", hardware(0.0, 3.0, host_total_gib=4.0))
    assert found.fit.fits
    assert codes(found) == ["model_exceeds_memory"]


def test_a_projector_and_adapters_take_memory() -> None:
    found = plan(ASKED, hardware(23.5), projector_bytes=100 * MIB, adapter_bytes=50 * MIB).fit
    sizes = {line.label: line.bytes for line in found.lines if line.device == "CUDA0"}
    assert (sizes["projector"], sizes["adapter"]) == (140 * MIB, 50 * MIB)


def test_a_projector_leaves_less_for_the_context() -> None:
    text_only, seeing = plan(AUTO, hardware(14.0)).fit, plan(AUTO, hardware(14.0), projector_bytes=GIB).fit
    assert text_only.context is not None
    assert seeing.context is not None
    assert seeing.context < text_only.context  # FM-09
    assert seeing.fits


def test_what_others_hold_of_a_card_cannot_be_planned_with() -> None:
    found = plan(MANUAL, hardware(2.5))
    assert found.fit.fits is False  # FM-15
    assert found.fit.budget_bytes["CUDA0"] < 2.5 * GIB


def test_lines_have_every_label_of_a_text_model() -> None:
    found = plan(ASKED, hardware(23.5)).fit
    assert {line.label for line in found.lines} == {
        "weights", "kv", "compute", "output", "prompt_cache", "runtime",
    }  # fmt: skip


def test_ngram_speculation_takes_no_cache_and_no_weights() -> None:
    def sizes(text: str) -> dict[tuple[str, str], int]:
        lines = plan(text, hardware(23.5)).fit.lines
        return {(line.device, line.label): line.bytes for line in lines if line.label in ("weights", "kv")}

    assert sizes(f"{ASKED} --spec-type ngram-mod") == sizes(ASKED)


def test_without_any_device_known_nothing_is_said_about_fitting() -> None:
    found = plan(ASKED, Hardware())
    assert (found.fit.fits, found.reasons) == (None, ())
    assert found.fit.lines


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{ASKED} --override-tensor exps=CPU", id="tensors-by-hand"),
        pytest.param(f"{ASKED} --split-mode tensor", id="tensor-split"),
        pytest.param(f"{ASKED} --model-draft d.gguf", id="a-drafter-of-the-users-own"),
    ],
)
def test_what_cannot_be_planned_is_an_empty_plan_with_a_reason(text: str) -> None:
    found = plan(text, hardware(14.0))
    assert (found.fit, codes(found)) == (FitPlan(), ["planning_fault"])


def test_an_unknown_trained_context_cannot_be_planned() -> None:
    measured = measured_models()[DENSE]
    facts = ModelMemory(replace(measured.shape, context_length=None), measured.table)
    found = plan_launch_memory(read_line(AUTO.split(), {}), facts, hardware(14.0))
    assert codes(found) == ["planning_fault"]


@pytest.mark.parametrize(
    ("layers", "is_fault"), [(None, False), (0, False), (512, False), (513, True), (2**31 - 1, True)]
)
def test_more_layers_than_any_engine_loads_are_a_fault(layers: int | None, is_fault: bool) -> None:
    assert (layer_fault(layers) is not None) is is_fault


def test_experts_that_stay_in_host_memory_come_with_a_number_of_layers() -> None:
    found = plan(f"{ASKED} --n-cpu-moe 3", hardware(23.0), model=EXPERTS)
    assert (found.fit.gpu_layers, found.fit.cpu_experts) == (49, 3)


def test_a_header_that_says_next_to_nothing_is_planned_without_a_crash() -> None:
    facts = ModelMemory(ModelShape(architecture="unheard-of", context_length=4096), TensorTable())
    found = plan_launch_memory(read_line(AUTO.split(), {}), facts, hardware(14.0))
    assert found.fit.context == 4096


GROWING = "-c 4096 --parallel 1"


def test_what_grows_beyond_what_can_be_used_is_told_with_the_bound_that_would_do() -> None:
    found = plan(GROWING, hardware(0.0, 10.0))
    (reason,) = found.reasons
    assert (found.fit.fits, reason.code, reason.severity) == (True, "memory_may_grow", "info")
    assert "prompt cache" in reason.message
    bound = re.search(r'engine_args = \["--cache-ram", "([0-9]+)"\]', reason.remedy)
    assert bound is not None
    assert int(bound[1]) > 0
    assert codes(plan(f"{GROWING} --cache-ram {bound[1]}", hardware(0.0, 10.0))) == []


def test_where_no_prompt_cache_has_room_none_is_advised() -> None:
    needed = plan(GROWING, hardware(0.0, 10.0)).fit.needed_bytes("CPU")
    (reason,) = plan(GROWING, hardware(0.0, (needed + 100 * MIB) / GIB)).reasons
    assert '["--cache-ram", "0"]' in reason.remedy


@pytest.mark.parametrize("gib", [3.0, 64.0], ids=["does not fit at all", "has room for all"])
def test_what_grows_is_not_told_where_it_does_not_matter(gib: float) -> None:
    assert "memory_may_grow" not in codes(plan(GROWING, hardware(0.0, gib)))


@pytest.mark.parametrize(
    ("line", "each", "enough"),
    [("-c 512 --parallel 256", 2, "65,536"), ("-c 1", 1, "256"), ("-c 512 --parallel 4", 128, "1,024")],
)
def test_slots_with_next_to_no_context_are_told(line: str, each: int, enough: str) -> None:
    (reason,) = plan(line, hardware()).reasons
    assert (reason.code, reason.severity) == ("slot_context_small", "warning")
    assert reason.evidence["slot_tokens"] == each
    assert f"at least {enough} tokens" in reason.remedy


def test_a_block_of_cells_for_each_slot_is_enough() -> None:
    assert codes(plan("-c 1024 --parallel 4", hardware())) == []
