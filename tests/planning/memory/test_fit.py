"""Whole plans: lines, budgets, drafts, what host memory holds."""

import random
from dataclasses import replace

import pytest

from framework.planning.memory.compute import quantised_cache_scratch
from framework.planning.memory.drafter import Drafter, head_cache_bytes_by_layer
from framework.planning.memory.fit import Extras, largest_context, plan_memory
from framework.planning.memory.host_memory import checkpoint_bytes
from framework.planning.memory.settings import (
    CacheSettings,
    DraftPlan,
    GpuBudget,
    Hardware,
    HostSettings,
    Offload,
)
from framework.planning.memory.shape import ModelShape, shape_of
from framework.planning.memory.tensor_table import TensorTable, table_of
from framework.values.plan import FitPlan
from tests.support.cost import least_cost_s
from tests.support.memory_rows import ENGINE_ONLY, MeasuredModel, measured_models

MIB, GIB = 1 << 20, 1 << 30
LLAMA = measured_models()["llama-3.1-8b"]
GEMMA = measured_models()["gemma-3-12b"]
QWEN = measured_models()["qwen3.5-27b-33-layers"]
GLM = measured_models()["glm-4.5-20-layers"]
ONE = (GpuBudget("RPC0", 24 * GIB, 24 * GIB, "rpc"),)
TWO = (*ONE, GpuBudget("RPC1", 24 * GIB, 24 * GIB, "rpc"))
CARD = Hardware((GpuBudget("CUDA0", 23 * GIB, 24 * GIB, "cuda"),), 60 * GIB, 64 * GIB)


def plan(model: MeasuredModel, settings: CacheSettings, hardware: Hardware = CARD, **more: object) -> FitPlan:
    return plan_memory(model.shape, model.table, settings, hardware, **more)  # type: ignore[arg-type]


def sizes(found: FitPlan, label: str) -> dict[str, int]:
    result: dict[str, int] = {}
    for line in found.lines:
        if line.label == label:
            result[line.device] = result.get(line.device, 0) + line.bytes
    return result


def test_a_plan_says_what_it_is_for() -> None:
    found = plan(LLAMA, CacheSettings(8192, slots=2, key_type="q8_0"), offload=Offload(20, 3))
    assert (found.context, found.slots, found.cache_types) == (8192, 2, ("q8_0", "f16"))
    assert (found.gpu_layers, found.cpu_experts) == (20, 3)


def test_gpus_come_first_and_host_memory_last() -> None:
    devices = [line.device for line in plan(LLAMA, CacheSettings(8192)).lines]
    assert devices == sorted(devices, key=["CUDA0", "CPU"].index)


def test_a_plan_that_fits_says_so() -> None:
    assert plan(LLAMA, CacheSettings(8192)).fits is True


def test_a_plan_that_does_not_fit_says_so() -> None:
    assert plan(LLAMA, CacheSettings(262_144)).fits is False


def test_without_any_budget_nothing_is_said() -> None:
    assert plan(LLAMA, CacheSettings(8192), Hardware()).fits is None


def test_what_only_grows_later_does_not_keep_a_launch_from_starting() -> None:
    small = replace(CARD, host_free_bytes=4 * GIB)
    found = plan(LLAMA, CacheSettings(8192), small)
    assert sizes(found, "prompt_cache") == {"CPU": 8 * GIB}
    assert found.fits is True


def test_mapped_weights_need_no_memory_of_their_own() -> None:
    found = plan(LLAMA, CacheSettings(8192), extras=Extras(host=ENGINE_ONLY))
    assert found.total_bytes["CPU"] - found.needed_bytes("CPU") == sizes(found, "weights")["CPU"]


def test_weights_that_are_read_into_memory_do() -> None:
    host = replace(ENGINE_ONLY, mapped=False)
    found = plan(LLAMA, CacheSettings(8192), extras=Extras(host=host))
    assert found.needed_bytes("CPU") == found.total_bytes["CPU"]


def test_rearranged_weights_are_no_pages_of_the_file() -> None:
    found = plan(LLAMA, CacheSettings(8192), Hardware(host_free_bytes=64 * GIB))
    weights = [(line.mapped, line.basis) for line in found.lines if line.label == "weights"]
    assert weights == [(True, "computed"), (False, "assumed")]


def test_beside_a_card_with_a_host_buffer_of_its_own_nothing_is_rearranged() -> None:
    found = plan(LLAMA, CacheSettings(8192), offload=Offload(10))
    assert all(line.mapped for line in found.lines if (line.device, line.label) == ("CPU", "weights"))


