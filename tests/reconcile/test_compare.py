"""What a changed field does to what runs (07 §3, vectors of §15.2-15.4)."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from framework.engines.discovery import describe_binary
from framework.reconcile.compare import compare_requests, request_digest, strongest_effect
from framework.values.engine import Capabilities, EngineRef
from framework.values.instance import InstanceView, State
from framework.values.plan import LaunchPlan, SpecDecision
from framework.values.reason import Reason
from framework.values.request import (
    LiveSettings,
    ModelRequest,
    ModelSource,
    PoolLimits,
    RestartPolicy,
    SpecPolicy,
)
from framework.values.speculation import NO_FACTS, SpecFacts, SpecInputs

BASE = ModelRequest(id="m", source=ModelSource(path=Path("/models/a.gguf")))
CAPS = Capabilities(
    conclusive=True,
    flags=frozenset({"--spec-default"}),
    spec_types=("none", "ngram-mod"),
    ngram_flavour="new",
)


@pytest.fixture
def running(tmp_path: Path) -> InstanceView:
    entry = tmp_path / "llama-server"
    entry.write_text("#!/bin/sh\n")
    plan = LaunchPlan(
        request=BASE,
        replica=0,
        main_gguf=Path("/models/a.gguf"),
        file_bytes=1,
        engine=describe_binary(entry, "manifest"),
        caps=CAPS,
        spec=SpecDecision("auto", "default", ("--spec-default",)),
        sections=(),
        env={},
        context=42240,
        slots=1,
        unified=False,
        cache_types=(None, None),
        fingerprint="f",
        spec_inputs=SpecInputs(SpecPolicy(), NO_FACTS, CAPS),
    )
    return InstanceView(
        instance="m.0@1",
        model="m",
        replica=0,
        generation=1,
        state=State.READY,
        since=datetime(2026, 1, 1, tzinfo=UTC),
        restarts=0,
        last_error=None,
        progress=None,
        pid=1,
        port=1,
        request=BASE,
        plan=plan,
        result=None,
        last_exit=None,
        inflight=0,
    )


def live(**values: Any) -> ModelRequest:
    return replace(BASE, live=replace(BASE.live, **values))


@pytest.mark.parametrize(
    ("old", "new", "effect", "field"),
    [
        pytest.param(BASE, replace(BASE, n_ctx=42240), "restart", "context", id="auto-context-to-explicit"),
        pytest.param(replace(BASE, slots=4), replace(BASE, slots=2), "restart", "slots", id="slots"),
        pytest.param(
            BASE, replace(BASE, cache_type=("f16", "f16")), "nothing", "kv_cache", id="absent-to-f16"
        ),
        pytest.param(
            replace(BASE, cache_type=("f16", "f16")),
            replace(BASE, cache_type=("q8_0", "q8_0")),
            "restart",
            "kv_cache",
            id="f16-to-q8_0",
        ),
        pytest.param(replace(BASE, threads=4), replace(BASE, threads=8), "restart", "threads", id="threads"),
        pytest.param(
            BASE, replace(BASE, gpu_layers=12), "nothing", "placement.gpu_layers", id="layers-in-auto"
        ),
        pytest.param(
            replace(BASE, extra_args=("--a", "1", "--b", "2")),
            replace(BASE, extra_args=("--b", "2", "--a", "1")),
            "restart",
            "engine_args",
            id="args-reordered",
        ),
        pytest.param(
            BASE, replace(BASE, ubatch=4096), "restart", "batch.physical", id="larger-physical-batch"
        ),
        pytest.param(
            replace(BASE, ubatch=4096),
            replace(BASE, ubatch=8192),
            "nothing",
            "batch.physical",
            id="physical-batch-above-the-logical",
        ),
        pytest.param(
            BASE,
            replace(BASE, spec=SpecPolicy(mode="ngram")),
            "restart",
            "speculation.mode",
            id="other-speculation-flags",
        ),
        pytest.param(
            replace(BASE, spec=SpecPolicy(mode="off")),
            replace(BASE, spec=SpecPolicy(mode="off", ngram_match=9)),
            "nothing",
            "speculation.ngram.match",
            id="knobs-count-only-while-used",
        ),
        pytest.param(
            BASE,
            replace(BASE, engine=EngineRef(name="other")),
            "nothing",
            "engines.other.name",
            id="renamed-engine",
        ),
        pytest.param(
            BASE,
            replace(BASE, engine=EngineRef(path=Path("/other"))),
            "restart",
            "engines.default.binary",
            id="other-binary",
        ),
        pytest.param(
            BASE,
            replace(BASE, pool=PoolLimits("p2", ("auto",))),
            "nothing",
            "pools.p2.name",
            id="renamed-pool",
        ),
        pytest.param(
            BASE,
            replace(BASE, pool=PoolLimits("p2", ("cpu",))),
            "restart",
            "pools.p2.name",
            id="devices-lost",
        ),
        pytest.param(BASE, live(slot_save_max_bytes=0), "live", "slot_state.max", id="saved-slots-limited"),
        pytest.param(BASE, live(aliases=("a",)), "live", "aliases", id="aliases"),
        pytest.param(BASE, live(drain_timeout_s=1.0), "live", "timeout.drain", id="time-out"),
        pytest.param(
            BASE, live(request_defaults={"top_k": 3}), "live", "request.defaults.top_k", id="defaults"
        ),
        pytest.param(
            BASE,
            live(restart=RestartPolicy(max_crashes=1)),
            "live",
            "restart.max_crashes",
            id="restart-policy",
        ),
        pytest.param(BASE, live(load="manual"), "live", "load", id="load"),
    ],
)
def test_a_change_has_its_documented_effect(
    old: ModelRequest, new: ModelRequest, effect: str, field: str, running: InstanceView
) -> None:
    changes = compare_requests(old, new, running)
    assert (changes[0].field, strongest_effect(changes)) == (field, effect)
    assert all(change.why for change in changes)


@pytest.mark.parametrize(("flag", "effect"), [("--slot-save-path", "restart"), ("--metrics", "nothing")])
def test_saving_slots_is_switched_off_by_a_restart_where_they_were_saved(
    running: InstanceView, flag: str, effect: str
) -> None:
    assert running.plan is not None
    build = Capabilities(conclusive=True, flags=frozenset({flag}))
    changes = compare_requests(
        BASE, replace(BASE, slot_save=False), replace(running, plan=replace(running.plan, caps=build))
    )
    assert (changes[0].field, strongest_effect(changes)) == ("slot_state", effect)


def test_an_equal_request_is_no_change_whatever_runs(running: InstanceView) -> None:
    assert compare_requests(BASE, replace(BASE), running) == ()


def test_a_secret_in_the_environment_is_a_change_without_its_value(running: InstanceView) -> None:
    new = replace(
        BASE,
        env={"HF_TOKEN": "s3cret", "OMP_NUM_THREADS": "2"},
        engine=EngineRef(env={"API_KEY": "s3cret"}),
        extra_args=("--hf-token", "s3cret"),
    )
    changes = {change.field: change.new for change in compare_requests(BASE, new, running)}
    assert changes == {
        "engines.default.environment.API_KEY": "<redacted>",
        "engine_args": ("--hf-token", "<redacted>"),
        "environment.HF_TOKEN": "<redacted>",
        "environment.OMP_NUM_THREADS": "2",
    }


def test_nothing_running_means_nothing_to_restart() -> None:
    assert strongest_effect(compare_requests(BASE, replace(BASE, n_ctx=1), None)) == "nothing"


def test_a_restart_outweighs_a_live_change(running: InstanceView) -> None:
    new = replace(live(aliases=("a",)), n_ctx=1)
    assert strongest_effect(compare_requests(BASE, new, running)) == "restart"


@pytest.mark.parametrize("field", [field.name for field in fields(ModelRequest) if field.name != "live"])
def test_every_launch_field_declares_its_manifest_name_and_effect(field: str) -> None:
    metadata = next(f.metadata for f in fields(ModelRequest) if f.name == field)
    assert metadata["manifest"]
    assert metadata["effect"] in ("restart", "nothing")


@pytest.mark.parametrize("field", [field.name for field in fields(LiveSettings)])
def test_every_live_field_is_live(field: str) -> None:
    assert next(f.metadata["effect"] for f in fields(LiveSettings) if f.name == field) == "live"


def test_the_digest_leaves_live_settings_out() -> None:
    assert request_digest(BASE) == request_digest(live(aliases=("a",)))


def test_the_digest_sees_every_launch_field() -> None:
    assert request_digest(BASE) != request_digest(replace(BASE, n_ctx=1))


# Speculation is compared by outcome, on the facts of the launch (07 §3.6)

HEAD = SpecFacts("m", "m.gguf", nextn_layers=1, params_b=8.0)
DRAFTED = SpecFacts("m", "m.gguf", drafter=Path("/models/small.gguf"), drafter_kind="plain")
MTP_CAPS = replace(
    CAPS,
    spec_types=("none", "draft-simple", "draft-mtp", "ngram-mod"),
    mtp_token="draft-mtp",
    depth_flag="--spec-draft-n-max",
    drafter_flag="--model-draft",
)


LOCAL = ModelSource(path=Path("/models/a.gguf"))
HUB = ModelSource(repo="org/gemma-4-12b-GGUF", variant="Q4_K_M")


def effect_of(
    running: InstanceView,
    facts: SpecFacts,
    old: SpecPolicy,
    new: SpecPolicy,
    source: ModelSource = LOCAL,
) -> str | None:
    """What a changed policy does to a launch that was made of these facts."""
    plan = running.plan
    assert plan is not None
    wish = SpecInputs(old, facts, MTP_CAPS, is_accelerated=True)
    before, after = (replace(BASE, source=source, spec=policy) for policy in (old, new))
    view = replace(running, request=before, plan=replace(plan, request=before, spec_inputs=wish))
    return strongest_effect(compare_requests(before, after, view))


@pytest.mark.parametrize(
    ("facts", "old", "new", "effect"),
    [
        pytest.param(HEAD, SpecPolicy("auto"), SpecPolicy("mtp"), "nothing", id="auto-was-mtp-already"),
        pytest.param(HEAD, SpecPolicy("auto"), SpecPolicy("auto", depth=2), "nothing", id="depth-as-it-was"),
        pytest.param(HEAD, SpecPolicy("auto", depth=4), SpecPolicy("auto"), "restart", id="depth-taken-back"),
        pytest.param(
            NO_FACTS, SpecPolicy("auto"), SpecPolicy("auto", depth=4), "nothing", id="depth-without-a-head"
        ),
        pytest.param(
            HEAD, SpecPolicy("auto"), SpecPolicy("auto", ngram_match=9), "nothing", id="knobs-without-ngrams"
        ),
        pytest.param(
            HEAD, SpecPolicy("mtp"), SpecPolicy("mtp+ngram"), "restart", id="n-grams-before-the-head"
        ),
        pytest.param(HEAD, SpecPolicy("auto"), SpecPolicy("off"), "restart", id="off"),
        pytest.param(
            HEAD,
            SpecPolicy("auto"),
            SpecPolicy("auto", is_adaptive=True, controller="fringe"),
            "nothing",
            id="what-only-the-native-engine-knows",
        ),
        pytest.param(
            DRAFTED,
            SpecPolicy("draft", drafter=ModelSource(path=Path("/models/small.gguf"))),
            SpecPolicy("draft", drafter=ModelSource(path=Path("/models/other.gguf"))),
            "restart",
            id="another-drafter",
        ),
        pytest.param(
            DRAFTED,
            SpecPolicy("draft", drafter=ModelSource(repo="o/r", file="small.gguf")),
            SpecPolicy("draft", drafter=ModelSource(path=Path("/models/small.gguf"))),
            "nothing",
            id="the-same-drafter-by-its-path",
        ),
        pytest.param(
            DRAFTED,
            SpecPolicy("auto", drafter=ModelSource(path=Path("/models/small.gguf"))),
            SpecPolicy("auto"),
            "restart",
            id="drafter-taken-back",
        ),
        pytest.param(
            NO_FACTS,
            SpecPolicy("draft"),
            SpecPolicy("draft", drafter=ModelSource(repo="o/r", variant="Q4_0")),
            "restart",
            id="a-drafter-at-last",
        ),
    ],
)
def test_policies_are_compared_by_what_they_come_to(
    facts: SpecFacts, old: SpecPolicy, new: SpecPolicy, effect: str, running: InstanceView
) -> None:
    assert effect_of(running, facts, old, new) == effect


GEMMA = SpecFacts("org/gemma-4-12b-GGUF", "m.gguf", params_b=12.0)
OTHERS = SpecFacts("m", "m.gguf", drafter=Path("/cache/other.gguf"), drafter_kind="plain")


@pytest.mark.parametrize(
    ("facts", "source", "old", "new", "effect"),
    [
        pytest.param(GEMMA, HUB, "ngram", "mtp", "restart", id="never-looked-for"),
        pytest.param(GEMMA, HUB, "ngram", "auto", "restart", id="auto-looks-too"),
        pytest.param(GEMMA, HUB, "auto", "mtp", "nothing", id="looked-for-and-not-there"),
        pytest.param(GEMMA, HUB, "mtp", "ngram", "nothing", id="not-there-and-not-wanted"),
        pytest.param(GEMMA, LOCAL, "ngram", "mtp", "nothing", id="nobody-looks-beside-files"),
        pytest.param(OTHERS, HUB, "auto", "draft", "restart", id="that-mode-looks-in-no-repository"),
    ],
)
def test_a_drafter_that_nobody_looked_for_may_be_there(
    facts: SpecFacts, source: ModelSource, old: str, new: str, effect: str, running: InstanceView
) -> None:
    assert effect_of(running, facts, SpecPolicy(old), SpecPolicy(new), source) == effect


def test_what_was_withheld_is_no_difference(running: InstanceView) -> None:
    plan = running.plan
    assert plan is not None
    demoted = replace(plan, spec=SpecDecision("auto", "none", reason=Reason("runtime_error", "It crashed.")))
    changes = compare_requests(
        BASE, replace(BASE, spec=SpecPolicy("auto", depth=5)), replace(running, plan=demoted)
    )
    assert strongest_effect(changes) == "nothing"


@pytest.mark.parametrize(("mode", "effect"), [("mtp", "restart"), ("auto", "nothing")])
def test_a_mode_that_drafts_at_any_price_ends_giving_way_to_layers(
    mode: str, effect: str, running: InstanceView
) -> None:
    plan = running.plan
    assert plan is not None
    displaced = SpecDecision("auto", "none", reason=Reason("draft_displaces_layers", "No room."))
    plan = replace(
        plan, spec=displaced, spec_inputs=SpecInputs(SpecPolicy(), HEAD, MTP_CAPS, is_accelerated=True)
    )
    after = replace(BASE, spec=SpecPolicy(mode, ngram_match=9))
    assert strongest_effect(compare_requests(BASE, after, replace(running, plan=plan))) == effect
