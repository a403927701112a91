"""`/v1/models`: what a client can ask for, and in which state it is. Never wakes a model (cases PX-16)."""

from __future__ import annotations

from typing import Any

import orjson

from framework.proxy.access import may_use
from framework.proxy.exchange import Exchange
from framework.proxy.vision import sees
from framework.values.instance import InstanceView, ModelView

OK = 200
OWNER = "paddock"


async def list_models(exchange: Exchange) -> None:
    """All models that the caller may use, in declared order; below `/m/NAME` only that one."""
    only = exchange.choose_model(None).id if exchange.path_name else None
    created = int(exchange.services.current.loaded_at.timestamp())
    entries = [
        _entry(view, created)
        for view in exchange.services.fleet.views()
        if not view.removed and may_use(exchange.key, view.request) and only in (None, view.request.id)
    ]
    await exchange.answer.send_json(OK, orjson.dumps({"object": "list", "data": entries}))


async def show_model(exchange: Exchange) -> None:
    """One model, by id or alias."""
    choice = exchange.choose_model(None)
    created = int(exchange.services.current.loaded_at.timestamp())
    views = exchange.services.fleet.views()
    found = [_entry(view, created) for view in views if view.request.id == choice.id]
    await exchange.answer.send_json(OK, orjson.dumps(found[0] if found else _bare_entry(choice.id, created)))


def _bare_entry(model_id: str, created: int) -> dict[str, Any]:
    return {"id": model_id, "object": "model", "created": created, "owned_by": OWNER}


def _entry(view: ModelView, created: int) -> dict[str, Any]:
    request = view.request
    context, slots = room_of(view)
    meta = {"n_ctx": context, "slots": slots, "vision": sees(view), "reasoning": _reasoning(view)}
    return {
        **_bare_entry(request.id, created),
        "aliases": list(request.live.aliases),
        "display_name": request.live.display_name,
        "status": view.state.value,
        "meta": meta,
    }


def _reasoning(view: ModelView) -> dict[str, Any] | None:
    """Whether the model reasons, and what a request can choose; None while nothing is planned."""
    plan = next((instance.plan for instance in view.instances if instance.plan is not None), None)
    if plan is None:
        return None
    template = plan.reasoning.template
    return {
        "default": plan.reasoning.default,
        "switchable": template.switchable,
        "efforts": list(template.effort_levels) if template.switchable else [],
    }


def room_of(view: ModelView) -> tuple[int | None, int]:
    """Tokens over all slots, and slots: as they run, else as planned, else as asked; never of two starts.

    The tokens are None while unknown.
    """
    for instance in view.instances:
        if room := _room_of(instance):
            return room
    return view.request.n_ctx or None, view.request.slots


def _room_of(instance: InstanceView) -> tuple[int, int] | None:
    result, plan = instance.result, instance.plan
    if result is not None and result.context:
        return result.context, result.slots
    if plan is not None and (planned := plan.fit.context or plan.context):
        return planned, plan.slots
    return None
