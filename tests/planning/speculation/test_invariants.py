"""What holds for every decision, whatever it is about (05 §6.5, §13.20)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from framework.planning.line_settings import read_line
from framework.planning.speculation.decide import decide_speculation
from framework.values.engine import Capabilities
from framework.values.reason import Reason
from framework.values.request import SpecPolicy
from framework.values.speculation import SpecFacts, SpecInputs

MODES = ("auto", "off", "mtp", "ngram", "mtp+ngram", "ngram-simple", "draft", "eagle3", "dflash")
RESOLVED = {
    *("draft-mtp", "draft-simple", "draft-eagle3", "draft-dflash", "ngram-mod", "ngram-simple"),
    *("default", "none", "user"),
}
TYPES = (
    "none",
    "draft",
    "eagle3",
    "mtp",
    "draft-simple",
    "draft-mtp",
    "draft-eagle3",
    "ngram-mod",
    "ngram-simple",
)
NAMES = ("", "org/Model-8B", "org/gemma-4-12b", "x-mtp.gguf")
MTP_WORDS = {"mtp", "draft-mtp"}

policies = st.builds(
    SpecPolicy,
    mode=st.sampled_from(MODES),
    depth=st.none() | st.integers(1, 64),
    is_adaptive=st.booleans(),
    ngram_match=st.integers(1, 1024),
    allow_mla=st.booleans(),
)
models = st.builds(
    SpecFacts,
    model_id=st.sampled_from(NAMES),
    file_name=st.sampled_from(NAMES),
    header_ok=st.booleans(),
    nextn_layers=st.integers(0, 2),
    kv_lora_rank=st.none() | st.just(512),
    params_b=st.none() | st.floats(0.1, 1000),
    drafter=st.none() | st.sampled_from([Path("/m/mtp-a.gguf"), Path("/m/--spec-type")]),
    drafter_kind=st.sampled_from(["mtp", "eagle3", "dflash", "plain", None]),
)
builds = st.builds(
    Capabilities,
    conclusive=st.booleans(),
    flags=st.frozensets(st.sampled_from(["--spec-default", "--spec-type", "--spec-dm-adaptive"])),
    spec_types=st.lists(st.sampled_from(TYPES), unique=True).map(tuple),
    mtp_token=st.sampled_from([None, "mtp", "draft-mtp"]),
    ngram_flavour=st.sampled_from([None, "new", "legacy"]),
    depth_flag=st.sampled_from([None, "--spec-draft-n-max", "--draft-max"]),
    drafter_flag=st.sampled_from([None, "--model-draft", "--spec-draft-model"]),
)
inputs = st.builds(
    SpecInputs,
    policies,
    models,
    builds,
    st.sampled_from([(), ("--spec-type", "draft-mtp"), ("--spec-default",), ("-c", "4096")]),
    st.booleans(),
    st.booleans(),
    st.none() | st.just(Reason("runtime_error", "It crashed.")),
)


@given(inputs)
def test_a_block_says_at_most_once_what_drafts(asked: SpecInputs) -> None:
    block = decide_speculation(asked).block
    assert sum(block.count(flag) for flag in ("--spec-type", "--spec-default")) <= 1


@given(inputs)
def test_a_drafter_is_on_the_line_only_with_its_type(asked: SpecInputs) -> None:
    decision = decide_speculation(asked)
    flags = {"--model-draft", "--spec-draft-model"}.intersection(decision.block)
    assert not flags or ("--spec-type" in decision.block and decision.drafter in decision.block)


@given(inputs)
def test_a_depth_is_that_of_something_that_drafts(asked: SpecInputs) -> None:
    decision = decide_speculation(asked)
    assert decision.resolved in RESOLVED
    assert (decision.depth is None) == (decision.depth_source is None)
    if decision.depth is not None:
        assert decision.resolved.startswith("draft-")
        assert str(decision.depth) in decision.block


@given(inputs)
def test_what_was_asked_stays_what_was_asked(asked: SpecInputs) -> None:
    decision = decide_speculation(asked)
    assert decision.requested == (None if decision.resolved == "user" else asked.policy.mode)


@given(inputs)
def test_the_reserve_is_that_of_what_is_on_the_line(asked: SpecInputs) -> None:
    decision = decide_speculation(asked)
    draft = read_line(decision.block, {}).draft
    assert (draft is not None) == decision.resolved.startswith("draft-")
    if draft is not None:
        words = set(decision.block[decision.block.index("--spec-type") + 1].split(","))
        assert bool(words & MTP_WORDS) == (decision.resolved == "draft-mtp")
        assert (draft.kind == "model") == (decision.drafter is not None)


@given(inputs)
def test_nothing_is_on_the_line_where_drafting_is_withheld_or_off(asked: SpecInputs) -> None:
    decision = decide_speculation(asked)
    if asked.withheld is not None:
        assert decision.reason == asked.withheld
    if asked.withheld is not None or asked.policy.mode == "off":
        assert not {"--spec-type", "--spec-default", "--model-draft"}.intersection(decision.block)


@given(inputs)
def test_a_build_is_never_given_a_type_that_it_is_known_to_lack(asked: SpecInputs) -> None:
    block = decide_speculation(asked).block
    if "--spec-type" in block and asked.caps.conclusive:
        words = set(block[block.index("--spec-type") + 1].split(","))
        known = {*asked.caps.spec_types, asked.caps.mtp_token}
        flavoured = {"ngram-mod"} if asked.caps.ngram_flavour else set()
        assert words <= known | flavoured


@given(inputs, models)
def test_without_a_use_for_a_drafter_the_model_does_not_matter(asked: SpecInputs, other: SpecFacts) -> None:
    policy = replace(asked.policy, mode="ngram")
    one, another = replace(asked, policy=policy), replace(asked, policy=policy, facts=other)
    assert decide_speculation(one) == decide_speculation(another)


@given(inputs, models, policies, builds)
def test_who_drives_speculation_himself_is_asked_for_nothing_else(
    asked: SpecInputs, facts: SpecFacts, policy: SpecPolicy, caps: Capabilities
) -> None:
    own = replace(asked, args=("--spec-type", "draft-mtp"))
    assert decide_speculation(own) == decide_speculation(replace(own, facts=facts, policy=policy, caps=caps))
