"""`/metrics`: what stands in it, and that names of models cannot break its lines."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.dashboard.pages.instance_facts import reasons_of
from framework.values.instance import InstanceView, ModelView, State
from framework.values.plan import LaunchResult, SpecDecision
from framework.values.pool import WaitingView
from framework.values.reason import Failure, Reason
from framework.values.spec_yield import SpecTotals, SpecYield, SpeedAt
from tests.api import samples
from tests.api.metric_text import metrics_text
from tests.api.world import make_world

API = Path(__file__).resolve().parents[2] / "docs" / "api.md"
SLOW = Reason("speculation_unprofitable", "It is slower.", "Nothing.", "warning")
SPEED = SpeedAt("ngram-mod", 2, 25, 30.0, 0.5, 20, 20.0, 12.0)
LABEL = r'[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"'
LINE = re.compile(rf"paddock_[a-z_]+\{{{LABEL}(?:,{LABEL})*\}} [-0-9.e+]+")


def measured(*instances: InstanceView) -> ModelView:
    return replace(samples.model("chat", *instances), spec_yield=SpecYield((SPEED,), None, 20))


def test_each_reason_of_an_instance_is_a_label() -> None:
    text = metrics_text([samples.model("chat", samples.instance())])
    assert 'paddock_fallback{model="chat",replica="0",reason="context_lowered"} 1\n' in text
    assert 'paddock_fallback{model="chat",replica="0",reason="slots_ignored"} 1\n' in text


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"plan": samples.plan(spec=SpecDecision("mtp", "none", reason=SLOW)), "result": None},
            id="decided",
        ),
        pytest.param(
            {"result": LaunchResult("ready", speculation="none", speculation_reason=SLOW)}, id="at start"
        ),
        pytest.param({"last_error": SLOW}, id="failed"),
    ],
)
def test_a_reason_counts_wherever_it_was_given(changes: dict[str, object]) -> None:
    text = metrics_text([samples.model("chat", samples.instance(**changes))])
    assert 'paddock_fallback{model="chat",replica="0",reason="speculation_unprofitable"} 1\n' in text


FOUND = Reason("found_it", "It was found.", "Nothing.", "warning")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"plan": samples.plan(reasons=(FOUND,))}, id="of the plan"),
        pytest.param({"plan": samples.plan(spec=SpecDecision("auto", "none", notes=(FOUND,)))}, id="note"),
        pytest.param({"plan": samples.plan(spec=SpecDecision("auto", "none", reason=FOUND))}, id="fallback"),
        pytest.param({"result": LaunchResult("ready", degradations=(FOUND,))}, id="given up"),
        pytest.param({"result": LaunchResult("ready", speculation_reason=FOUND)}, id="does not draft"),
        pytest.param({"last_error": FOUND}, id="last error"),
        pytest.param(
            {"state": State.FAILED, "result": LaunchResult("failed", failure=Failure(FOUND))}, id="failure"
        ),
        pytest.param(
            {"state": State.BACKOFF, "result": LaunchResult("failed", degradations=(FOUND,))},
            id="given up in vain",
        ),
    ],
)
def test_what_the_page_of_a_model_shows_as_a_reason_is_a_label(changes: dict[str, object]) -> None:
    instance = samples.instance(**changes)
    shown = {reason.code for reason in reasons_of(instance)}
    assert FOUND.code in shown
    assert labels(metrics_text([samples.model("chat", instance)])) == shown


def test_a_loss_that_is_only_reported_is_a_label() -> None:
    view = replace(samples.model("chat", samples.instance()), spec_yield=SpecYield((SPEED,), SLOW, 20))
    assert SLOW.code in labels(metrics_text([view]))


def test_what_a_replica_waits_for_is_a_label() -> None:
    waits = samples.pool(waiting=(WaitingView("chat", 0, 1, 0, 9.0, None, FOUND),))
    assert labels(metrics_text([], [waits])) == {FOUND.code}


def labels(text: str) -> set[str]:
    """Codes of all reasons."""
    return set(re.findall(r'^paddock_fallback\{.*reason="([a-z_]+)"\} 1$', text, re.MULTILINE))


@pytest.mark.parametrize("state", [State.STARTING, State.READY, State.FAILED])
def test_no_series_is_there_twice_while_a_replica_is_replaced(state: State) -> None:
    serving = samples.instance(speculation=SpecTotals(requests=3))
    incoming = replace(serving, instance="chat.0@4", generation=4, state=state, speculation=SpecTotals())
    text = metrics_text([replace(measured(serving, incoming), spec_yield=SpecYield((SPEED, SPEED)))])
    names = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(names) == len(set(names))
    assert sum(name.startswith("paddock_speculation_info") for name in names) == 1
    assert 'paddock_speculation_requests_total{model="chat",replica="0"} 3\n' in text


def test_a_stopped_instance_has_no_fallback_of_its_last_start() -> None:
    stopped = samples.instance(state=State.STOPPED, pid=None, last_error=None)
    assert "paddock_fallback{" not in metrics_text([samples.model("chat", stopped)])


def test_asked_resolved_and_running_are_labels() -> None:
    text = metrics_text([samples.model("chat", samples.instance())])
    labels = 'model="chat",replica="0",asked="ngram",resolved="ngram-mod",running="ngram-mod"'
    assert f"paddock_speculation_info{{{labels}}} 1\n" in text


def test_counts_are_those_of_the_serving_instance() -> None:
    totals = SpecTotals(requests=3, generated=600, drafted=582, accepted=528)
    text = metrics_text([samples.model("chat", samples.instance(speculation=totals))])
    assert 'paddock_speculation_drafted_tokens_total{model="chat",replica="0"} 582\n' in text
    assert 'paddock_speculation_requests_total{model="chat",replica="0"} 3\n' in text


def test_large_counts_keep_their_digits() -> None:
    totals = SpecTotals(requests=3, generated=123_456_789)
    text = metrics_text([samples.model("chat", samples.instance(speculation=totals))])
    assert 'paddock_speculation_generated_tokens_total{model="chat",replica="0"} 123456789\n' in text


def test_speeds_are_given_for_each_number_of_busy_slots() -> None:
    text = metrics_text([measured()])
    assert 'paddock_speculation_speedup_ratio{model="chat",running="ngram-mod",busy_slots="2"} 1.5\n' in text


def test_what_has_no_sample_has_no_line_but_its_description() -> None:
    assert all(line.startswith("# ") for line in metrics_text([]).splitlines())


@given(st.text(min_size=1, max_size=30))
def test_no_name_of_a_model_breaks_a_line(name: str) -> None:
    text = metrics_text([samples.model(name, samples.instance(model=name))])
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    assert lines
    assert all(LINE.fullmatch(line) for line in lines)


async def test_it_is_answered_as_text_to_who_may_read_the_api() -> None:
    async with make_world().client() as client:
        response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"


async def test_nobody_else_may_read_it() -> None:
    async with make_world().client() as client:
        response = await client.get("/metrics", headers={"Authorization": "Bearer wrong"})
    assert response.status_code == 401


def test_what_is_not_loaded_has_no_words_about_speculation() -> None:
    stopped = samples.instance(state=State.STOPPED)
    assert "speculation_info{" not in metrics_text([samples.model("chat", stopped, state=State.STOPPED)])


async def test_every_metric_is_described_and_nothing_else() -> None:
    async with make_world().client() as client:
        text = (await client.get("/metrics")).text
    known = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    table = API.read_text(encoding="utf-8").partition("### Metrics")[2].partition("### Check")[0]
    described = set(re.findall(r"`((?:paddock|process)_[a-z_]+)`", table))
    assert described == known
