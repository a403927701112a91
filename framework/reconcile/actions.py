"""The smallest set of actions that brings the fleet to a manifest (07 §3.12-3.13, §4.1). Pure.

Called by the reconciler before an apply and by the diff preview; both see the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from framework.reconcile.compare import compare_requests, strongest_effect
from framework.values.action import ActionKind, FieldChange, ModelAction
from framework.values.instance import InstanceView, ModelView, State
from framework.values.request import Effect, ModelRequest, needs_another_start

# A process exists or is about to: changing such an instance means replacing it.
LEAVING = frozenset({State.DRAINING, State.STOPPING})
ALIVE = frozenset(
    {State.PENDING, State.FETCHING, State.PLANNING, State.STARTING, State.READY, State.DRAINING}
    | {State.STOPPING, State.BACKOFF}
)
# 07 §4.1: removals free what replacements need, replacements free what starts need.
GROUPS: Mapping[ActionKind, int] = {"stop": 0, "replace": 1, "start": 2, "live": 3, "record": 4, "none": 5}
# 07 §3.13: the strongest effect decides. With nothing running no effect is `restart` (compare._effect).
KINDS: Mapping[Effect | None, ActionKind] = {
    "restart": "replace",
    "live": "live",
    "nothing": "record",
    None: "none",
}


def plan_actions(models: Mapping[str, ModelRequest], views: Iterable[ModelView]) -> list[ModelAction]:
    """One action per declared or running model, in the order of an apply."""
    known = {view.request.id: view for view in views}
    actions = [
        _removal(view) for model_id, view in known.items() if model_id not in models and not view.removed
    ]
    actions += [_action(request, known.get(model_id)) for model_id, request in models.items()]
    place = {model_id: index for index, model_id in enumerate(models)}

    def rank(action: ModelAction) -> tuple[int, int, int]:
        request = models.get(action.model)
        priority = request.live.priority if request else 0
        return GROUPS[action.kind], -priority, place.get(action.model, -1)

    return sorted(actions, key=rank)


def _removal(view: ModelView) -> ModelAction:
    change = FieldChange(
        f"models.{view.request.id}", "declared", None, "restart", "no longer in the manifest"
    )
    return ModelAction(view.request.id, None, "stop", (change,))


def _action(request: ModelRequest, view: ModelView | None) -> ModelAction:
    if view is None or view.removed:
        return _addition(request)
    running = _running(view, request)
    changes = compare_requests(view.request, request, running)
    effect = strongest_effect(changes)
    kind = KINDS[effect]
    if running is None and request.live.load == "at-start" and _may_start(view, request):
        kind = "start"
    return ModelAction(request.id, None, kind, changes)


def _addition(request: ModelRequest) -> ModelAction:
    starts = request.live.load == "at-start"
    why = {
        "at-start": "a new model that loads at start",
        "on-demand": "a new model; it loads on the first request",
        "manual": "a new model; it loads by the command load",
    }[request.live.load]
    change = FieldChange(f"models.{request.id}", None, "declared", "restart" if starts else "nothing", why)
    return ModelAction(request.id, None, "start" if starts else "record", (change,))


def _running(view: ModelView, request: ModelRequest) -> InstanceView | None:
    """What a change is compared with: of several replicas one that has not got it yet."""
    if view.going:
        return None
    alive = [i for i in view.instances if i.state in ALIVE and not _was_replaced(i, view)]
    behind = (instance for instance in alive if needs_another_start(instance.request, request))
    return next(behind, alive[0] if alive else None)


def _was_replaced(instance: InstanceView, view: ModelView) -> bool:
    """Whether it only finishes what it answers, since another one has its place."""
    newest = max(other.generation for other in view.instances if other.replica == instance.replica)
    return instance.state in LEAVING and instance.generation < newest


def _may_start(view: ModelView, request: ModelRequest) -> bool:
    """07 §3.12: a stop by command and a remembered failure hold until the request changes."""
    if needs_another_start(view.request, request):
        return True
    if view.stopped_by_command:
        return False
    # Other limits of the pool may be room enough.
    return view.state is not State.FAILED or view.request.pool != request.pool
