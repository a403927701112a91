"""The smallest set of actions, in the order of an apply (07 §3.12, §4.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.reconcile.actions import plan_actions
from framework.values.instance import InstanceView, ModelView, QueueView, State
from framework.values.request import LiveSettings, ModelRequest, ModelSource
from tests.reconcile.test_compare import running as running  # noqa: PLC0414  a fixture

QUEUE = QueueView(0, 16, None, None)


def request(name: str, load: str = "at-start", **fields: Any) -> ModelRequest:
    settings = LiveSettings(load=load, priority=fields.pop("priority", 0))  # type: ignore[arg-type]
    return ModelRequest(id=name, source=ModelSource(path=Path("/m.gguf")), live=settings, **fields)


def view(of: ModelRequest, instance: InstanceView | None = None, **fields: Any) -> ModelView:
    state = fields.pop("state", instance.state if instance else State.STOPPED)
    return ModelView(of, state, False, QUEUE, (instance,) if instance else (), **fields)


def kinds(models: list[ModelRequest], views: list[ModelView]) -> list[tuple[str, str]]:
    actions = plan_actions({model.id: model for model in models}, views)
    return [(action.model, action.kind) for action in actions]


@pytest.mark.parametrize(
    ("load", "kind"), [("at-start", "start"), ("on-demand", "record"), ("manual", "record")]
)
def test_a_new_model_starts_only_when_it_loads_at_start(load: str, kind: str) -> None:
    assert kinds([request("a", load)], []) == [("a", kind)]


def test_the_same_manifest_again_does_nothing(running: InstanceView) -> None:
    assert kinds([request("a")], [view(request("a"), running)]) == [("a", "none")]


def test_only_the_changed_model_is_touched(running: InstanceView) -> None:
    a, b, c = request("a"), request("b"), request("c")
    views = [view(model, running) for model in (a, b, c)]
    new_a = replace(a, live=replace(a.live, aliases=("x",), idle_after_s=5.0))
    assert kinds([new_a, replace(b, n_ctx=8192), c], views) == [
        ("b", "replace"),
        ("a", "live"),
        ("c", "none"),
    ]


def test_removals_come_before_replacements_before_starts(running: InstanceView) -> None:
    old = request("old")
    views = [view(old, running), view(request("b"), running)]
    models = [request("new"), replace(request("b"), n_ctx=1)]
    assert kinds(models, views) == [("old", "stop"), ("b", "replace"), ("new", "start")]


def test_priority_orders_starts_before_the_order_of_the_file() -> None:
    assert kinds([request("low"), request("high", priority=5)], []) == [("high", "start"), ("low", "start")]


@pytest.mark.parametrize("new_first", [True, False])
def test_replicas_that_were_left_mixed_come_to_be_alike(running: InstanceView, new_first: bool) -> None:
    old, new = request("a"), replace(request("a"), n_ctx=8192)
    requests = (new, old) if new_first else (old, new)
    instances = tuple(replace(running, request=one, replica=at) for at, one in enumerate(requests))
    left = replace(view(old, running), instances=instances)
    assert kinds([new], [left]) == [("a", "replace")]


def test_a_model_stopped_by_command_stays_stopped_under_the_same_manifest() -> None:
    stopped = view(request("a"), stopped_by_command=True)
    assert kinds([request("a")], [stopped]) == [("a", "none")]


def test_a_changed_request_ends_a_stop_by_command() -> None:
    stopped = view(request("a"), stopped_by_command=True)
    assert kinds([replace(request("a"), n_ctx=1)], [stopped]) == [("a", "start")]


def test_a_failed_model_is_not_tried_again_under_the_same_manifest() -> None:
    assert kinds([request("a")], [view(request("a"), state=State.FAILED)]) == [("a", "none")]


def test_a_failed_model_is_tried_again_when_its_request_changed() -> None:
    assert kinds([replace(request("a"), n_ctx=1)], [view(request("a"), state=State.FAILED)]) == [
        ("a", "start")
    ]


def test_a_model_that_is_removed_and_declared_again_starts_anew(running: InstanceView) -> None:
    assert kinds([request("a")], [view(request("a"), running, removed=True)]) == [("a", "start")]


def test_a_model_that_already_goes_is_not_stopped_twice(running: InstanceView) -> None:
    assert kinds([], [view(request("a"), running, removed=True)]) == []
