"""Answers for a browser without script: all lanes asked at once, each answer whole, all within a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from framework.api.services import Services
from framework.dashboard.tryout.lanes import Lane
from framework.dashboard.tryout.numbers import numbers_of
from framework.dashboard.tryout.relay import Whole, ask
from framework.dashboard.tryout.remedies import REMEDIES, trouble_of
from framework.dashboard.tryout.request_texts import request_text
from framework.dashboard.tryout.settings import PATHS, Asked, body_of
from framework.dashboard.tryout.talk import MOST_CALLS, Answer, Talk, ToolCall, Trouble
from framework.values.manifest import AccessKey

# A browser shows nothing meanwhile, and gives up by itself after some minutes.
ANSWER_LIMIT_S = 240.0
OK = 200
ENDS: Mapping[str, str] = {
    "length": "Ended at its limit of tokens.",
    "tool_calls": "Calls a tool. Nothing here runs it, and the next message does not repeat it.",
    "content_filter": "Ended by a filter.",
}


async def ask_all(
    services: Services,
    request: Request,
    key: AccessKey | None,
    lanes: tuple[Lane, ...],
    talk: Talk,
    message: str,
    asked: Asked,
) -> list[Answer]:
    """One answer for each lane, or why there is none. A browser that leaves ends them all."""
    left = asyncio.Event()
    watcher = asyncio.create_task(_watch(request, left))
    timer = asyncio.get_running_loop().call_later(ANSWER_LIMIT_S, left.set)
    try:
        return list(
            await asyncio.gather(
                *(_answer(services, request, key, lane, talk, message, asked, left) for lane in lanes)
            )
        )
    finally:
        timer.cancel()
        watcher.cancel()


async def _watch(request: Request, left: asyncio.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue
    left.set()


async def _answer(
    services: Services,
    request: Request,
    key: AccessKey | None,
    lane: Lane,
    talk: Talk,
    message: str,
    asked: Asked,
    left: asyncio.Event,
) -> Answer:
    if lane.kind == "none":
        return Answer(lane.name, trouble=Trouble("not_supported", lane.note, REMEDIES["not_supported"]))
    path = PATHS[lane.kind]
    body = body_of(lane.name, lane.kind, lane.number, talk, message, asked, lane.effort)
    whole = await ask(services, request.scope, path, body, key, left)
    wants_key = bool(services.current.manifest.access)
    text = request_text(str(request.base_url).rstrip("/"), path, body, wants_key=wants_key)
    return answer_of(lane.name, whole, request=text)


def answer_of(model: str, whole: Whole, **fields: Any) -> Answer:
    """What came back, as the page shows it. Pure."""
    numbers = numbers_of(whole.served.record, whole.served.timings) if whole.served is not None else ()
    if whole.status != OK:
        return Answer(model, trouble=_trouble(whole), numbers=numbers, **fields)
    choices = whole.json.get("choices") or [{}]
    choice = choices[0]
    said = choice.get("message") or {"content": choice.get("text")}
    return Answer(
        model,
        text=said.get("content") or "",
        thinking=said.get("reasoning_content") or "",
        calls=tuple(_call(call) for call in (said.get("tool_calls") or [])[:MOST_CALLS]),
        note=ENDS.get(choice.get("finish_reason") or "", ""),
        numbers=numbers,
        **fields,
    )


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function") or {}
    return ToolCall(str(function.get("name") or ""), str(function.get("arguments") or ""))


def _trouble(whole: Whole) -> Trouble:
    if not whole.status:
        return Trouble(
            "cancelled",
            f"The whole answer did not come within {ANSWER_LIMIT_S:g} s.",
            "Ask for fewer tokens, or use this page with script: it shows the answer as it comes.",
        )
    error = whole.json.get("error")
    return trouble_of(error if isinstance(error, Mapping) else {}, whole.headers.get("retry-after"))
