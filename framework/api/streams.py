"""Server-sent events of the API: framing, heartbeats, and ending when the caller loses the right to read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from starlette.responses import StreamingResponse

from framework.api.endpoint import PRIVATE
from framework.api.errors import ApiError
from framework.runtime.shielded import finish
from framework.values.plain_text import encodable

# Proxies drop connections that are silent for a minute; half of that leaves room for one lost beat.
HEARTBEAT_S = 15.0
HEARTBEAT = ": keep-alive\n\n"
# What the format takes as the end of a line. `splitlines` knows more, which are text inside of JSON.
LINE_END = re.compile(r"\r\n|\r|\n")


def frame(data: str, event_id: int | None = None) -> str:
    """One event. Every line of the data gets its own field, as the format demands."""
    head = "" if event_id is None else f"id: {event_id}\n"
    return head + "".join(f"data: {line}\n" for line in LINE_END.split(data)) + "\n"


def sse(
    frames: AsyncIterator[str], still_allowed: Callable[[], object], *, heartbeat_s: float = HEARTBEAT_S
) -> StreamingResponse:
    """An answer that sends frames as they come. `still_allowed` raises ApiError to end it (a revoked key)."""
    headers = {**PRIVATE, "X-Accel-Buffering": "no"}
    body = guarded(frames, still_allowed, heartbeat_s=heartbeat_s)
    return StreamingResponse(body, media_type="text/event-stream", headers=headers)


async def guarded(
    frames: AsyncIterator[str], still_allowed: Callable[[], object], *, heartbeat_s: float
) -> AsyncIterator[str]:
    """The frames, with a heartbeat first and after each silence, for as long as the caller is allowed."""
    yield HEARTBEAT
    upcoming = asyncio.ensure_future(_next(frames))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=heartbeat_s)
            try:
                still_allowed()
            except ApiError:
                return
            if not done:
                yield HEARTBEAT
                continue
            text = upcoming.result()
            if text is None:
                return
            upcoming = asyncio.ensure_future(_next(frames))
            yield encodable(text)
    finally:
        # When the client is gone the server cancels again at every await; the source is closed all the same.
        await finish(_close(frames, upcoming))


async def _next(frames: AsyncIterator[str]) -> str | None:
    # A task, not wait_for: a time-out there would cancel the generator and end it.
    return await anext(frames, None)


async def _close(frames: AsyncIterator[str], upcoming: asyncio.Future[str | None]) -> None:
    upcoming.cancel()
    await asyncio.gather(upcoming, return_exceptions=True)
    if isinstance(frames, AsyncGenerator):
        await frames.aclose()
