"""What the Speculation page says of drafting: asked, why not, worth it or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.dashboard.pages.spec_speeds import Standing, speed_section
from framework.dashboard.pages.speculation import (
    SpecCard,
    SpecInstance,
    SpecRow,
    spec_sections,
    speculation_fragments,
)
from framework.dashboard.updates import Sent, Whole
from framework.values.instance import ModelView, State
from framework.values.plan import SpecDecision
from framework.values.reason import Reason
from framework.values.request import ModelSource, SpecPolicy
from framework.values.spec_yield import SpecTotals
from tests.dashboard import samples, spec_samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import make_system
from tests.dashboard.spec_samples import INACTIVE, NO_DRAFTER, UNPROFITABLE, measured, model, speed
from tests.dashboard.test_live import listening


def row(view: ModelView) -> SpecRow:
    (only,) = spec_sections([view]).rows
    return only


def card(view: ModelView) -> SpecCard:
    (only,) = spec_sections([view]).cards
    return only


def instance(view: ModelView) -> SpecInstance:
    (only,) = card(view).instances
    return only


def facts(view: ModelView) -> dict[str, str]:
    return dict(instance(view).facts)


def standing(view: ModelView) -> Standing:
    return speed_section("speeds", view).standing


# Asked, resolved, running


def test_asked_resolved_and_running_are_three_things() -> None:
    told = facts(spec_samples.inactive())
    assert (told["Asked"], told["Resolved"], told["Running"]) == ("draft", "draft-simple", "none")


def test_a_chain_is_told_with_what_comes_first() -> None:
    assert facts(model())["Running"] == "draft-mtp, behind n-grams"


def test_what_ones_own_arguments_ask_for_is_called_that() -> None:
    told = facts(spec_samples.by_arguments())
    assert (told["Asked"], told["Resolved"]) == ("as engine_args say", "as engine_args say")
    assert told["Running"] == "ngram-cache"
    assert card(spec_samples.by_arguments()).policy == ("engine_args decide",)


def test_a_policy_is_told_by_the_settings_that_its_mode_reads() -> None:
    drafter = ModelSource(repo="owner/small")
    assert card(model(policy=SpecPolicy("draft", depth=4, drafter=drafter))).policy == (
        "mode draft",
        "drafter hf:owner/small",
        "depth 4 tokens",
    )
    assert card(model(policy=SpecPolicy("auto", allow_mla=True))).policy == (
        "mode auto",
        "heads with latent attention too",
        "heads from 3 billion parameters on",
    )


LENGTHS = "n-grams of 24 tokens, drafts of 48 to 64"
NGRAMS = ("--spec-type", "ngram-mod", "--spec-ngram-mod-n-match", "24")


@pytest.mark.parametrize(
    ("spec", "running", "is_told"),
    [
        (SpecDecision("ngram", "ngram-mod", NGRAMS), "ngram-mod", True),
        (SpecDecision("ngram", "ngram-mod", NGRAMS), "none", False),
        (SpecDecision("ngram", "ngram-mod", NGRAMS[:2]), "ngram-mod", False),
        (SpecDecision("ngram", "default", ("--spec-default",)), "default", False),
    ],
)
def test_lengths_of_n_grams_are_told_of_processes_that_use_them(
    spec: SpecDecision, running: str, is_told: bool
) -> None:
    view = model(spec=spec, policy=SpecPolicy("ngram"), running=running)
    assert (LENGTHS in card(view).policy) is is_told


def test_asked_is_what_the_manifest_says_now() -> None:
    view = model()
    asked = replace(view.request, spec=SpecPolicy("off"))
    assert row(replace(view, request=asked)).asked == "off"


@pytest.mark.parametrize(
    ("source", "said"),
    [("policy", "3 tokens, as the policy says"), ("default", "3 tokens, by default"), (None, "3 tokens")],
)
def test_a_depth_says_where_it_comes_from(source: Any, said: str) -> None:
    spec = SpecDecision("mtp", "draft-mtp", depth=3, depth_source=source)
    assert facts(model(spec=spec))["Depth"] == said


@pytest.mark.parametrize(
    ("resolved", "drafter", "said"),
    [
        ("draft-mtp", "/models/deep/mtp-a.gguf", "mtp-a.gguf"),
        ("draft-simple", "owner/repo:Q4_K_M", "owner/repo:Q4_K_M"),
        ("draft-mtp", None, "in the model file"),
        ("ngram-mod", None, "–"),
    ],
)
def test_a_drafter_is_a_file_a_repository_or_a_head(resolved: str, drafter: str | None, said: str) -> None:
    assert facts(model(spec=SpecDecision("mtp", resolved, drafter=drafter)))["Drafter"] == said


def test_after_a_fallback_depth_and_drafter_of_the_plan_are_not_told() -> None:
    told = facts(spec_samples.inactive())
    assert (told["Depth"], told["Drafter"]) == ("–", "–")


def test_while_it_loads_what_is_planned_is_told() -> None:
    told = facts(model(state=State.STARTING))
    assert (told["Running"], told["Depth"]) == ("–", "3 tokens, by default")


def test_a_model_that_never_ran_has_a_row_and_no_details() -> None:
    sections = spec_sections([samples.model("idle", State.STOPPED)])
    assert (sections.rows[0].asked, sections.rows[0].resolved, sections.rows[0].detail) == (
        "automatic",
        "–",
        "",
    )
    assert sections.cards == ()


def test_a_stopped_model_keeps_what_was_measured() -> None:
    view = replace(samples.model("idle", State.STOPPED), spec_yield=measured(speed()))
    assert card(view).speeds.rows[0].speedup == "1.84×"
    assert standing(view).text == "Not loaded, so there is nothing to judge."


def test_each_replica_has_its_own_part() -> None:
    headings = [one.heading for one in card(spec_samples.replicated()).instances]
    assert headings == ["Replica 0, start 1", "Replica 1, start 1"]


# Reasons


def test_the_reason_comes_before_the_notes() -> None:
    assert [one.code for one in instance(spec_samples.without_drafter()).reasons] == [
        "drafter_not_found",
        "ngram_knobs_missing",
    ]


def test_what_the_process_showed_comes_before_what_the_plan_said() -> None:
    spec = SpecDecision("auto", "ngram-mod", reason=NO_DRAFTER)
    view = model(spec=spec, running="none", reason=INACTIVE)
    assert [one.code for one in instance(view).reasons] == ["speculation_inactive", "drafter_not_found"]


@pytest.mark.parametrize(
    ("view", "differs"),
    [
        pytest.param(model(), False, id="as wanted"),
        pytest.param(spec_samples.by_arguments(), False, id="own arguments"),
        pytest.param(spec_samples.without_drafter(), True, id="by plan"),
        pytest.param(spec_samples.inactive(), True, id="by process"),
    ],
)
def test_a_row_is_marked_where_a_reason_says_why_not(view: ModelView, differs: bool) -> None:
    assert row(view).differs is differs


# What it brings


def test_acceptance_is_told_overall_and_by_position() -> None:
    found = instance(model())
    assert dict(found.facts)["Accepted"] == "2,600, 65 %"
    assert [(one.number, one.accepted_share, one.label) for one in found.positions] == [
        (1, 0.87, "87 % of 1,500 drafts"),
        (2, 0.69, "69 % of 1,300 drafts"),
        (3, 0.33, "33 % of 1,200 drafts"),
    ]


def test_nothing_drafted_is_no_acceptance_of_nothing() -> None:
    assert facts(model(totals=SpecTotals(requests=3, generated=90)))["Accepted"] == "–"


@pytest.mark.parametrize("accepted", [(), (1,), (9, 9, 9)])
def test_positions_that_make_no_sense_stay_within_their_picture(accepted: tuple[int, ...]) -> None:
    totals = SpecTotals(1, 9, 9, 9, (2, 0, 3), accepted)
    assert all(0 <= one.accepted_share <= 1 for one in instance(model(totals=totals)).positions)


def test_a_list_of_positions_is_cut() -> None:
    totals = SpecTotals(1, 9, 9, 9, (2,) * 500, (1,) * 500)
    assert len(instance(model(totals=totals)).positions) == 64


def test_speeds_stand_side_by_side_and_share_one_scale() -> None:
    one, two = card(model()).speeds.rows
    assert (one.busy, one.drafting_tokens_per_s, one.plain_tokens_per_s, one.speedup) == (
        1,
        92.0,
        50.0,
        "1.84×",
    )
    assert (one.drafting_share, one.plain_share) == (1.0, 0.543)
    assert (two.busy, two.plain_tokens_per_s, two.speedup) == (2, None, "–")


def test_the_speedup_of_a_row_is_that_of_what_runs_now_with_most_answers() -> None:
    known = measured(
        speed(1, plain_requests=5),
        speed(2, plain_tokens_per_s=100.0, plain_requests=40),
        speed(3, running="ngram-mod", plain_tokens_per_s=1.0, plain_requests=99),
    )
    assert row(model(known=known)).speedup == "0.92×"


# The watch


@pytest.mark.parametrize(
    ("watch", "does", "then"),
    [
        ("switch-off", "switches drafting off where it is slower", "it is started anew without drafting"),
        ("report", "reports where drafting is slower", "nothing is changed, since yield_watch only reports"),
        ("off", "is off", "nothing is changed, since yield_watch is off"),
    ],
)
def test_the_watch_says_what_it_does(watch: str, does: str, then: str) -> None:
    section = card(spec_samples.losing(yield_watch=watch)).speeds
    assert section.watch == does
    assert then in section.standing.text
    assert section.verdict == (UNPROFITABLE,)


def test_a_model_that_asks_for_no_drafts_is_told_nothing_of_the_watch() -> None:
    asked = samples.request(spec=SpecPolicy(mode="off"))
    assert speed_section("s", samples.model(asked=asked)).watch == ""


@pytest.mark.parametrize(
    ("view", "said"),
    [
        pytest.param(model(), "Worth it: 1.84× the speed without, with 1 busy slot.", id="wins"),
        pytest.param(
            model(known=measured(speed(plain_tokens_per_s=92.0))),
            "Neither faster nor slower: 1.00× the speed without, with 1 busy slot.",
            id="even",
        ),
        pytest.param(
            model(known=measured(speed(2, plain_tokens_per_s=120.0))),
            "Slower, but not for long yet: 0.77× the speed without, with 2 busy slots.",
            id="loses",
        ),
        pytest.param(
            model(known=measured(speed(), speed(2, losing_s=130.0), speed(3, losing_s=40.0))),
            "Slower than without for 2 min, with 2 busy slots.",
            id="loses for a while",
        ),
        pytest.param(
            spec_samples.without_drafter(),
            "Too few answers to judge: 12 with drafting and 3 without, "
            "with 1 busy slot; 20 of each are needed.",
            id="few",
        ),
        pytest.param(
            model(known=measured(speed(plain_requests=0, plain_tokens_per_s=None))),
            "Too few answers to judge: 42 with drafting and 0 without, "
            "with 1 busy slot; 20 of each are needed.",
            id="no baseline",
        ),
        pytest.param(
            model(known=measured()),
            "Not measured yet: no answer of some length has come to an end.",
            id="none",
        ),
        pytest.param(spec_samples.inactive(), "Nothing drafts, so there is nothing to judge.", id="inactive"),
        pytest.param(
            spec_samples.switched_off(),
            "Switched off because it was slower; it is tried again by itself.",
            id="switched off",
        ),
    ],
)
def test_where_the_watch_stands_is_one_sentence(view: ModelView, said: str) -> None:
    assert standing(view).text == said


# Updates and the page


def changed(before: ModelView, after: ModelView) -> list[str]:
    sent = Sent()
    sent.remember(speculation_fragments(spec_sections([before])))
    found = sent.changes(speculation_fragments(spec_sections([after])))
    return [update.fragment.template for update in found if isinstance(update, Whole)]


def test_only_what_moved_is_sent() -> None:
    view = model()
    more = replace(view.instances[0], speculation=replace(spec_samples.TOTALS, requests=26))
    assert changed(view, view) == []
    assert changed(view, replace(view, instances=(more,))) == ["_spec_instance.html"]
    known = measured(speed(), speed(2, drafting_requests=43, plain_requests=0, plain_tokens_per_s=None))
    assert changed(view, replace(view, spec_yield=known)) == ["_spec_speeds.html"]
    assert changed(view, samples.model("large", State.STOPPED)) == ["_speculation.html"]


def test_an_answer_that_changes_nothing_to_see_is_not_sent() -> None:
    view = model()
    alike = replace(view.spec_yield.speeds[0], drafting_tokens_per_s=92.041)
    known = measured(alike, view.spec_yield.speeds[1])
    assert changed(view, replace(view, spec_yield=known)) == []


async def test_the_page_shows_every_model_without_script() -> None:
    async with browser(make_system(*spec_samples.all_models())) as client:
        tree = await page(client, "/speculation")
    models = tree.one("table", class_="spec-models")
    assert [th.text for th in models.all("th", scope="row")][:3] == ["large", "gemma", "pair"]
    assert "Name a drafter of the same vocabulary." in tree.text
    assert (
        tree.one("nav", aria_label="Pages").one("a", href="/speculation").attributes["aria-current"] == "page"
    )


async def test_details_are_where_the_rows_lead() -> None:
    async with browser(make_system(*spec_samples.all_models())) as client:
        tree = await page(client, "/speculation")
    for link in (a for a in tree.all("a", class_="flag") if a.attributes["href"].startswith("#")):
        tree.one("section", id=link.attributes["href"][1:])


async def test_a_new_reason_arrives_by_itself() -> None:
    view = model()
    system = make_system(view)
    async with listening(system, {"page": "speculation"}) as stream:
        reason = Reason("runtime_error", "Drafting was switched off.", "Reload it.", "warning")
        told = replace(
            view.instances[0], result=samples.result(speculation="none", speculation_reason=reason)
        )
        system.fleet.put(replace(view, instances=(told,)))
        parts = await stream.next()
    assert any("Drafting was switched off." in part.text for part in parts)


# Slots


async def test_each_slot_tells_its_depth_what_it_expects_and_why_it_drafts_nothing() -> None:
    drafting = {"depth": 3, "drafted": 40, "accepted": 30, "controller": "profit", "gain": 0.31}
    resting = {**drafting, "depth": 0, "reason": "cycle-cost", "gain": -0.04}
    slots = (samples.busy_slot(0, draft=drafting), samples.busy_slot(1, draft=resting), samples.slot(2))
    view = model()
    view = replace(view, instances=tuple(replace(one, slots=slots) for one in view.instances))
    async with browser(make_system(view)) as client:
        tree = await page(client, "/speculation")
    rows = tree.one("table", aria_label="Drafts by slot").one("tbody").all("tr")
    assert [[cell.text for cell in row.all("td")] for row in rows] == [
        ["3 tokens", "31 %", "40 tokens", "75 %", "-"],
        ["0 tokens", "-4 %", "40 tokens", "75 %", "cycle-cost"],
    ]
