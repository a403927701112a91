"""`/models/NAME`: one model, its log, its last hour, and the commands to it (13 §8, 07 §3.11, §5.1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller, authorise
from framework.api.described import EVENT_STREAM, TEXT, Description
from framework.api.endpoint import PRIVATE, Json
from framework.api.errors import ApiError
from framework.api.inputs import json_object, one_of, only_fields, only_parameters, whole_number, yes_or_no
from framework.api.lookup import find_model, require_replica, unknown_model
from framework.api.names import split_name
from framework.api.services import Services
from framework.api.shapes import model_history_json, model_json
from framework.api.streams import frame, sse
from framework.runtime.logs import LogBuffer
from framework.values.action import STOP_MODES, StopMode
from framework.values.event import Event
from framework.values.instance import ModelView

MODELS_PREFIX = "/api/v1/models/"
COMMANDS = ("load", "unload", "reload", "replan")
READS = ("logs", "history")
DEFAULT_LINES = 200
# A start prints a few thousand lines at most; the ring holds no more than this (06 §8.4).
MAX_LINES = 20_000
# No manifest declares that many copies of one model on one machine.
MAX_REPLICA = 999
LOG_QUERY = ("lines", "replica", "follow")
MODEL_OPERATIONS = (
    ("", "GET", Description("One model as it is now", "Model"), ()),
    ("/logs", "GET", Description("What its engine printed", media_types=(TEXT, EVENT_STREAM)), LOG_QUERY),
    ("/history", "GET", Description("What it did in the last hour, by minutes", "ModelHistory"), ()),
    ("/load", "POST", Description("Start it", "Accepted", 202, "NoFields"), ()),
    ("/unload", "POST", Description("Stop it", "Accepted", 202, "StopMode"), ()),
    ("/reload", "POST", Description("Replace its process", "Accepted", 202, "NoFields"), ()),
    ("/replan", "POST", Description("Replace it where its plan differs", "Accepted", 202, "NoFields"), ()),
)
"""What stands behind the name of a model: path, method, what is answered, query parameters."""


async def read_model(request: Request, services: Services, _caller: Caller) -> Response:
    """GET: the model as it is now, its log, or its last hour."""
    name, verb = split_name(request.scope, MODELS_PREFIX, (*READS, *COMMANDS))
    if verb in COMMANDS:
        raise ApiError(
            405, "method_not_allowed", f"{verb} is a command; use POST.", headers={"Allow": "POST"}
        )
    view = find_model(name, services)
    if verb == "logs":
        return _logs(request, services, view)
    only_parameters(request, ())
    if verb == "history":
        return Json(model_history_json(services.history.model_now(view.request.id)))
    return Json(model_json(view))


async def command_model(request: Request, services: Services, caller: Caller) -> Response:
    """POST: give a command. It is accepted at once; its event and those after it say how it went."""
    name, verb = split_name(request.scope, MODELS_PREFIX, (*READS, *COMMANDS))
    if verb not in COMMANDS:
        message = f"POST needs a command: /models/NAME/ followed by {', '.join(COMMANDS)}."
        raise ApiError(405, "method_not_allowed", message, headers={"Allow": "GET"})
    only_parameters(request, ())
    model_id = find_model(name, services).request.id
    body = await json_object(request)
    command = _command(verb, body, services, caller)
    try:
        event = command(model_id)
    except KeyError:
        # It was removed from the manifest while its body was read.
        raise unknown_model(name, services) from None
    return Json({"accepted": True, "event_id": event.id}, 202)


def _command(
    verb: str, body: dict[str, object], services: Services, caller: Caller
) -> Callable[[str], Event]:
    fleet = services.fleet
    if verb == "unload":
        only_fields(body, ("mode",))
        mode = cast(StopMode, one_of("mode", body.get("mode", STOP_MODES[0]), STOP_MODES))
        return lambda model_id: fleet.unload(model_id, mode, by=caller.name)
    only_fields(body, ())
    if verb == "load":
        return lambda model_id: fleet.load(model_id, by=caller.name)
    if verb == "replan":
        return lambda model_id: fleet.replan(model_id, by=caller.name)
    return lambda model_id: fleet.reload(model_id, by=caller.name)


def _logs(request: Request, services: Services, view: ModelView) -> Response:
    lines = whole_number(request, "lines", default=DEFAULT_LINES, low=0, high=MAX_LINES)
    replica = whole_number(request, "replica", default=0, low=0, high=MAX_REPLICA)
    model_id = view.request.id
    require_replica(services, view, replica)
    if yes_or_no(request, "follow"):
        frames = _follow(services, model_id, replica, lines)
        return sse(frames, lambda: _still_readable(request, services, model_id))
    buffer = services.fleet.log(model_id, replica)
    text = "" if buffer is None else "".join(f"{line.text}\n" for line in buffer.last(lines))
    return Response(text, media_type="text/plain; charset=utf-8", headers=PRIVATE)


async def _follow(services: Services, model_id: str, replica: int, lines: int) -> AsyncIterator[str]:
    buffer = await _first_log(services, model_id, replica)
    if buffer is None:
        return
    shown = buffer.last(lines)
    start = shown[0].seq - 1 if shown else buffer.newest
    async for line in buffer.follow(start):
        yield frame(line.text, line.seq)


async def _first_log(services: Services, model_id: str, replica: int) -> LogBuffer | None:
    """The log of a replica, waiting for its first start; None when the manager ends before."""
    while not services.changes.closed:
        seen = services.changes.version
        buffer = services.fleet.log(model_id, replica)
        if buffer is not None:
            return buffer
        await services.changes.wait(seen)
    return None


def _still_readable(request: Request, services: Services, model_id: str) -> None:
    authorise(request, services, "view")
    if services.fleet.view(model_id) is None:
        raise ApiError(404, "model_not_found", "The model was removed.")
