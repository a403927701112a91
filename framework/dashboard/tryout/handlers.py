"""The page Try over HTTP: the page, its form for browsers without script, and the routes of its script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import CSRF_FIELD, Visit, authorise, visit
from framework.api.errors import ApiError
from framework.dashboard.answers import page_answer, shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.forms import field, read_form
from framework.dashboard.live_address import live_url, tag_now
from framework.dashboard.tryout import whole_answers
from framework.dashboard.tryout.lanes import Lane
from framework.dashboard.tryout.page import TRY, TryForm, TryPage, choice_of, kept_talk, no_such_model
from framework.dashboard.tryout.relay import stream
from framework.dashboard.tryout.remedies import OTHER, REMEDIES
from framework.dashboard.tryout.settings import FIELDS, Asked, read_settings
from framework.dashboard.tryout.talk import MOST_TURNS, Talk, Turn, read_talk
from framework.dashboard.tryout.views import Chosen, choose, lanes_now, usable_models
from framework.dashboard.urls import with_query

# A conversation of fifty long answers; more would only be sent to and fro.
FORM_BYTES = 2 * 2**20
OK, BAD_REQUEST, NOT_FOUND = 200, 400, 404
EMPTY = "No models are declared yet. Add a table to the manifest and save it; then there is something to try."
NONE_ALLOWED = "Your key may use no model of this server; its `models` in [access] names those that it may."


@dataclass(frozen=True)
class Posted:
    """A form: what to do, with which models and settings, after which conversation."""

    do: str
    chosen: Chosen
    talk: Talk
    asked: Asked
    message: str
    efforts: tuple[str, str]


async def show(desk: Desk, request: Request) -> Response:
    """The page with one model or two, and no conversation yet."""
    seen = visit(request, desk.services)
    chosen = choose(desk.services, seen.caller.key, request.query_params)
    lanes = await lanes_now(desk.services, chosen, ("", ""))
    return _answer(desk, request, seen, chosen, lanes, (), read_settings({}), "", OK)


async def submit(desk: Desk, request: Request) -> Response:
    """The form of a browser without script: the answers are on the page that comes back."""
    # First of all: nobody makes us read this much without a session.
    seen = visit(request, desk.services)
    form = await read_form(request, limit_bytes=FORM_BYTES)
    authorise(request, desk.services, "view", csrf_token=field(form, CSRF_FIELD) or None)
    posted = _posted(desk, seen, form)
    lanes = await lanes_now(desk.services, posted.chosen, posted.efforts)
    talk, message, asks = _step(posted)
    if posted.chosen.faults or posted.asked.faults or not asks:
        status = BAD_REQUEST if posted.asked.faults else OK
        return _answer(desk, request, seen, posted.chosen, lanes, talk, posted.asked, message, status)
    if len(talk) >= MOST_TURNS:
        message_text = f"A conversation here has at most {MOST_TURNS} messages. Begin a new one."
        raise ApiError(400, "invalid_body", message_text)
    answers = await whole_answers.ask_all(
        desk.services, request, seen.caller.key, lanes, talk, message, posted.asked
    )
    said = (*talk, Turn(message, tuple(replace(a, place=f"{len(talk)}-{n}") for n, a in enumerate(answers))))
    return _answer(desk, request, seen, posted.chosen, lanes, said, posted.asked, "", OK)


async def relay(desk: Desk, request: Request) -> Response:
    """A request of the page's script to the endpoint."""
    return await stream(desk.services, request)


def _posted(desk: Desk, seen: Visit, form: FormData) -> Posted:
    return Posted(
        do=field(form, "do"),
        chosen=choose(
            desk.services, seen.caller.key, {name: field(form, name) for name in ("model", "with")}
        ),
        talk=read_talk(field(form, "conversation")),
        asked=read_settings({name: field(form, name) for name in FIELDS}),
        # Browsers send line ends as two characters.
        message=field(form, "message").replace("\r\n", "\n"),
        efforts=(field(form, "effort0"), field(form, "effort1")),
    )


def _step(posted: Posted) -> tuple[Talk, str, bool]:
    """The conversation to go on from, the message, and whether it is to be answered now."""
    if posted.do in ("regenerate", "edit") and posted.talk:
        return posted.talk[:-1], posted.talk[-1].user, posted.do == "regenerate"
    return posted.talk, posted.message, bool(posted.message.strip())


def _answer(
    desk: Desk,
    request: Request,
    seen: Visit,
    chosen: Chosen,
    lanes: tuple[Lane, ...],
    talk: Talk,
    asked: Asked,
    message: str,
    status: int,
) -> Response:
    names: Mapping[str, Any] = {lane.field: lane.name for lane in lanes}
    shell = shell_of(desk, request, "Try", "try", live_url("try", tag_now(desk), **names))
    usable = usable_models(desk.services, seen.caller.key)
    declared = bool(desk.services.current.manifest.models)
    page = TryPage(
        shell=replace(shell, page_url=with_query(TRY, names)),
        empty="" if usable else NONE_ALLOWED if declared else EMPTY,
        choice=choice_of(usable, *(chosen.names)),
        lanes=lanes,
        faults=tuple(no_such_model(name, usable) for name in chosen.faults),
        turns=talk,
        talk=kept_talk(talk),
        message=message,
        form=TryForm(asked.texts, asked.faults),
        remedies=(*REMEDIES.items(), ("", OTHER)),
        wants_key=bool(desk.services.current.manifest.access),
        new_url=with_query(TRY, names),
    )
    return page_answer(desk, request, seen, "try.html", page, NOT_FOUND if chosen.faults else status)