def test_three_servers_with_the_default_prompt_cache_claim_24_gib() -> None:
    claimed = 3 * sizes(plan(LLAMA, CacheSettings(8192)), "prompt_cache")["CPU"]
    assert claimed == 24_576 * MIB  # FM-17


def test_an_encoder_caches_no_prompts() -> None:
    assert sizes(plan(measured_models()["bge-large-en"], CacheSettings(512)), "prompt_cache") == {}


def test_checkpoints_hold_a_window_of_each_windowed_layer() -> None:
    settings = CacheSettings(32_768)
    window = sum(GEMMA.shape.is_windowed(layer) for layer in GEMMA.shape.cache_layers) * 1024 * 2 * 2048 * 2
    assert checkpoint_bytes(GEMMA.shape, settings, 3) == 3 * window


def test_checkpoints_of_all_slots_count() -> None:
    one, four = (checkpoint_bytes(GEMMA.shape, CacheSettings(8192, slots=n), 3) for n in (1, 4))
    assert four == 4 * one


@pytest.mark.parametrize(
    ("model", "settings"),
    [(LLAMA, CacheSettings(8192)), (GEMMA, CacheSettings(8192, swa_full=True))],
    ids=["rewinds anyway", "keeps everything"],
)
def test_models_that_can_rewind_make_no_checkpoints(model: MeasuredModel, settings: CacheSettings) -> None:
    assert checkpoint_bytes(model.shape, settings, 32) == 0


def test_the_projector_is_charged_with_room_to_compute() -> None:
    found = plan(LLAMA, CacheSettings(8192), extras=Extras(projector_bytes=GIB))
    assert sizes(found, "projector") == {"CUDA0": GIB + 429_496_729}


def test_an_adapter_is_charged() -> None:
    assert sizes(plan(LLAMA, CacheSettings(8192), extras=Extras(adapter_bytes=7)), "adapter") == {"CUDA0": 7}


def test_the_runtime_is_charged_once() -> None:
    two = Hardware(tuple(GpuBudget(f"CUDA{n}", 20 * GIB, 24 * GIB, "cuda") for n in range(2)))
    assert sizes(plan(LLAMA, CacheSettings(8192), two), "runtime") == {"CUDA0": 335_544_320}


def test_a_quantised_cache_costs_scratch_on_cuda() -> None:
    settings = CacheSettings(262_144, key_type="q8_0", value_type="q8_0")
    qwen_4b = ModelShape(
        "qwen35",
        n_layers=32,
        n_kv_heads=4,
        key_length=256,
        value_length=256,
        full_attention_interval=4,
        ssm_inner_size=4096,
    )
    assert quantised_cache_scratch(qwen_4b, settings) == GIB
    assert quantised_cache_scratch(qwen_4b, CacheSettings(262_144)) == 0


def test_cuda_makes_room_for_the_largest_matrix_that_stays_in_host_memory() -> None:
    partly, rpc = Offload(20), Hardware(ONE)
    measured = sizes(plan(LLAMA, CacheSettings(8192), rpc, offload=partly), "compute")["RPC0"]
    on_cuda = sizes(plan(LLAMA, CacheSettings(8192), offload=partly), "compute")["CUDA0"]
    assert on_cuda - measured == LLAMA.table.layer(0).largest_weight_bytes


def test_a_plan_that_was_made_before_is_not_computed_again() -> None:
    table = table_of(LLAMA.tensors)
    first = plan_memory(LLAMA.shape, table, CacheSettings(8192), CARD)
    assert plan_memory(LLAMA.shape, table, CacheSettings(8192), CARD) == first
    assert len(table.buffers) == 1


def test_the_scratch_is_a_guess_and_says_so() -> None:
    settings = CacheSettings(8192, key_type="q8_0", value_type="q8_0")
    basis = {line.device: line.basis for line in plan(LLAMA, settings).lines if line.label == "compute"}
    assert basis == {"CUDA0": "assumed", "CPU": "computed"}


def test_a_head_of_its_own_is_a_second_plan() -> None:
    extras = Extras(draft=DraftPlan("head"), host=ENGINE_ONLY)
    found = plan(QWEN, CacheSettings(32_768), Hardware(ONE), extras=extras)
    on_gpu = {line.label: round(line.bytes / MIB) for line in found.lines if line.device == "RPC0"}
    assert on_gpu["recurrent_state"] == 299  # one state, and three to go back to
    assert (on_gpu["drafter_kv"], on_gpu["drafter_compute"]) == (128, 130)


