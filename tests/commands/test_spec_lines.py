"""What `paddock status` and `paddock plan` say of speculation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.api.shapes import instance_plan_json, model_json
from framework.commands import plan, status
from framework.commands.spec_lines import decision_text, print_speculation
from framework.values.instance import InstanceView, ModelView, State
from framework.values.plan import LaunchResult, SpecDecision
from framework.values.reason import Reason
from framework.values.spec_yield import SpecTotals, SpecYield, SpeedAt
from tests.api import samples

NO_DRAFTER = Reason("drafter_not_found", "There is no drafter.", "Name one.", "warning")
SLOWER = Reason("speculation_unprofitable", "Drafting is slower.", "Nothing.", "warning")
HEAD = SpecDecision("mtp", "draft-mtp", depth=3, depth_source="default", drafter="/m/deep/mtp-a.gguf")
SPEEDS = (SpeedAt("draft-mtp", 1, 30, 92.0, 0.65, 25, 50.0), SpeedAt("draft-mtp", 2, 9, 80.0, 0.6))


def instance(spec: SpecDecision, **fields: Any) -> InstanceView:
    """A process that runs as `spec` says, unless `result` says otherwise."""
    result = LaunchResult("ready", context=4096, slots=4, speculation=spec.resolved)
    return samples.instance(
        **{"plan": samples.plan(spec=spec), "result": result, "last_error": None, **fields}
    )


def drafting(**fields: Any) -> ModelView:
    """A model whose drafting was measured."""
    totals = SpecTotals(30, 9000, 4000, 2600)
    view = samples.model("chat", instance(HEAD, speculation=totals, **fields))
    return replace(view, spec_yield=SpecYield(SPEEDS, needed_requests=20))


def lines(capsys: pytest.CaptureFixture[str], *views: ModelView) -> list[list[str]]:
    print_speculation([model_json(view) for view in views])
    return [line.split() for line in capsys.readouterr().out.splitlines() if line]


def test_a_line_has_what_was_asked_resolved_and_runs_and_what_it_brings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heading, line = lines(capsys, drafting())
    assert heading[:4] == ["MODEL", "ASKED", "RESOLVED", "RUNNING"]
    assert line == [
        "chat", "mtp", "draft-mtp", "draft-mtp", "3", "mtp-a.gguf", "4,000", "65", "%", "1.84x",
    ]  # fmt: skip


def test_what_runs_as_planned_and_drafted_nothing_yet_needs_no_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = samples.model("chat", instance(SpecDecision("ngram", "ngram-mod")))
    assert lines(capsys, plain, samples.model("idle", state=State.STOPPED)) == []


def test_a_process_that_does_not_draft_as_planned_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    ended = LaunchResult("ready", speculation="none")
    _, line = lines(capsys, samples.model("chat", instance(SpecDecision("ngram", "ngram-mod"), result=ended)))
    assert line[:4] == ["chat", "ngram", "ngram-mod", "none"]


def test_depth_and_drafter_of_what_does_not_run_are_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    _, line = lines(capsys, drafting(result=LaunchResult("ready", speculation="none")))
    assert line[:6] == ["chat", "mtp", "draft-mtp", "none", "-", "-"]


def test_depth_and_drafter_stand_there_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    _, line = lines(capsys, drafting(state=State.STARTING, result=None))
    assert line[:6] == ["chat", "mtp", "draft-mtp", "-", "3", "mtp-a.gguf"]


NO_HEAD = Reason("model_not_mtp", "The model has no head. N-grams draft instead.", "Use mode auto.")


@pytest.mark.parametrize(
    ("spec", "is_worth_it"),
    [
        pytest.param(SpecDecision("mtp", "default"), True, id="another kind"),
        pytest.param(SpecDecision("mtp+ngram", "draft-mtp"), True, id="no chain"),
        pytest.param(SpecDecision("mtp+ngram", "draft-mtp", is_chained=True), False, id="chain"),
        pytest.param(SpecDecision("ngram", "none"), True, id="nothing"),
        pytest.param(SpecDecision("auto", "default"), False, id="auto"),
        pytest.param(SpecDecision("off", "none"), False, id="off"),
    ],
)
def test_what_did_not_come_to_what_was_asked_has_a_line(
    capsys: pytest.CaptureFixture[str], spec: SpecDecision, is_worth_it: bool
) -> None:
    assert bool(lines(capsys, samples.model("chat", instance(spec)))) is is_worth_it


def test_a_note_is_told_where_another_thing_drafts_than_was_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for asked in ("mtp", "auto"):
        view = samples.model("chat", instance(SpecDecision(asked, "default", notes=(NO_HEAD,))))
        status.print_reasons(model_json(view))
        assert ("N-grams draft instead." in capsys.readouterr().out) is (asked == "mtp")


def test_a_drafter_of_ones_own_arguments_is_shown_while_it_drafts(capsys: pytest.CaptureFixture[str]) -> None:
    spec = SpecDecision(None, "user", drafter="/m/d.gguf")
    ended = LaunchResult("ready", speculation="draft-simple")
    _, line = lines(capsys, samples.model("chat", instance(spec, result=ended)))
    assert line[:6] == ["chat", "engine_args", "user", "draft-simple", "-", "d.gguf"]


def test_ones_own_arguments_are_named_as_who_asked(capsys: pytest.CaptureFixture[str]) -> None:
    ended = LaunchResult("ready", speculation="ngram-cache")
    _, line = lines(capsys, samples.model("chat", instance(SpecDecision(None, "user"), result=ended)))
    assert line[:4] == ["chat", "engine_args", "user", "ngram-cache"]


def test_a_stopped_model_says_nothing_of_its_last_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, drafting(state=State.STOPPED)) == []


def test_status_gives_the_reason_of_the_plan_and_the_verdict_of_the_watch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = replace(HEAD, reason=NO_DRAFTER)
    view = replace(samples.model("chat", instance(spec)), spec_yield=SpecYield(SPEEDS, SLOWER, 20))
    status.print_reasons(model_json(view))
    out = capsys.readouterr().out
    assert "chat: There is no drafter. [drafter_not_found]\n  → Name one." in out
    assert "chat: Drafting is slower." in out


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (SpecDecision("off", "none"), "none"),
        (HEAD, "draft-mtp, depth 3 by default, drafter mtp-a.gguf"),
        (
            SpecDecision("mtp+ngram", "draft-mtp", is_chained=True, depth=4, depth_source="policy"),
            "draft-mtp behind n-grams, depth 4 by policy",
        ),
        (
            SpecDecision("draft", "draft-simple", drafter="owner/repo:Q4_K_M"),
            "draft-simple, drafter owner/repo:Q4_K_M",
        ),
    ],
)
def test_a_decision_is_told_in_one_line(spec: SpecDecision, said: str) -> None:
    assert decision_text(instance_plan_json(samples.plan(spec=spec))["speculation"]) == said


def test_a_plan_prints_the_decision_and_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    plan.print_plan(instance_plan_json(samples.plan(spec=replace(HEAD, reason=NO_DRAFTER))))
    out = capsys.readouterr().out
    assert "draft-mtp, depth 3 by default, drafter mtp-a.gguf" in out
    assert "warning: There is no drafter." in out


def test_a_plan_by_ones_own_arguments_says_who_asked(capsys: pytest.CaptureFixture[str]) -> None:
    plan.print_plan(instance_plan_json(samples.plan(spec=SpecDecision(None, "user"))))
    line = next(line for line in capsys.readouterr().out.splitlines() if "speculation" in line)
    assert line.split() == ["speculation", "engine_args", "user"]
