"""The order of the gates, and what each comes to (05 §6.1, vectors of §13)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.planning.speculation.decide import decide_speculation
from framework.values.engine import Capabilities
from framework.values.reason import Reason
from framework.values.request import SpecPolicy
from framework.values.speculation import NO_FACTS, SpecFacts, SpecInputs
from tests.planning.speculation.inputs import (
    BARE,
    DRAFTER,
    GEMMA,
    HEAD,
    HEAD_DRAFTER,
    LATENT,
    NEW,
    PLAIN,
    UNKNOWN,
    WITHHELD,
    WITHOUT_MTP,
    WITHOUT_NGRAM,
    decided,
    told,
)

SMALL = replace(HEAD, params_b=2.99)
NO_FLAVOUR = replace(NEW, ngram_flavour=None)


def outcome(mode: str, facts: SpecFacts, caps: Capabilities) -> tuple[str, str | None, list[str]]:
    decision = decided(mode, facts, caps)
    return decision.resolved, *told(decision)


@pytest.mark.parametrize(
    ("mode", "facts", "caps", "resolved", "reason", "notes"),
    [
        pytest.param("off", HEAD, NEW, "none", None, [], id="D3"),
        pytest.param("ngram-simple", HEAD, BARE, "none", None, ["ngram_unsupported"], id="D4"),
        pytest.param("ngram-simple", HEAD, NEW, "ngram-simple", None, [], id="D5"),
        pytest.param("ngram-simple", HEAD, UNKNOWN, "ngram-simple", None, [], id="D5-inconclusive"),
        pytest.param("ngram", HEAD, BARE, "none", None, ["ngram_unsupported"], id="D6"),
        pytest.param("ngram", HEAD, NEW, "ngram-mod", None, [], id="D7"),
        pytest.param(
            "ngram", HEAD, UNKNOWN, "ngram-mod", None, ["ngram_knobs_missing"], id="D7-inconclusive"
        ),
        pytest.param("mtp", PLAIN, NEW, "default", None, ["model_not_mtp"], id="D8"),
        pytest.param("mtp", GEMMA, NEW, "ngram-mod", "drafter_not_found", [], id="D9"),
        pytest.param("mtp", SMALL, NEW, "draft-mtp", None, ["head_too_small_forced"], id="D10"),
        pytest.param("mtp", HEAD, NEW, "draft-mtp", None, [], id="D11"),
        pytest.param("mtp+ngram", PLAIN, NEW, "ngram-mod", None, ["model_not_mtp"], id="D12"),
        pytest.param(
            "mtp+ngram", PLAIN, BARE, "none", None, ["model_not_mtp", "ngram_unsupported"], id="D12-as-D6"
        ),
        pytest.param("mtp+ngram", GEMMA, NEW, "ngram-mod", "drafter_not_found", [], id="D13"),
        pytest.param("mtp+ngram", SMALL, NEW, "draft-mtp", None, ["head_too_small_forced"], id="D14"),
        pytest.param("mtp+ngram", HEAD, NEW, "draft-mtp", None, [], id="D15"),
        pytest.param("auto", LATENT, NEW, "ngram-mod", "mla_mtp_disabled", [], id="D16"),
        pytest.param("auto", LATENT, NO_FLAVOUR, "none", "mla_mtp_disabled", [], id="D16-without-n-grams"),
        pytest.param("auto", GEMMA, NEW, "ngram-mod", "drafter_not_found", [], id="D17"),
        pytest.param("auto", GEMMA, NO_FLAVOUR, "default", "drafter_not_found", [], id="D17-without-n-grams"),
        pytest.param("auto", HEAD, NEW, "draft-mtp", None, [], id="D18"),
        pytest.param(
            "auto", replace(GEMMA, params_b=2.0), NEW, "ngram-mod", "drafter_not_found", [], id="D19"
        ),
        pytest.param("auto", SMALL, NEW, "ngram-mod", None, ["head_too_small"], id="D20"),
        pytest.param("auto", SMALL, NO_FLAVOUR, "none", None, ["head_too_small"], id="D21"),
        pytest.param("auto", PLAIN, NEW, "default", None, [], id="D22"),
        pytest.param("draft", PLAIN, NEW, "ngram-mod", "drafter_not_found", [], id="D23"),
        pytest.param("eagle3", PLAIN, NEW, "ngram-mod", "drafter_not_found", [], id="D23-eagle3"),
        pytest.param("dflash", PLAIN, NO_FLAVOUR, "default", "drafter_not_found", [], id="D23-dflash"),
        pytest.param(
            "draft",
            replace(PLAIN, drafter=DRAFTER, drafter_kind="plain"),
            WITHOUT_MTP,
            "none",
            "binary_no_draft_type",
            [],
            id="D24",
        ),
        pytest.param(
            "draft",
            replace(PLAIN, drafter=DRAFTER, drafter_kind="plain"),
            NEW,
            "draft-simple",
            None,
            [],
            id="D25",
        ),
    ],
)
def test_the_first_gate_that_applies_decides(
    mode: str, facts: SpecFacts, caps: Capabilities, resolved: str, reason: str | None, notes: list[str]
) -> None:
    assert outcome(mode, facts, caps) == (resolved, reason, notes)
    assert decided(mode, facts, caps).requested == mode


# The user's own flags


@pytest.mark.parametrize("args", [("--spec-type", "x"), ("--spec-default",)])
def test_flags_of_the_user_leave_no_room_for_the_policy(args: tuple[str, ...]) -> None:
    decision = decided("ngram", HEAD, args=args)  # D1
    assert (decision.requested, decision.resolved, decision.block) == (None, "user", ())
    assert told(decision) == (None, [])


def test_tuning_flags_beside_the_policy_are_no_flags_of_speculation() -> None:
    assert decided("ngram", args=("--spec-draft-n-max", "4")).resolved == "ngram-mod"


def test_a_drafter_of_the_user_is_named() -> None:
    assert decided(args=("--spec-type", "draft-simple", "-md", "/m/own.gguf")).drafter == "/m/own.gguf"
    facts = replace(PLAIN, drafter=DRAFTER, drafter_kind="plain")
    assert (
        decided("draft", facts, args=("-md", "/m/own.gguf")).drafter == "/m/own.gguf"
    )  # the last one counts


# What is withheld for now


def test_withheld_drafting_is_off_and_says_why() -> None:
    decision = decided("mtp", HEAD, withheld=WITHHELD)  # D2
    assert (decision.requested, decision.resolved, decision.block) == ("mtp", "none", ())
    assert decision.reason == WITHHELD
    assert decision.depth is None


def test_what_the_user_asked_for_himself_can_be_withheld_as_well() -> None:
    args = ("--spec-type", "draft-mtp", "-md", "/m/own.gguf")
    decision = decided("mtp", HEAD, args=args, withheld=WITHHELD)
    assert (decision.requested, decision.resolved, decision.block) == (None, "user", ())
    assert (decision.reason, decision.drafter) == (WITHHELD, None)


# Gates in detail


@pytest.mark.parametrize(
    ("params_b", "drafter", "caps", "resolved", "notes"),
    [
        (2.99, False, NEW, "ngram-mod", ["head_too_small"]),
        (3.0, False, NEW, "draft-mtp", []),
        (None, False, NEW, "draft-mtp", []),
        (2.99, True, NEW, "draft-mtp", []),
        (2.99, False, NO_FLAVOUR, "none", ["head_too_small"]),
    ],
)
def test_auto_leaves_heads_of_small_models_alone(
    params_b: float | None, drafter: bool, caps: Capabilities, resolved: str, notes: list[str]
) -> None:
    found = {"drafter": HEAD_DRAFTER, "drafter_kind": "mtp"} if drafter else {}
    facts = replace(HEAD, params_b=params_b, **found)  # type: ignore[arg-type]
    assert outcome("auto", facts, caps) == (resolved, None, notes)  # 05 §13.9


def test_latent_attention_is_no_gate_for_who_asks_for_it() -> None:
    assert decided("auto", LATENT, allow_mla=True).resolved == "draft-mtp"  # 05 §13.13
    assert decided("mtp", LATENT).resolved == "draft-mtp"
    assert decided("auto", replace(LATENT, drafter=HEAD_DRAFTER, drafter_kind="mtp")).resolved == "draft-mtp"


def test_the_gate_of_latent_attention_comes_before_that_of_size() -> None:
    assert outcome("auto", replace(LATENT, params_b=1.0), NEW) == ("ngram-mod", "mla_mtp_disabled", [])


def test_a_name_that_promises_a_head_is_believed_only_without_a_header() -> None:
    named = replace(PLAIN, model_id="org/x-mtp")  # 05 §13.16
    assert outcome("auto", named, NEW) == ("default", None, ["name_without_head"])
    assert outcome("auto", replace(named, header_ok=False), NEW) == ("draft-mtp", None, [])


@pytest.mark.parametrize(
    ("kind", "resolved"),
    [
        ("eagle3", "draft-eagle3"),
        ("dflash", "draft-dflash"),
        ("plain", "draft-simple"),
        (None, "draft-simple"),
    ],
)
def test_auto_uses_a_drafter_as_what_it_is(kind: str | None, resolved: str) -> None:
    facts = replace(HEAD, drafter=DRAFTER, drafter_kind=kind)  # type: ignore[arg-type]
    assert decided("auto", facts).resolved == resolved  # 05 §2.5


def test_an_ordinary_drafter_is_no_head() -> None:
    """15 §3: the engine exits when it is given one as a head."""
    facts = replace(PLAIN, drafter=DRAFTER, drafter_kind="plain")
    assert outcome("mtp", facts, NEW) == ("default", None, ["model_not_mtp"])
    assert decided("mtp", replace(HEAD, drafter=DRAFTER, drafter_kind="plain")).drafter is None


# What a build cannot do


@pytest.mark.parametrize("mode", ["mtp", "auto", "mtp+ngram"])
def test_a_build_without_heads_runs_its_default(mode: str) -> None:
    assert outcome(mode, HEAD, WITHOUT_MTP) == ("default", "binary_no_mtp", [])  # 05 §13.10


def test_a_build_without_heads_and_without_a_default_runs_plain() -> None:
    assert outcome("mtp", HEAD, BARE) == ("none", "binary_no_mtp", ["spec_default_unsupported"])


def test_a_head_is_not_risked_on_a_build_that_nobody_could_ask() -> None:
    assert outcome("mtp", HEAD, UNKNOWN) == ("default", None, ["probe_inconclusive"])
    assert decided("mtp", HEAD, replace(UNKNOWN, mtp_token="draft-mtp")).resolved == "draft-mtp"


def test_a_build_without_n_grams_chains_nothing() -> None:
    assert outcome("mtp+ngram", HEAD, WITHOUT_NGRAM) == ("draft-mtp", None, ["ngram_knobs_missing"])


@pytest.mark.parametrize("mode", ["auto", "mtp", "mtp+ngram", "draft"])
def test_why_there_is_no_drafter_is_told_with_it(mode: str) -> None:
    other = Reason("companion_not_fetched", "The hub is down.")
    why = Reason("drafter_unfit", "Its vocabulary is another one.", "Name its sister.")
    decision = decided(mode, replace(GEMMA, drafter_reasons=(other, why)))
    # Once: neither as a note of its own, nor with another remedy.
    assert told(decision) == ("drafter_not_found", ["companion_not_fetched"])
    assert decision.reason is not None
    assert "Its vocabulary is another one." in decision.reason.message
    assert decision.reason.remedy == "Name its sister."


@pytest.mark.parametrize(
    ("mode", "caps", "said"),
    [
        ("mtp", NEW, "The engine's own default (--spec-default) drafts instead."),
        ("mtp+ngram", NEW, "N-grams draft instead."),
        ("mtp+ngram", BARE, "Nothing drafts."),
    ],
)
def test_a_mode_without_a_head_says_what_drafts_instead(mode: str, caps: Capabilities, said: str) -> None:
    (note, *_) = decided(mode, PLAIN, caps).notes
    assert note.message.endswith(said)


def test_modes_that_use_no_drafter_do_not_tell_of_it() -> None:
    why = Reason("drafter_unfit", "Its vocabulary is another one.")
    assert told(decided("ngram", replace(GEMMA, drafter_reasons=(why,)))) == (None, [])


@pytest.mark.parametrize("mode", ["auto", "mtp", "ngram", "mtp+ngram", "ngram-simple", "draft"])
def test_every_reason_is_a_sentence_with_a_remedy(mode: str) -> None:
    builds = (BARE, UNKNOWN, WITHOUT_MTP, WITHOUT_NGRAM)
    models = (NO_FACTS, HEAD, GEMMA, LATENT, SMALL)
    decisions = [decided(mode, facts, caps) for facts in models for caps in builds]
    for reason in (reason for one in decisions for reason in (one.reason, *one.notes) if reason):
        assert reason.message.endswith("."), reason
        assert reason.remedy.endswith("."), reason


# A drafter of the user's that nothing uses

OWN_DRAFTERS = [("-md", "/m/own.gguf"), ("--spec-draft-hf", "o/r")]


@pytest.mark.parametrize("args", OWN_DRAFTERS, ids=["file", "hub"])
@pytest.mark.parametrize(
    ("mode", "facts", "resolved"),
    [
        pytest.param("off", PLAIN, "none", id="off"),
        pytest.param("ngram", PLAIN, "ngram-mod", id="n-grams"),
        pytest.param("auto", PLAIN, "default", id="default"),
    ],
)
def test_a_drafter_that_no_type_uses_is_told(
    mode: str, facts: SpecFacts, resolved: str, args: tuple[str, ...]
) -> None:
    decision = decided(mode, facts, args=args)
    assert (decision.resolved, told(decision)) == (resolved, (None, ["drafter_unused"]))
    assert (decision.notes[0].severity, args[1] in decision.notes[0].message) == ("warning", True)


@pytest.mark.parametrize("args", OWN_DRAFTERS, ids=["file", "hub"])
def test_a_drafter_that_is_used_or_taken_off_the_line_is_not(args: tuple[str, ...]) -> None:
    with_drafter = replace(PLAIN, drafter=DRAFTER, drafter_kind="plain")
    assert told(decided("draft", with_drafter, args=args)) == (None, [])
    assert told(decided("mtp", HEAD, args=args)) == (None, [])
    assert told(decided("off", args=(*args, "--spec-type", "draft-simple"))) == (None, [])
    assert told(decided("off", args=args, withheld=WITHHELD)) == ("runtime_error", [])


# Settings that nothing uses

OTHER_LENGTHS = SpecPolicy(ngram_match=8, ngram_min=4, ngram_max=16)


@pytest.mark.parametrize(
    ("mode", "facts", "is_told"),
    [
        ("ngram", PLAIN, False),
        ("mtp+ngram", HEAD, False),
        ("auto", HEAD, True),
        ("auto", PLAIN, True),
        ("ngram-simple", PLAIN, True),
        ("mtp", PLAIN, True),
        ("mtp", HEAD, True),
        ("off", PLAIN, False),
        ("draft", PLAIN, False),
    ],
)
def test_lengths_of_n_grams_that_nothing_uses_are_told(mode: str, facts: SpecFacts, is_told: bool) -> None:
    inputs = SpecInputs(replace(OTHER_LENGTHS, mode=mode), facts, NEW, is_accelerated=True)
    decision = decide_speculation(inputs)
    told = [note for note in decision.notes if note.code == "ngram_settings_unused"]
    assert bool(told) is is_told
    assert all("match 8, min 4, max 16" in note.message for note in told)
    assert all(f"comes to {decision.resolved}," in note.message for note in told)


def test_the_usual_lengths_ask_for_nothing() -> None:
    decision = decide_speculation(SpecInputs(SpecPolicy("auto"), PLAIN, NEW))
    assert decision.notes == ()


@pytest.mark.parametrize("mode", ["draft", "eagle3", "dflash"])
def test_a_drafter_that_nobody_named_is_told_as_a_key_that_is_missing(mode: str) -> None:
    reason = decide_speculation(SpecInputs(SpecPolicy(mode), PLAIN, NEW)).reason
    assert reason is not None
    assert reason.code == "drafter_not_found"
    assert "its [speculation.NAME] table names no `draft`." in reason.message
    assert "network" not in reason.remedy
