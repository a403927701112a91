"""What answers, slots, props and metrics tell of drafting and of the loop guard (11 §21, 12 §6, §15-18)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from framework.nativeserver.metric import lines
from framework.nativeserver.metrics_page import page
from framework.nativeserver.speculation_metrics import METRICS
from framework.nativeserver.speculation_shape import loop_guard_json, speculation_json
from framework.nativeserver.task_shapes import short_params
from framework.nativeserver.transport import JsonResponse
from framework.nativeserver.usage import usage_json
from tests.nativeserver import drafting
from tests.nativeserver.generation_world import final, generation_params, new_task
from tests.nativeserver.small_world import slot_view, small_world, totals

# 12 §15.8, less what this build has not got.
EXAMPLE: dict[str, Any] = {
    "types": ["ngram-mod", "draft-simple"],
    "active_type": "draft-simple",
    "fallback_reason": "no-nextn-layers",
    "idle_reason": "",
    "adaptive": True,
    "controller": "profit",
    "depth": 3,
    "depth_base": 3,
    "depth_state": "on",
    "fringe": 0.58,
    "score": 168.5,
    "gain": 0.685,
    "drafts": 32,
    "drafted": 96,
    "accepted": 61,
    "acceptance": 61 / 96,
    "drafted_by_position": [32, 32, 32],
    "accepted_by_position": [26, 20, 15],
    "verify_mode": "rejection",
    "verify_counts": {"exact": 0, "prob_accept": 61, "reject": 17, "no_prob": 0, "bonus": 15},
    "reduced": {"path": "host", "reason": "rejection", "view_reason": "", "k": 1},
    "tree_drafts": 5,
    "tree_reason": "tree-single-path",
    "rollbacks": {"none": 15, "trim": 17, "snapshot": 0, "redecode": 0, "refill": 0},
    "suppressed": False,
}


def test_a_report_has_the_members_of_the_contract_in_order() -> None:
    shape = speculation_json(drafting.drafted_report())
    assert shape == EXAMPLE
    assert list(shape) == list(EXAMPLE)
    assert speculation_json(drafting.report(), "vocab-size")["fallback_reason"] == "vocab-size"


def test_nothing_drafted_is_no_division_and_no_number_is_zero() -> None:
    report = drafting.report(score=math.nan, gain=math.inf, fringe=-math.inf)
    shape = speculation_json(report)
    assert [shape[name] for name in ("acceptance", "score", "gain", "fringe")] == [0, 0, 0, 0]
    assert b"null" not in JsonResponse(shape).body


def test_a_guard_has_the_members_of_the_contract_in_order() -> None:
    assert list(loop_guard_json(drafting.guard_report())) == [
        *("mode", "triggered", "action", "reason", "interventions", "reasoning_tokens", "visible_tokens")
    ]


def test_accepted_drafts_of_all_choices_are_used_tokens() -> None:
    finals = [final(new_task(), speculation=drafting.drafted_report(accepted=n)) for n in (3, 4)]
    assert usage_json(finals)["completion_tokens_details"]["accepted_prediction_tokens"] == 7


@pytest.mark.parametrize(
    ("configured", "wanted", "shown"),
    [
        ((), None, "none"),
        (("ngram-mod", "draft-mtp"), None, "none,ngram-mod,draft-mtp"),
        (("ngram-mod",), "none", "none"),
        (("ngram-mod", "draft-simple"), "draft-simple", "none,draft-simple"),
    ],
)
def test_settings_show_the_types_as_the_real_server_does(
    configured: tuple[str, ...], wanted: str | None, shown: str
) -> None:
    params = generation_params()
    params.speculation.type = wanted
    assert short_params(params, drafters=configured)["speculative.types"] == shown


async def test_props_tell_what_runs_and_what_requests_start_from() -> None:
    settings = {"types": ["draft-mtp", "ngram-mod"], "n_max": 7, "depth": {"raise_": 0.2}}
    engine = {"model_path": "/m.gguf", "speculation": settings}
    async with small_world(engine=engine, speculation_types=("draft-mtp", "ngram-mod")) as world:
        world.core.speculation_ = drafting.speculation("ngram-mod", draft_mtp="type-not-built")
        props = (await world.get("/props")).json()
        told = props["speculation"]
        assert list(told) == [
            *("requested_types", "types", "dropped", "fallback_reason", "capabilities", "verify_mode"),
            *("reduced_path", "reduced_reason", "tree", "adaptive", "controller", "defaults"),
        ]
        assert (told["requested_types"], told["types"]) == (["draft-mtp", "ngram-mod"], ["ngram-mod"])
        assert told["dropped"] == [{"type": "draft-mtp", "reason": "type-not-built"}]
        assert (told["verify_mode"], told["adaptive"], told["controller"]) == ("rejection", True, "profit")
        assert (told["defaults"]["n_max"], told["defaults"]["raise"]) == (7, 0.2)
        assert told["defaults"]["draft_temperature"] == "auto"
        assert told["capabilities"] == {
            "trim": True,
            "backend-sampler": True,
            "backend-multi-output": "backend-one-output",
        }
        assert (told["reduced_path"], told["reduced_reason"]) == ("host", "")
        assert (told["defaults"]["reduced"], told["defaults"]["reduced_drafters"]) == ("auto", "all")
        assert told["tree"] == {"enabled": False, "reason": "none-requested"}
        assert props["default_generation_settings"]["params"]["speculative.types"] == "none"
        world.core.state_ = "sleeping"
        assert (await world.get("/props")).json()["speculation"] == told


async def test_props_of_a_server_that_drafts_nothing_say_why() -> None:
    async with small_world() as world:
        world.core.facts_.removal, world.core.facts_.backend_sampler = "full", False
        world.core.speculation_.reduced_reason = "backend-sampler-refused"
        told = (await world.get("/props")).json()["speculation"]
        assert (told["types"], told["fallback_reason"]) == ([], "none-requested")
        assert (told["verify_mode"], told["adaptive"], told["controller"]) == ("", False, "")
        assert told["capabilities"]["trim"] == "no-rollback"
        assert told["capabilities"]["backend-sampler"] == told["reduced_reason"] == "backend-sampler-refused"


@pytest.mark.parametrize(
    ("removal", "capabilities"),
    [
        ("recurrent", {"trim": True, "rs-snapshots": True}),
        ("full", {"trim": "no-rollback", "rs-snapshots": "redecode"}),
    ],
)
async def test_props_tell_how_a_running_state_goes_back(removal: str, capabilities: dict[str, Any]) -> None:
    engine = {"model_path": "/m.gguf", "speculation": {"rs_snapshots": 4}}
    async with small_world(engine=engine) as world:
        world.core.facts_.removal, world.core.facts_.is_hybrid = removal, True
        told = (await world.get("/props")).json()["speculation"]
        assert told["capabilities"].items() >= capabilities.items()
        assert told["defaults"]["rs_snapshots"] == 4


@pytest.mark.parametrize("kind", ["embeddings", "reranking"])
async def test_a_server_of_embeddings_says_everywhere_why_nothing_is_drafted(kind: str) -> None:
    told = {"embeddings": True, kind: True, "metrics": True}
    async with small_world(speculation_types=("ngram-mod", "draft-simple"), **told) as world:
        shape = (await world.get("/props")).json()["speculation"]
        assert (shape["requested_types"], shape["types"]) == (["ngram-mod", "draft-simple"], [])
        assert shape["fallback_reason"] == "embeddings"
        assert {one["reason"] for one in shape["dropped"]} == {"embeddings"}
        slots = (await world.get("/slots")).json()
        assert {slot["speculation"]["fallback_reason"] for slot in slots} == {"embeddings"}
        metrics = (await world.get("/metrics")).text
        assert 'spec_fallback{type="ngram-mod",reason="embeddings"} 1' in metrics


async def shown_metrics(**fields: Any) -> list[str]:
    async with small_world(metrics=True) as world:
        world.core.totals_ = totals(speculation=drafting.speculation_totals(**fields))
        world.core.slots_ = [slot_view(0), slot_view(1, speculation=drafting.drafted_report(gain=math.nan))]
        return page(world.core.snapshot(), drafting.speculation("ngram-mod", draft_x='a"\n')).splitlines()


async def test_metrics_count_drafts_and_guards() -> None:
    found = await shown_metrics(
        drafts=32,
        drafted=10**12,
        accepted=61,
        drafted_by_position=[32, 30],
        accepted_by_position=[26, 0],
        verify_counts=drafting.verify_counts(exact=3, bonus=2),
        reduced={"greedy": 20, "rejection": 12},
        tree_drafts=14,
        rollbacks=drafting.rollbacks(trim=4),
        phase_ms=[1500.0, 0.0, math.inf, 1.0],
        controller_changes=[[1, 0, 0, 0], [0, 0, 5, 0]],
        baseline_probes=6,
        suppressions=7,
        loop_guard_actions=[[8, 0], [0, 9]],
    )
    values = {line.removeprefix("llamacpp:") for line in found if "spec_" in line or "loop_guard" in line}
    assert {line for line in values if not line.startswith("#")} == {
        "spec_decode_num_draft_tokens_total 1000000000000",
        "spec_decode_num_accepted_tokens_total 61",
        "spec_decode_num_drafts_total 32",
        'spec_decode_num_accepted_tokens_per_pos_total{position="0"} 26',
        'spec_decode_num_draft_tokens_per_pos_total{position="0"} 32',
        'spec_decode_num_draft_tokens_per_pos_total{position="1"} 30',
        'spec_verify_outcomes_total{outcome="exact"} 3',
        'spec_verify_outcomes_total{outcome="bonus"} 2',
        'spec_reduced_total{reason="greedy"} 20',
        'spec_reduced_total{reason="rejection"} 12',
        "spec_tree_drafts_total 14",
        'spec_rollbacks_total{kind="trim"} 4',
        'spec_phase_seconds_total{phase="draft"} 1.5',
        'spec_phase_seconds_total{phase="accept"} 0',
        'spec_phase_seconds_total{phase="other"} 0.001',
        'spec_controller_changes_total{controller="profit",direction="up"} 1',
        'spec_controller_changes_total{controller="fringe",direction="off"} 5',
        "spec_baseline_probes_total 6",
        'spec_depth{slot="1"} 3',
        'spec_gain{slot="1"} 0',
        "spec_suppressions_total 7",
        'loop_guard_interventions_total{action="stop",region="visible"} 8',
        'loop_guard_interventions_total{action="force-close",region="reasoning"} 9',
        r'spec_fallback{type="draft-x",reason="a\"\n"} 1',
    }


async def test_counters_are_there_with_zero_when_nothing_is_drafted() -> None:
    async with small_world() as world:
        text = "".join(line for metric in METRICS for line in lines(metric, world.core.snapshot()))
    zeros = [line for line in text.splitlines() if not line.startswith("#")]
    assert zeros == [
        f"llamacpp:spec_{name}_total 0"
        for name in (
            *("decode_num_draft_tokens", "decode_num_accepted_tokens", "decode_num_drafts", "tree_drafts"),
            *("baseline_probes", "suppressions"),
        )
    ]
