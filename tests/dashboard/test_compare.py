"""Asked, granted and running stay apart, and differences are marked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.dashboard.pages.compare import CompareRow, compare_table, limiting_device
from framework.values.instance import InstanceView, State
from framework.values.plan import FitPlan, SpecDecision
from framework.values.request import ModelRequest
from tests.dashboard import fits, samples
from tests.dashboard.samples import MIB


def row(label: str, asked: ModelRequest, instance: InstanceView | None) -> CompareRow:
    return next(r for r in compare_table("t", asked, instance).rows if r.label.startswith(label))


def running(asked: ModelRequest, *, plan: dict[str, Any] | None = None, **result: Any) -> InstanceView:
    return samples.instance(asked, plan=samples.plan(asked, **plan or {}), result=samples.result(**result))


def test_a_lowered_context_differs() -> None:
    asked = samples.request(n_ctx=32768)
    found = row("Context", asked, running(asked, plan={"context": 32768}, context=8192))
    assert found == CompareRow("Context", "32,768 tokens", "32,768 tokens", "8,192 tokens", differs=True)


def test_an_automatic_context_cannot_differ() -> None:
    asked = samples.request(n_ctx=0)
    found = row("Context", asked, running(asked, plan={"context": 0}, context=8192))
    assert (found.asked, found.granted, found.differs) == ("automatic", "what fits", False)


@pytest.mark.parametrize("state", [State.STOPPED, State.BACKOFF, State.FAILED])
def test_nothing_runs_without_a_process(state: State) -> None:
    asked = samples.request()
    over = samples.instance(asked, state, plan=samples.plan(asked), result=samples.result())
    assert {row.running for row in compare_table("t", asked, over).rows} == {"\u2013"}


def test_a_stopped_model_was_granted_nothing() -> None:
    asked = samples.request()
    over = samples.instance(asked, State.STOPPED, plan=samples.plan(asked), result=samples.result())
    assert {row.granted for row in compare_table("t", asked, over).rows} == {"\u2013"}


def test_modes_of_speculation_are_told_in_words() -> None:
    asked = samples.request()
    spec = SpecDecision("auto", "default")
    found = row("Speculation", asked, running(asked, plan={"spec": spec}, speculation="default"))
    assert (found.asked, found.granted) == ("automatic", "the engine's own default")


def test_fewer_slots_differ() -> None:
    asked = samples.request(slots=4)
    assert row("Slots", asked, running(asked, plan={"slots": 1}, slots=1)).differs


def test_a_cache_type_that_was_not_granted_differs() -> None:
    asked = samples.request(cache_type=("q8_0", "q8_0"))
    found = row("KV", asked, running(asked, plan={"cache_types": ("q8_0", "f16")}))
    assert (found.asked, found.granted, found.differs) == ("q8_0 / q8_0", "q8_0 / f16", True)


def test_what_was_granted_as_asked_does_not_differ() -> None:
    asked = samples.request(cache_type=("q8_0", "f16"))
    assert not any(r.differs for r in compare_table("t", asked, running(asked)).rows)


@pytest.mark.parametrize(("offload", "text"), [(True, "on GPU"), (False, "on CPU"), (None, "\u2013")])
def test_the_engine_says_where_the_model_went(offload: bool | None, text: str) -> None:
    asked = samples.request()
    assert row("Offload", asked, running(asked, offload=offload)).running == text


def test_layers_by_hand_are_shown_as_asked_and_granted() -> None:
    asked = samples.request(memory_mode="manual", gpu_layers=20, n_cpu_moe=4)
    text = "20 layers on the GPU, experts of 4 layers in RAM"
    found = row("Offload", asked, running(asked))
    assert (found.asked, found.granted) == (text, text)


def test_all_layers_without_some_experts_are_not_shown_as_none() -> None:
    asked = samples.request()
    found = row("Offload", asked, running(asked, plan={"fit": FitPlan(context=4096, cpu_experts=3)}))
    assert found.granted == "all layers on the GPU, experts of 3 layers in RAM"


def test_a_failed_launch_runs_nothing() -> None:
    view = samples.failed()
    assert {r.running for r in compare_table("t", view.request, view.instances[0]).rows} == {"\u2013"}


def test_without_an_instance_nothing_is_granted() -> None:
    assert {r.granted for r in compare_table("t", samples.request(), None).rows} == {"\u2013"}


def test_what_limits_an_automatic_context_is_named() -> None:
    """MD-11: asked as much as there is, trained for 262,144, granted 8,960, and which device is full."""
    fit = fits.fit_of(
        fits.line("CUDA0", "weights", 14_000 * MIB),
        fits.line("CUDA0", "kv", 560 * MIB),
        fits.line("CUDA1", "kv", 560 * MIB),
        CUDA0=14_600 * MIB,
        CUDA1=15_000 * MIB,
    )
    asked = samples.request("large", n_ctx=0)
    plan = samples.plan(asked, fit=replace(fit, context=8960), context=0, context_train=262_144)
    rows = {row.label: row for row in compare_table("c", asked, samples.instance(asked, plan=plan)).rows}
    row = rows["Context limited by"]
    assert (row.asked, row.granted) == (
        "at most 262,144 tokens",
        "CUDA0: 14 GiB of 14 GiB that may be planned",
    )
    assert rows["Context"].granted == "8,960 tokens"


def test_a_context_as_long_as_wanted_has_no_limit() -> None:
    asked = samples.request("small")
    labels = [row.label for row in compare_table("c", asked, samples.instance(asked)).rows]
    assert "Context limited by" not in labels


def test_where_nothing_was_planned_the_engine_limits() -> None:
    assert limiting_device(FitPlan()) == "the engine's own fit step, by what is free"