def test_other_heads_get_a_second_complete_cache() -> None:
    extras = Extras(draft=DraftPlan("head"), host=ENGINE_ONLY)
    found = plan(GLM, CacheSettings(32_768), Hardware(ONE), extras=extras)
    on_gpu = {line.label: round(line.bytes / MIB) for line in found.lines if line.device == "RPC0"}
    assert (on_gpu["kv"], on_gpu["drafter_kv"], on_gpu["drafter_compute"]) == (2560, 2560, 180)


@pytest.mark.parametrize(
    ("key_type", "slots", "unified", "n_ctx", "expected"),
    [
        ("f16", 1, True, 32_768, 134_217_728),
        ("q8_0", 1, True, 32_768, 134_217_728),
        ("f32", 1, True, 32_768, 201_326_592),
        ("f16", 3, False, 10_000, 44_040_192),
        ("f16", 1, True, 0, 0),
    ],
)
def test_the_cache_of_a_head_is_never_quantised(
    key_type: str, slots: int, unified: bool, n_ctx: int, expected: int
) -> None:
    shape = ModelShape("qwen35", n_layers=5, nextn_layers=1, n_kv_heads=4, key_length=256, value_length=256)
    settings = CacheSettings(n_ctx, slots, key_type, "f16", unified)
    assert sum(head_cache_bytes_by_layer(shape, settings).values()) == expected


def test_a_drafter_has_weights_cache_and_compute_of_its_own() -> None:
    small = measured_models()["qwen3-0.6b"]
    extras = Extras(DraftPlan("model"), Drafter(small.shape, small.table), host=ENGINE_ONLY)
    found = plan(LLAMA, CacheSettings(32_768), Hardware(ONE), extras=extras)
    alone = plan(small, CacheSettings(32_768), Hardware(ONE), extras=Extras(host=ENGINE_ONLY))
    for mine, theirs in (
        ("drafter_weights", "weights"),
        ("drafter_kv", "kv"),
        ("drafter_compute", "compute"),
    ):
        assert sizes(found, mine) == sizes(alone, theirs)


def test_logits_of_a_drafter_are_told_with_those_of_its_model() -> None:
    twice = Extras(DraftPlan("model"), Drafter(LLAMA.shape, LLAMA.table))
    alone, both = (plan(LLAMA, CacheSettings(8192), extras=extras) for extras in (Extras(), twice))
    (one,) = [line.bytes for line in alone.lines if line.label == "output"]
    assert [line.bytes for line in both.lines if line.label == "output"] == [2 * one]


def test_a_drafter_is_divided_as_its_model_is() -> None:
    small = measured_models()["qwen3-0.6b"]
    extras = Extras(DraftPlan("model"), Drafter(small.shape, small.table), host=ENGINE_ONLY)
    shares = Offload(split=(3.0, 1.0))
    found = plan(LLAMA, CacheSettings(8192), Hardware(TWO), offload=shares, extras=extras)
    alone = plan(small, CacheSettings(8192), Hardware(TWO), offload=shares, extras=Extras(host=ENGINE_ONLY))
    assert sizes(found, "drafter_kv") == sizes(alone, "kv")


def test_a_drafter_is_whole_on_the_gpu_whatever_part_of_its_model_is() -> None:
    small = measured_models()["qwen3-0.6b"]
    extras = Extras(DraftPlan("model"), Drafter(small.shape, small.table), host=ENGINE_ONLY)
    found = plan(LLAMA, CacheSettings(8192), Hardware(ONE), offload=Offload(gpu_layers=5), extras=extras)
    alone = plan(small, CacheSettings(8192), Hardware(ONE), extras=Extras(host=ENGINE_ONLY))
    assert sizes(found, "drafter_weights") == sizes(alone, "weights")


def test_the_longest_draft_takes_no_room_of_the_drafter() -> None:
    small = measured_models()["qwen3-0.6b"]
    extras = Extras(DraftPlan("model"), Drafter(small.shape, small.table), host=ENGINE_ONLY)
    short, long = (
        sizes(plan(LLAMA, CacheSettings(8192, drafted=drafted), extras=extras), "drafter_compute")
        for drafted in (0, 64)
    )
    assert short == long


