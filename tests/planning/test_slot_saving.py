"""What saved slots belong to, what keeps them from being saved, how they are written down (07 §11, §15.8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.planning.slot_saving.decision import (
    SPARE_DISK_BYTES,
    SaveFacts,
    estimate_bytes,
    over_limit,
    why_not_saved,
)
from framework.planning.slot_saving.fingerprint import (
    SlotFingerprint,
    difference,
    files_of,
    fingerprint,
    may_go_on,
)
from framework.planning.slot_saving.record import SavedSlot, decode, encode, slot_file_name
from framework.planning.slot_saving.sidecars import sidecars
from framework.values.engine import EngineBinary, FileId
from framework.values.plan import FitPlan, LaunchPlan, LaunchResult, MemoryLine, Section
from framework.values.request import ModelRequest, ModelSource
from tests.engines.requests import real_caps
from tests.support.launch_plans import a_plan

FOLDER = Path("/state/slots/demo.0")
GGUF = Path("/models/demo.gguf")
LORA = Path("/models/lora.gguf")
ENGINE = EngineBinary(
    Path("/opt/llama-server"), Path("/opt"), FileId(Path("/opt/llama-server"), 9, 7), "manifest"
)
SAVING = Section("slot-save", ("--slot-save-path", "{slots}"), "optional")
STAMPS = {GGUF: (100, 5), LORA: (3, 4)}
MIB, GIB = 2**20, 2**30


def request(**fields: Any) -> ModelRequest:
    values: dict[str, Any] = {"n_ctx": 4096} | fields
    return ModelRequest(id="demo", source=ModelSource(path=GGUF), **values)


def plan(*sections: Section, **fields: Any) -> LaunchPlan:
    values: dict[str, Any] = {"request": request(), "model": GGUF, "caps": real_caps()} | fields
    return a_plan(ENGINE, SAVING, Section("unified", ("--kv-unified",)), *sections, **values)


def of(
    launched: LaunchPlan | None = None,
    result: LaunchResult | None = None,
    *,
    folder: Path = FOLDER,
    stamps: Mapping[Path, tuple[int, int] | None] = STAMPS,
) -> SlotFingerprint:
    return fingerprint(
        folder, launched or plan(), result or LaunchResult("ready", context=4096, slots=2), stamps
    )


def changed(now: SlotFingerprint) -> str:
    """What is said to differ from what was saved with an ordinary launch, read back from its record."""
    record = decode(encode(of(), [SavedSlot(0, slot_file_name("0" * 8, 0), 5)]))
    assert record is not None
    return difference(record.belongs_to, now)


WITH_LORA = plan(request=request(adapters=((LORA, 1.0),)))
CHANGES = [
    pytest.param(of(folder=Path("/else/slots/demo.0")), "the folder of saved slots", id="folder"),
    pytest.param(
        of(plan(engine=replace(ENGINE, file=replace(ENGINE.file, mtime_ns=8)))), "the engine", id="engine"
    ),
    pytest.param(of(plan(model=LORA, main_gguf=LORA)), "the model file", id="model"),
    pytest.param(of(stamps={GGUF: (100, 6)}), "the content of the model file", id="model-mtime"),
    pytest.param(of(stamps={GGUF: None}), "the content of the model file", id="model-gone"),
    pytest.param(of(plan(shards=(LORA,))), "the content of the model file", id="more-shards"),
    pytest.param(of(plan(request=request(extra_args=("--no-warmup",)))), "engine_args", id="args"),
    pytest.param(of(plan(request=request(n_ctx=0))), "the context that is asked for", id="context-asked"),
    pytest.param(of(result=LaunchResult("ready", context=2048, slots=2)), "the context", id="context"),
    pytest.param(of(result=LaunchResult("ready", context=4096, slots=1)), "the number of slots", id="slots"),
    pytest.param(
        of(plan(Section("kv", ("--cache-type-k", "q8_0")))), "the type of the key and value cache", id="types"
    ),
    pytest.param(of(plan(Section("window", ("--swa-full",)))), "full_window_cache", id="window"),
    pytest.param(
        of(plan(Section("user", ("--no-kv-unified",)))), "whether slots share one cache", id="unified"
    ),
    pytest.param(of(plan(Section("batch", ("--ubatch-size", "64")))), "batch.physical", id="micro-batch"),
    pytest.param(of(plan(Section("flash", ("--flash-attn", "off")))), "flash attention", id="flash"),
    pytest.param(of(WITH_LORA), "the adapters", id="adapter"),
    pytest.param(of(plan(env={"LLAMA_ARG_ROPE_FREQ_BASE": "5e5"})), "environment", id="variable"),
]


@pytest.mark.parametrize(("now", "what"), CHANGES)
def test_saved_slots_are_of_no_use_after_a_change_of(now: SlotFingerprint, what: str) -> None:
    assert changed(now) == what


def test_saved_slots_belong_to_the_same_launch_again() -> None:
    assert changed(of()) == ""


def test_what_only_decides_speed_and_place_changes_nothing() -> None:
    elsewhere = plan(
        Section("placement", ("--device", "CUDA1")),
        Section("spec", ("--spec-type", "ngram-mod")),
        env={"CUDA_VISIBLE_DEVICES": "1", "LLAMA_ARG_SPEC_DRAFT_N_MAX": "4", "PATH": "/bin"},
    )
    assert changed(of(elsewhere)) == ""


@pytest.mark.parametrize("stamp", [(3, 5), (4, 4), None], ids=["mtime", "size", "gone"])
def test_another_adapter_file_under_the_same_name_is_noticed(stamp: tuple[int, int] | None) -> None:
    saved, now = of(WITH_LORA), of(WITH_LORA, stamps={GGUF: (100, 5), LORA: stamp})
    assert difference(saved.as_json(), now) == "an adapter or a control vector"


def test_another_scale_of_an_adapter_is_noticed() -> None:
    weaker = plan(request=request(adapters=((LORA, 0.5),)))
    assert difference(of(WITH_LORA).as_json(), of(weaker)) == "the adapters"


def test_secrets_of_arguments_and_variables_are_not_in_the_record() -> None:
    secret = plan(
        request=request(extra_args=("--hf-token", "hf_secret")), env={"LLAMA_ARG_HF_TOKEN": "hf_secret"}
    )
    assert b"hf_secret" not in encode(of(secret), [])


@pytest.mark.parametrize(
    "damage",
    [
        {"launch": None},
        {"launch": {}},
        {"launch": {"more": 1}},
        {"binary": "/opt/llama-server"},
        {"gguf_stat": [[100, 5], [1, 1]]},
        {"gguf_stat": None},
    ],
    ids=lambda damage: json.dumps(damage),
)
def test_a_record_that_lacks_something_belongs_to_nothing(damage: dict[str, Any]) -> None:
    saved = of().as_json()
    for name, value in damage.items():
        saved[name] = saved[name] | value if value and isinstance(value, dict) else value
    assert difference(saved, of())


# Sidecars (07 §11.4)


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("--lora", "a.gguf"), ("a.gguf",)),
        (("--lora", "a.gguf,b.gguf"), ("a.gguf,b.gguf", "a.gguf", "b.gguf")),
        (("--lora-scaled", r"C:\x.gguf:0.5"), (r"C:\x.gguf:0.5", r"C:\x.gguf")),
        (("--lora-scaled", "x.gguf", "0.5"), ("x.gguf",)),
        (
            ("--lora-scaled", "a:1,b:-2e1"),
            ("a:1,b:-2e1", "a:1,b", "a:1", "a", "b:-2e1", "b"),
        ),
        (("--control-vector-scaled", "v.gguf:x"), ("v.gguf:x",)),
        (("--control-vector", "v.gguf", "--lora", "v.gguf"), ("v.gguf",)),
        (("--lora", "--no-warmup"), ()),
        (("--model-draft", "d.gguf"), ()),
    ],
)
def test_every_file_that_an_argument_may_mean_is_looked_at(
    args: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert sidecars((), args) == names


def test_adapters_of_the_manifest_come_first() -> None:
    launched = plan(
        shards=(Path("/models/b.gguf"),),
        request=request(adapters=((LORA, 1.0),), extra_args=("--lora", "x.gguf")),
    )
    assert files_of(launched) == ((GGUF, Path("/models/b.gguf")), (LORA, Path("x.gguf")))


# Whether to save (07 §11.5, §11.6)


def facts(**fields: Any) -> SaveFacts:
    values: dict[str, Any] = {
        "loaded": of(),
        "now": of(),
        "estimate_bytes": 10 * MIB,
        "limit_bytes": GIB,
        "free_bytes": 100 * GIB,
    }
    return SaveFacts(**(values | fields))


def cause(**fields: Any) -> str | None:
    reason = why_not_saved(facts(**fields))
    return None if reason is None else reason.evidence["cause"]


UNKNOWN, OTHER = of(stamps={}), of(stamps={GGUF: (1, 1)})


def test_it_is_saved_where_nothing_speaks_against_it() -> None:
    assert cause() is None


def test_refusals_come_in_their_order() -> None:
    worst: dict[str, Any] = {
        "loaded": UNKNOWN,
        "now": OTHER,
        "estimate_bytes": 2 * GIB,
        "free_bytes": 0,
    }
    order = []
    for name, good in (("loaded", of()), ("now", of()), ("estimate_bytes", MIB), ("free_bytes", None)):
        order.append(cause(**worst))
        worst[name] = good
    assert (order, cause(**worst)) == (["file_unknown", "changed", "too_large", "disk_full"], None)


def test_a_disk_keeps_a_gibibyte_beside_what_is_written() -> None:
    needed = 10 * MIB + SPARE_DISK_BYTES
    assert cause(free_bytes=needed) is None
    assert cause(free_bytes=needed - 1) == "disk_full"


def test_where_nothing_can_be_said_the_disk_has_room_for_the_limit() -> None:
    assert cause(estimate_bytes=0, free_bytes=2 * GIB) is None
    assert cause(estimate_bytes=0, free_bytes=2 * GIB - 1) == "disk_full"


def test_sentences_have_sizes_with_units_and_say_what_to_do() -> None:
    reason = why_not_saved(facts(estimate_bytes=2 * GIB))
    assert reason is not None
    assert "they would take 2 GiB, and slot_state.max is 1 GiB" in reason.message
    assert "slot_state.max" in reason.remedy
    assert "they took 3 GiB" in over_limit(3 * GIB, GIB).message


FIT = FitPlan(
    (
        MemoryLine("CUDA0", "kv", 600, "computed"),
        MemoryLine("CPU", "kv", 200, "computed"),
        MemoryLine("CPU", "recurrent_state", 200, "computed"),
        MemoryLine("CPU", "weights", 5000, "computed"),
    ),
    context=100,
)


@pytest.mark.parametrize(
    ("fit", "tokens", "size"),
    [(FIT, None, 1000), (FIT, 50, 500), (FIT, 500, 1000), (FitPlan(), 50, 0), (FitPlan(), None, 0)],
)
def test_the_estimate_is_the_share_of_the_cache_that_is_in_use(
    fit: FitPlan, tokens: int | None, size: int
) -> None:
    assert estimate_bytes(fit, tokens) == size


# Replacements (07 §11.10)


def test_a_replacement_of_the_same_settings_may_go_on() -> None:
    assert may_go_on(plan(), plan(Section("spec", ("--spec-type", "ngram-mod"))))


@pytest.mark.parametrize(
    "new",
    [
        plan(main_gguf=LORA),
        plan(request=request(n_ctx=8192)),
        plan(Section("kv", ("--cache-type-v", "q8_0"))),
        plan(request=request(adapters=((LORA, 1.0),))),
        a_plan(ENGINE, request=request(), model=GGUF, caps=real_caps()),
    ],
    ids=["model", "context", "types", "adapter", "saves-nothing"],
)
def test_a_replacement_that_differs_for_sure_is_not_saved_for(new: LaunchPlan) -> None:
    assert not may_go_on(plan(), new)


# The record (07 §11.8)


def test_a_record_is_read_as_it_was_written() -> None:
    slots = (SavedSlot(0, "resume-0123abcd-slot0.bin", 7), SavedSlot(3, "resume-0123abcd-slot3.bin", 9))
    record = decode(encode(of(), slots))
    assert record is not None
    assert record.slots == slots
    assert set(record.belongs_to) == {"dir", "binary", "gguf", "gguf_stat", "launch"}


def test_paths_that_are_no_text_survive() -> None:
    odd = of(folder=Path("/state/\udcff/demo.0"))
    record = decode(encode(odd, [SavedSlot(0, "resume-0123abcd-slot0.bin", 7)]))
    assert record is not None
    assert difference(record.belongs_to, odd) == ""


@pytest.mark.parametrize(
    "slots",
    [
        [],
        [{"id": 0, "filename": "../../etc/passwd", "n_saved": 1}],
        [{"id": 0, "filename": "resume-0123abcd-slot0.bin/x", "n_saved": 1}],
        [{"id": 0, "filename": "resume-0123abcd-slot0.bin\n", "n_saved": 1}],
        [{"id": -1, "filename": "resume-0123abcd-slot0.bin", "n_saved": 1}],
        [{"id": True, "filename": "resume-0123abcd-slot0.bin", "n_saved": 1}],
        [{"id": 0, "filename": "resume-0123abcd-slot0.bin", "n_saved": "1"}],
        [{"id": 0, "filename": 5, "n_saved": 1}],
        [{"id": 0, "filename": "resume-0123abcd-slot0.bin", "n_saved": 1}] * 2,
        "slots",
        None,
    ],
)
def test_hostile_records_are_none(slots: Any) -> None:
    assert decode(json.dumps({"format": 1, **of().as_json(), "slots": slots}).encode()) is None


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_no_record(data: bytes) -> None:
    assert decode(data) is None
