"""Which launches can save their slots, and what the plan says of the others (07 §11.5, 06 §6.1 row 10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.planning.memory.shape import ModelShape
from framework.planning.slot_saving.grant import WHOLE_CACHE, CacheKind, cache_kind, why_unsaved
from framework.values.engine import Capabilities, EngineRef
from tests.engines.requests import a_request, caps_with, real_caps
from tests.support.launches import a_card, a_launch, placed, section

WINDOW = CacheKind(512, has_lengths=True)
PROJECTOR = Path("/models/mmproj.gguf")


def cause(
    caps: Capabilities | None = None,
    env: dict[str, str] | None = None,
    *,
    projector: Path | None = None,
    kind: CacheKind = WHOLE_CACHE,
    **request: Any,
) -> str | None:
    reason = why_unsaved(a_request(**request), caps or real_caps(), env or {}, projector=projector, kind=kind)
    if reason is None:
        return None
    assert (reason.code, reason.severity) == ("slot_state_unavailable", "info")
    assert reason.remedy
    return str(reason.evidence["cause"])


def test_an_ordinary_model_saves_its_slots() -> None:
    assert cause() is None


@pytest.mark.parametrize("caps", [caps_with("--metrics"), Capabilities()], ids=["old", "inconclusive"])
def test_a_build_that_cannot_is_not_asked_to(caps: Capabilities) -> None:
    assert cause(caps) == "no_flag"


@pytest.mark.parametrize(
    ("args", "env", "is_off"),
    [
        ((), {}, False),
        (("--no-cache-prompt",), {}, True),
        (("--no-cache-prompt", "--cache-prompt"), {}, False),
        ((), {"LLAMA_ARG_NO_CACHE_PROMPT": "0"}, True),
        ((), {"LLAMA_ARG_CACHE_PROMPT": "0"}, True),
        ((), {"LLAMA_ARG_CACHE_PROMPT": "1"}, False),
        (("--cache-prompt",), {"LLAMA_ARG_NO_CACHE_PROMPT": "1"}, False),
    ],
)
def test_without_a_prompt_cache_there_is_nothing_to_go_on_with(
    args: tuple[str, ...], env: dict[str, str], is_off: bool
) -> None:
    assert (cause(env=env, extra_args=args) == "prompt_cache_off") == is_off


def test_a_model_with_a_projector_saves_none() -> None:
    assert cause(projector=PROJECTOR) == "projector"


def test_a_window_alone_is_of_no_use_to_another_process() -> None:
    assert cause(kind=WINDOW) == "window"


@pytest.mark.parametrize(
    "whole",
    [
        {"swa_full": True},
        {"extra_args": ("--swa-full",)},
        {"env": {"LLAMA_ARG_SWA_FULL": "1"}},
        {"engine": EngineRef(kind="native")},
    ],
    ids=["field", "flag", "variable", "native"],
)
def test_a_cache_that_can_be_gone_on_with_is_saved(whole: dict[str, Any]) -> None:
    env = whole.pop("env", {})
    assert cause(env=env, kind=WINDOW, **whole) is None


@pytest.mark.parametrize(
    ("shape", "is_windowed"),
    [
        (ModelShape(sliding_window=512, key_length=64, value_length=64), True),
        (ModelShape(sliding_window=512), False),
        (ModelShape(sliding_window=0, key_length=64, value_length=64), False),
        (ModelShape(key_length=64, value_length=64), False),
    ],
    ids=["window", "window without lengths", "window of nothing", "no window"],
)
def test_a_declared_window_counts_only_with_the_lengths_of_its_rows(
    shape: ModelShape, is_windowed: bool
) -> None:
    assert cache_kind(shape).is_windowed == is_windowed


def test_who_does_not_ask_for_it_is_told_nothing() -> None:
    assert cause(Capabilities(), slot_save=False) is None


def test_the_line_has_the_folder_and_idle_slots_stay_where_they_are() -> None:
    plan = placed(a_launch(), a_card(0, 24.0))
    assert section(plan, "slot-save") == "--slot-save-path {slots} --no-cache-idle-slots"
    names = [one.name for one in plan.sections]
    place = names.index("slot-save")
    assert names[place - 1 : place + 2] == ["metrics", "slot-save", "unified"]


def test_a_build_that_never_moves_idle_slots_needs_no_word_about_them() -> None:
    plan = placed(a_launch(caps=caps_with("--model", "--slot-save-path")), a_card(0, 24.0))
    assert section(plan, "slot-save") == "--slot-save-path {slots}"


def test_the_plan_says_what_is_not_carried_over() -> None:
    plan = placed(a_launch(caps=caps_with("--model")), a_card(0, 24.0))
    assert section(plan, "slot-save") == ""
    assert "slot_state_unavailable" in {reason.code for reason in plan.reasons}
