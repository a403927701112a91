"""What a command line says about memory (03 §2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.planning.line_settings import (
    FIT_MARGIN_BYTES,
    LEAST_FITTED_CONTEXT,
    LineSettings,
    line_of,
    names_devices,
    owns_placement,
    owns_prompt_cache,
    owns_slots,
    read_line,
)
from framework.planning.memory.settings import CacheSettings, DraftPlan, HostSettings, Offload
from framework.values.engine import Capabilities
from tests.engines.eras import caps_of
from tests.fake_engine.eras import Name
from tests.support.launches import a_launch

MIB = 1 << 20
UNSIGNED = 4_294_967_295


def line(text: str = "", **variables: str) -> LineSettings:
    return read_line(text.split(), {f"LLAMA_ARG_{name}": value for name, value in variables.items()})


def test_a_bare_line_has_the_engines_defaults() -> None:
    found = line("llama-server -m model.gguf --parallel 1")
    assert found.cache == CacheSettings(n_ctx=0, unified=False)
    assert (found.offload, found.host) == (Offload(), HostSettings())
    assert (found.devices, found.projector, found.draft, found.unplanned) == (None, None, None, None)


def test_caches_are_read_from_the_line() -> None:
    text = "-c 8192 --parallel 4 --kv-unified --cache-type-k q8_0 --cache-type-v F16 --swa-full -fa off"
    assert line(f"{text} --batch-size 1024 --ubatch-size 256 --embeddings").cache == CacheSettings(
        n_ctx=8192,
        slots=4,
        key_type="q8_0",
        value_type="f16",
        unified=True,
        swa_full=True,
        batch=1024,
        ubatch=256,
        flash_attention=False,
        embeddings=True,
    )


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        pytest.param("", {}, (2048, 512), id="defaults"),
        pytest.param("-ub 1024", {}, (2048, 1024), id="micro-batch"),
        pytest.param("-b 256", {}, (256, 256), id="a-small-batch-bounds-the-micro-batch"),
        pytest.param("-ub 0", {}, (2048, 2048), id="zero-is-the-whole-batch"),
        pytest.param("-b -1 -ub -1", {}, (UNSIGNED, UNSIGNED), id="unsigned"),
        pytest.param("-ub x", {"UBATCH": "128"}, (2048, 128), id="a-variable-where-no-flag-parses"),
        pytest.param("-ub 64 -ub 32", {"UBATCH": "128"}, (2048, 32), id="the-last-flag-wins"),
    ],
)
def test_batches(text: str, variables: dict[str, str], expected: tuple[int, int]) -> None:
    cache = line(text, **variables).cache
    assert (cache.batch, cache.ubatch) == expected


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        pytest.param("-fa", {}, True, id="bare"),
        pytest.param("-fa off", {}, False, id="off"),
        pytest.param("--flash-attn on --flash-attn off", {}, False, id="the-last"),
        pytest.param("-fa -1", {}, True, id="auto"),
        pytest.param("", {"FLASH_ATTN": "off"}, False, id="variable"),
        pytest.param("", {"FLASH_ATTN": "OFF"}, True, id="not-a-word-of-the-engine"),
        pytest.param("-fa on", {"FLASH_ATTN": "off"}, True, id="a-flag-over-a-variable"),
    ],
)
def test_flash_attention(text: str, variables: dict[str, str], expected: bool) -> None:
    assert line(text, **variables).cache.flash_attention is expected


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        pytest.param("", {"KV_UNIFIED": "1"}, True, id="variable"),
        pytest.param("--kv-unified -no-kvu", {}, False, id="the-users-word-last"),
        pytest.param("--no-kv-unified -kvu", {}, True, id="and-the-other-way"),
        pytest.param("--kv-unified", {"KV_UNIFIED": "0"}, True, id="a-flag-over-a-variable"),
    ],
)
def test_unified_caches(text: str, variables: dict[str, str], expected: bool) -> None:
    assert line(text, **variables).cache.unified is expected


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        pytest.param("--no-kv-offload", {}, id="flag"),
        pytest.param("", {"KV_OFFLOAD": "0"}, id="variable"),
        pytest.param("", {"NO_KV_OFFLOAD": "1"}, id="negated-variable"),
    ],
)
def test_caches_may_be_kept_off_the_gpu(text: str, variables: dict[str, str]) -> None:
    assert line(text, **variables).cache.kv_on_gpu is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", HostSettings(), id="defaults"),
        pytest.param("--cache-ram 0 -ctxcp 4", HostSettings(0, 4), id="limits"),
        pytest.param("--cache-ram 512", HostSettings(512 * MIB), id="mebibytes"),
        pytest.param("--cache-ram -1", HostSettings(), id="no-limit-is-planned-as-the-usual-one"),
        pytest.param("--no-mmap", HostSettings(mapped=False), id="read"),
        pytest.param("--mlock", HostSettings(mapped=False), id="locked"),
        pytest.param("--direct-io", HostSettings(mapped=False), id="direct"),
    ],
)
def test_host_memory(text: str, expected: HostSettings) -> None:
    assert line(text).host == expected


@pytest.mark.parametrize(
    ("text", "expected", "may_move"),
    [
        pytest.param("--fit on", Offload(), True, id="automatic"),
        pytest.param("--fit on -ngl auto", Offload(), True, id="said"),
        pytest.param("--fit on -ngl 12", Offload(12), False, id="a-number-binds-the-fit-step"),
        pytest.param("--fit on -ngl all", Offload(), False, id="all"),
        pytest.param("--fit off", Offload(), False, id="no-fit-step"),
        pytest.param("--fit on --n-cpu-moe 3", Offload(None, 3), False, id="experts"),
        pytest.param("--fit on -ts 3,1", Offload(split=(3.0, 1.0)), False, id="shares"),
        pytest.param("--fit on -ts 3,nan", Offload(split=(3.0, 0.0)), False, id="no-number-is-no-share"),
    ],
)
def test_offload(text: str, expected: Offload, may_move: bool) -> None:
    found = line(text)
    assert (found.offload, found.may_move) == (expected, may_move)


@pytest.mark.parametrize(
    ("text", "may_shorten"),
    [
        pytest.param("--fit on", True, id="left-out"),
        pytest.param("--fit on -c 0", False, id="the-whole-window-by-name"),
        pytest.param("--fit on -c 4096", False, id="asked"),
        pytest.param("", False, id="without-a-fit-step"),
    ],
)
def test_only_a_context_that_is_left_out_may_be_shortened(text: str, may_shorten: bool) -> None:
    assert line(text).may_shorten is may_shorten


def test_the_fit_step_has_a_shortest_context_and_a_margin() -> None:
    found = line("--fit-ctx 8192 --fit-target 512,256")
    assert (found.least_context, found.margin_bytes) == (8192, 512 * MIB)
    assert (line().least_context, line().margin_bytes) == (LEAST_FITTED_CONTEXT, FIT_MARGIN_BYTES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", None, id="not-named"),
        pytest.param("--device none", (), id="none"),
        pytest.param("--device none -dev CUDA1,CUDA0", ("CUDA1", "CUDA0"), id="the-last"),
    ],
)
def test_devices(text: str, expected: tuple[str, ...] | None) -> None:
    assert line(text).devices == expected


def test_an_embedded_head_that_drafts_is_seen() -> None:
    assert line("--spec-type draft-mtp --spec-draft-n-max 5").draft == DraftPlan("head", 5)
    assert line("--spec-type ngram-mod").draft is None


def test_types_of_speculation_add_up() -> None:
    assert line("--spec-type draft-mtp --spec-type ngram-mod").draft == DraftPlan("head", 3)
    assert line("--spec-default", SPEC_TYPE="draft-mtp").draft is None  # no child is given the variable
    assert line("--spec-type none,draft-mtp").draft is None


@pytest.mark.parametrize("text", ["-ot exps=CPU", "--override-tensor a=b", "-sm tensor"])
def test_what_no_rule_follows_is_told(text: str) -> None:
    assert line(text).unplanned is not None


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("-md d.gguf --spec-type draft-simple", 3),
        ("-md d.gguf --spec-type draft-simple --spec-draft-n-max 16", 8),
        ("-md d.gguf --spec-type draft-simple --spec-rs-snapshots auto", 3),
        ("-md d.gguf --spec-type draft-simple --spec-rs-snapshots 0", 0),
        ("-md d.gguf --spec-type draft-simple --spec-rs-snapshots 12", 12),
        ("-md d.gguf --spec-type ngram-mod", 0),
    ],
)
def test_copies_of_states_are_for_drafts_of_a_model(text: str, copies: int) -> None:
    draft = read_line(text.split(), {}, keeps_copies=True).draft
    assert draft is not None
    assert draft.copies == copies
    assert read_line(text.split(), {}).draft == replace(draft, copies=0)


@given(st.lists(st.sampled_from(["-c", "-ngl", "-ts", "--fit", "-b", "-ub", "-dev", "-cram"]) | st.text()))
def test_no_line_is_too_odd_to_be_read(argv: list[str]) -> None:
    found = read_line(argv, {"LLAMA_ARG_UBATCH": "9" * 40})
    assert found.cache.slots >= 1
    assert found.cache.ubatch <= found.cache.batch


@pytest.mark.parametrize(
    ("text", "draft", "file"),
    [
        pytest.param(
            "-md /m/d.gguf --spec-type draft-simple", DraftPlan("model", 3), "/m/d.gguf", id="separate"
        ),
        pytest.param(
            "--spec-draft-model /m/d.gguf --spec-type draft-mtp --spec-draft-n-max 2",
            DraftPlan("model", 2),
            "/m/d.gguf",
            id="drafter-as-a-head",
        ),
        pytest.param(
            "-hfd o/r --spec-type draft-simple", DraftPlan("model", 3), None, id="from-a-hub-by-the-engine"
        ),
        pytest.param(
            "-md d.gguf --draft-max 7 --spec-type draft", DraftPlan("model", 7), "d.gguf", id="older-words"
        ),
        pytest.param(
            "-md d.gguf --spec-type draft-simple -ctkd q8_0 --cache-type-v-draft q4_0",
            DraftPlan("model", 3, "q8_0", "q4_0"),
            "d.gguf",
            id="caches-of-its-own",
        ),
        pytest.param(
            "-ctk q8_0 -md d.gguf --spec-type draft-eagle3", DraftPlan("model", 3), "d.gguf", id="f16-caches"
        ),
        pytest.param(
            "-md d.gguf --spec-type draft-dflash -ngld 0",
            DraftPlan("model", 3, on_cpu=True),
            "d.gguf",
            id="in-host-memory",
        ),
        pytest.param(
            "-md d.gguf --spec-type ngram-mod", DraftPlan("model", 3), "d.gguf", id="loaded-for-nothing"
        ),
        pytest.param("--spec-type draft-simple", None, None, id="no-drafter"),
        pytest.param("--spec-type mtp:n_max=1", DraftPlan("head", 3), None, id="settings-behind-the-type"),
    ],
)
def test_a_drafter_is_seen_with_what_it_takes(text: str, draft: DraftPlan | None, file: str | None) -> None:
    found = line(text)
    assert (found.draft, found.drafter) == (draft, file)


def test_variables_name_a_drafter_as_well() -> None:
    found = line("--spec-type draft-simple", SPEC_DRAFT_MODEL="/m/d.gguf", SPEC_DRAFT_N_MAX="6")
    assert (found.draft, found.drafter) == (DraftPlan("model", 6), "/m/d.gguf")


def test_a_build_from_before_the_renaming_drafts_deeper_by_itself() -> None:
    drafting = ["-md", "d.gguf", "--spec-type", "draft"]
    assert read_line(drafting, {}, usual_depth=16).draft == DraftPlan("model", 16)
    assert read_line(drafting, {}, usual_depth=16).cache.drafted == 16


@pytest.mark.parametrize(
    ("text", "drafted"),
    [
        ("", 0),
        ("--spec-default", 64),
        ("--spec-type ngram-mod --spec-ngram-mod-n-max 16", 16),
        ("--spec-type ngram-simple", 48),
        ("--spec-type ngram-cache --spec-type ngram-simple --spec-ngram-simple-size-m 4", 8),
        ("--spec-type draft-mtp,ngram-cache --spec-draft-n-max 30", 30),
        ("--spec-type ngram-mod --draft-max 32", 32),
        ("-md d.gguf --spec-type draft-simple --spec-draft-n-max 9", 9),
        ("--spec-type none", 0),
        ("--spec-type womba", 0),
        ("--spec-type ngram-mod --spec-ngram-mod-n-max 999999999999", 65536),
        ("--spec-type ngram-mod --spec-ngram-mod-n-max -5", 0),
    ],
)
def test_the_longest_draft_needs_room(text: str, drafted: int) -> None:
    assert line(text).cache.drafted == drafted


def test_a_split_by_rows_names_its_main_gpu_and_leaves_nothing_to_the_fit_step() -> None:
    found = line("--fit on --split-mode row --main-gpu 1")
    assert (found.row_main, found.may_shorten, found.may_move, found.unplanned) == (1, False, False, None)


def test_layers_have_no_main_gpu() -> None:
    assert line("--fit on").row_main is None


@pytest.mark.parametrize(
    "text", ["-ngl 3", "--n-gpu-layers 3", "--rpc a:1", "-dev CUDA0", "--fit off", "-cmoe"]
)
def test_flags_that_say_where_things_go_are_the_users(text: str) -> None:
    assert owns_placement(text.split(), {})


@pytest.mark.parametrize("name", ["N_GPU_LAYERS", "DEVICE", "FIT", "TENSOR_SPLIT", "RPC"])
def test_variables_that_say_where_things_go_are_the_users(name: str) -> None:
    assert owns_placement((), {f"LLAMA_ARG_{name}": "1"})


def test_other_flags_leave_the_place_to_planning() -> None:
    text = "-c 4096 -ctk q8_0 --cache-ram 0 --parallel 2"
    assert not owns_placement(text.split(), {})
    assert not names_devices(text.split(), {})
    assert owns_slots(text.split(), {})
    assert owns_prompt_cache(text.split(), {})


@pytest.mark.parametrize(
    ("era", "kept"),
    [
        pytest.param("plain", HostSettings(0, 0), id="2025"),
        *(
            pytest.param(era, HostSettings(), id=era)
            for era in ("old", "renamed", "lists", "new", "newest", "fork")
        ),
    ],
)
def test_a_build_keeps_in_host_memory_what_it_has_a_limit_for(era: Name, kept: HostSettings) -> None:
    assert line_of(a_launch(caps=caps_of(era)).plan).host == kept


def test_a_build_that_nobody_could_ask_is_planned_as_the_usual_one() -> None:
    assert line_of(a_launch(caps=Capabilities()).plan).host == HostSettings()