def test_a_drafter_in_host_memory_takes_nothing_of_a_gpu() -> None:
    small = measured_models()["qwen3-0.6b"]
    extras = Extras(DraftPlan("model", on_cpu=True), Drafter(small.shape, small.table))
    drafts = [
        line for line in plan(LLAMA, CacheSettings(8192), extras=extras).lines if "drafter" in line.label
    ]
    assert {line.device for line in drafts} == {"CPU"}


def test_an_assistant_uses_the_caches_of_its_model() -> None:
    small = measured_models()["qwen3-0.6b"]
    assistant = Drafter(replace(small.shape, architecture="gemma4-assistant"), small.table)
    found = plan(LLAMA, CacheSettings(8192), extras=Extras(DraftPlan("model"), assistant))
    assert sizes(found, "drafter_kv") == {}


def test_unknown_architectures_are_assumed() -> None:
    model = replace(LLAMA, shape=replace(LLAMA.shape, architecture="new"))
    basis = {line.label: line.basis for line in plan(model, CacheSettings(8192), Hardware(ONE)).lines}
    assert (basis["weights"], basis["kv"], basis["compute"]) == ("computed", "assumed", "assumed")


def test_a_file_whose_operations_are_unknown_gets_the_plain_formula() -> None:
    found = plan_memory(LLAMA.shape, TensorTable(), CacheSettings(8192), Hardware(ONE))
    assert [line.basis for line in found.lines if line.label == "compute"] == ["assumed", "assumed"]


def test_the_longest_context_fits_and_the_next_block_does_not() -> None:
    found = largest_context(LLAMA.shape, LLAMA.table, CacheSettings(1 << 20), CARD)
    assert found.fits
    assert found.context % 256 == 0
    assert plan(LLAMA, CacheSettings(found.context)).fits
    assert not plan(LLAMA, CacheSettings(found.context + 256)).fits


def test_a_context_that_fits_is_left_as_it_is() -> None:
    assert largest_context(LLAMA.shape, LLAMA.table, CacheSettings(5000), CARD).context == 5000


def test_where_nothing_fits_the_shortest_context_is_answered_as_not_fitting() -> None:
    tiny = Hardware((GpuBudget("CUDA0", GIB, GIB, "cuda"),))
    found = largest_context(LLAMA.shape, LLAMA.table, CacheSettings(65_536), tiny)
    assert (found.context, found.fits) == (4096, False)


def test_without_a_budget_the_longest_context_is_unknown() -> None:
    assert largest_context(LLAMA.shape, LLAMA.table, CacheSettings(8192), Hardware()).fits is None


def random_plan(seed: int) -> FitPlan:
    dice = random.Random(seed)
    model = measured_models()[dice.choice(sorted(measured_models()))]
    settings = CacheSettings(
        dice.randrange(1, 65_536),
        slots=dice.randrange(1, 9),
        key_type=dice.choice(["f16", "q8_0", "q4_0"]),
        unified=dice.random() < 0.5,
        flash_attention=dice.random() < 0.8,
        ubatch=dice.choice([64, 512, 2048]),
    )
    gpus = tuple(
        GpuBudget(f"CUDA{n}", dice.randrange(1, 40) * GIB, 40 * GIB, "cuda") for n in range(dice.randrange(3))
    )
    offload = Offload(dice.choice([None, *range(0, 80, 9)]), dice.choice([0, 0, 5, 99]))
    return plan(model, settings, Hardware(gpus, 64 * GIB), offload=offload)


@pytest.mark.parametrize("seed", range(60))
def test_the_lines_of_a_device_add_up_to_its_total(seed: int) -> None:
    found = random_plan(seed)
    for device, total in found.total_bytes.items():
        assert sum(line.bytes for line in found.lines if line.device == device) == total  # FM-27
    assert all(line.bytes >= 0 for line in found.lines)


def test_a_plan_is_quick() -> None:
    models = [*measured_models().values()]
    # Ten times what it takes on an idle machine; the bench has the real number.
    limit_s = 0.02 * len(models)

    def plan_all() -> None:
        for model in models:
            plan(model, CacheSettings(32_768, slots=4))

    assert least_cost_s(plan_all, below_s=limit_s) < limit_s


def test_facts_of_a_file_are_enough() -> None:
    again = plan_memory(shape_of(LLAMA.header), table_of(LLAMA.tensors), CacheSettings(8192), CARD)
    assert again == plan(LLAMA, CacheSettings(8192))


def test_host_defaults_are_those_of_the_engine() -> None:
    assert (HostSettings().cache_ram_bytes, HostSettings().checkpoints) == (8192 * MIB, 32)
