"""What the page of a model says of its drafting."""

from __future__ import annotations

from dataclasses import replace

from framework.dashboard.pages.compare import CompareRow, compare_table
from framework.dashboard.pages.model import sections_of
from framework.dashboard.pages.speculation import card_url
from framework.values.instance import ModelView
from framework.values.request import ModelSource, SpecPolicy
from tests.dashboard import samples, spec_samples
from tests.dashboard.spec_samples import INACTIVE, UNPROFITABLE, measured, model


def compared(view: ModelView, label: str) -> CompareRow:
    table = compare_table("t", view.request, view.instances[0])
    return next(row for row in table.rows if row.label == label)


def test_the_table_of_a_model_marks_drafting_that_is_not_as_wanted() -> None:
    found = compared(spec_samples.inactive(), "Speculation")
    assert found == CompareRow("Speculation", "draft", "draft-simple", "none", differs=True)


def test_the_table_of_a_model_has_depth_and_drafter_where_they_count() -> None:
    view = spec_samples.inactive()
    assert compared(view, "Draft depth") == CompareRow(
        "Draft depth", "4 tokens", "4 tokens, as the policy says", "–"
    )
    assert compared(view, "Drafter") == CompareRow("Drafter", "hf:owner/small:Q4_K_M", "owner/small", "–")
    plain = samples.model()
    labels = [row.label for row in compare_table("t", plain.request, plain.instances[0]).rows]
    assert "Drafter" not in labels


def test_an_adaptive_depth_is_asked_for_by_that_word() -> None:
    policy = SpecPolicy("mtp", is_adaptive=True, drafter=ModelSource(repo="a/b"))
    assert compared(model(policy=policy), "Draft depth").asked == "adaptive"


def test_the_page_of_a_model_leads_to_its_details() -> None:
    view = model()
    assert compare_table("t", view.request, None).speculation_url == card_url("large")


def test_the_reasons_of_a_model_hold_those_of_its_drafting() -> None:
    (section,) = sections_of(spec_samples.inactive())
    assert INACTIVE in section.reasons.reasons


def test_the_verdict_of_the_watch_stands_where_drafting_runs() -> None:
    (losing,) = sections_of(spec_samples.losing())
    assert UNPROFITABLE in losing.reasons.reasons
    stays = model(running="none", known=measured(verdict=replace(UNPROFITABLE, message="Of before.")))
    (spared,) = sections_of(stays)
    assert [one.message for one in spared.reasons.reasons if one.code == UNPROFITABLE.code] == []
