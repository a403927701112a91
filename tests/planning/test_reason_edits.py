"""What in the manifest could be changed about a reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.planning.reason_edits import WAYS, ways_for
from framework.values.manifest_edit import FieldEdit
from framework.values.plan import FitPlan, Remedy
from framework.values.reason import Reason
from framework.values.request import LiveSettings
from tests.dashboard import samples

ROOT = Path(__file__).resolve().parent.parent.parent
REQUEST = replace(samples.request("a"), slots=4, n_ctx=0, cache_type=(None, None))
PLAN = replace(samples.plan(REQUEST), cache_types=(None, None), projector=None)


def edits(code: str, evidence: dict[str, Any] | None = None, **request: Any) -> list[tuple[str, Any]]:
    """Paths and values of all ways, in order."""
    asked = replace(REQUEST, **request)
    found = ways_for(Reason(code, "", evidence=evidence or {}), asked, replace(PLAN, request=asked))
    return [(".".join(edit.path), edit.value) for way in found for edit in way.edits]


def test_a_context_that_was_cut_has_several_ways_the_mildest_first() -> None:
    plan = replace(PLAN, projector=Path("/m/mmproj.gguf"))
    found = ways_for(Reason("context_fitted", ""), REQUEST, plan)
    assert [way.edits[0] for way in found] == [
        FieldEdit(("kv_cache",), "q8_0"),
        FieldEdit(("kv_cache",), "q4_0"),
        FieldEdit(("slots",), 1),
        FieldEdit(("projector",), "none"),
    ]
    assert all(way.sentence for way in found)


def test_what_is_small_already_is_not_proposed() -> None:
    assert edits("context_fitted", cache_type=("q8_0", "q8_0"), slots=1) == [("kv_cache", "q4_0")]
    assert edits("context_fitted", cache_type=("q4_0", "q4_0"), slots=1) == []


def test_without_flash_attention_only_keys_are_stored_smaller() -> None:
    found = edits("context_fitted", flash_attn="off", slots=1)
    assert found[0] == ("kv_cache", {"k": "q8_0", "v": "f16"})


def test_a_context_that_is_asked_for_may_be_left_to_the_planner() -> None:
    assert ("context", "auto") in edits("does_not_fit", n_ctx=65536)


def test_what_a_refused_model_could_change_needs_no_plan() -> None:
    found = ways_for(Reason("does_not_fit", ""), replace(REQUEST, n_ctx=4096), None)
    assert [way.edits[0].path for way in found] == [("kv_cache",), ("kv_cache",), ("slots",), ("context",)]


def test_the_remedies_of_the_plan_come_with_their_numbers() -> None:
    remedies = (
        Remedy("context", 12288, 5, True, "Shorten the context to 12,288 tokens: 5 MiB less; a cost."),
        Remedy("slots", 2, 5, True, "Use 2 slots instead of 4: 5 MiB less; a cost."),
        Remedy("layers", 20, 5, True, "Put 20 layers on GPUs: 5 MiB less; a cost."),
    )
    plan = replace(PLAN, fit=FitPlan(remedies=remedies))
    found = ways_for(Reason("layers_delegated", ""), REQUEST, plan)
    told = {way.sentence: way.edits[0].value for way in found}
    assert told["Shorten the context to 12,288 tokens"] == 12288
    assert told["Use 2 slots instead of 4"] == 2
    assert not any("layers" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("code", "evidence", "path", "value"),
    [
        pytest.param("slots_reduced", {"granted": 2}, "slots", 2, id="slots"),
        pytest.param("slot_context_small", {"context_tokens": 600, "slots": 4}, "slots", 2, id="small-slots"),
        pytest.param("context_above_training", {"trained_tokens": 8192}, "context", 8192, id="trained"),
        pytest.param("cpu_experts_clamped", {"granted": 12}, "placement.cpu_experts", 12, id="experts"),
        pytest.param("cpu_experts_clamped", {"granted": 0}, "placement.cpu_experts", None, id="no-experts"),
        pytest.param("tensor_dropped", {}, "placement.split", "layer", id="tensor"),
        pytest.param("tensor_split_dropped", {}, "placement.tensor_split", None, id="shares"),
        pytest.param("reasoning_not_granted", {}, "reasoning", "auto", id="reasoning"),
        pytest.param("projector_not_found", {}, "projector", "none", id="projector"),
        pytest.param("slot_state_unavailable", {}, "slot_state", "off", id="slot-state"),
        pytest.param("mla_mtp_disabled", {}, "allow_mla", True, id="policy"),
        pytest.param("ngram_settings_unused", {}, "ngram", None, id="policy-field-out"),
    ],
)
def test_a_remedy_with_one_meaning_is_one_edit(
    code: str, evidence: dict[str, Any], path: str, value: Any
) -> None:
    assert (path, value) in edits(code, evidence)


@pytest.mark.parametrize(
    ("load_s", "text"), [(600.0, "20m"), (20.0, "40s"), (75.0, "150s")], ids=["minutes", "seconds", "both"]
)
def test_a_load_that_took_too_long_gets_twice_the_time(load_s: float, text: str) -> None:
    assert edits("health_timeout", live=LiveSettings(load_timeout_s=load_s)) == [("timeout.load", text)]


@pytest.mark.parametrize("code", ["slots_reduced", "slot_context_small", "context_above_training"])
def test_evidence_that_is_not_there_proposes_no_number(code: str) -> None:
    assert all(path == "kv_cache" for path, _ in edits(code, {"granted": "x", "slots": None}))


def test_a_reason_without_a_certain_edit_has_none() -> None:
    assert edits("child_exited") == []


def test_every_code_is_one_that_the_page_of_reasons_explains() -> None:
    page = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
    assert set(WAYS) <= set(re.findall(r"^\| `([a-z0-9_]+)` \|", page, re.MULTILINE))
