"""Transcription by another program, where the manifest names one (09 §6.3).

The form goes on as it came, to this address and nowhere else: no redirect is followed, and nothing of the
client or of ours that could be a credential is sent (cases AS-09). Called by `transcription`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from yarl import URL

from framework.proxy.answer_stream import AnswerStream
from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange, stopped
from framework.proxy.form_body import Form
from framework.proxy.interrupt import Interrupted
from framework.proxy.model_choice import ModelChoice

OK = 200
PATH = "/v1/audio/transcriptions"
STREAM = "text/event-stream"
QUOTED = 2000


async def transcribe_outside(
    exchange: Exchange, choice: ModelChoice, form: Form, address: str, failing: AnswerStream
) -> None:
    """Hand the form to the program at `address` and its answer to the client.

    `failing` ends a stream in which something goes wrong.
    """
    exchange.relay = failing
    try:
        await exchange.run(lambda: _forwarded(exchange, choice, form, address + PATH))
    except Interrupted as interrupted:
        raise stopped(interrupted) from interrupted


async def _forwarded(exchange: Exchange, choice: ModelChoice, form: Form, url: str) -> None:
    limits = exchange.services.limits
    live = choice.request.live
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=limits.connect_timeout_s, sock_read=live.first_token_timeout_s
    )
    sent: dict[str, Any] = {
        "data": form.raw,
        "headers": {"content-type": form.content_type, "user-agent": "paddock"},
        "allow_redirects": False,
    }
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.post(URL(url, encoded=True), **sent) as got,
        ):
            if got.status != OK:
                raise _refused(choice, got.status, await got.content.read(QUOTED))
            if got.content_type == STREAM:
                await _streamed(exchange, got)
            else:
                await _whole(exchange, got)
    except aiohttp.ServerTimeoutError as error:
        raise ProxyError(
            "first_token_timeout", f"The program that transcribes for {choice.id} said nothing in time."
        ) from error
    except aiohttp.ClientError as error:
        begun = exchange.answer.started
        raise ProxyError(
            "stream_interrupted" if begun else "connection_lost",
            f"The connection to the program that transcribes for {choice.id} broke.",
        ) from error


async def _streamed(exchange: Exchange, got: aiohttp.ClientResponse) -> None:
    async for piece in got.content.iter_any():
        await exchange.answer.write(piece)
    await exchange.answer.end()


async def _whole(exchange: Exchange, got: aiohttp.ClientResponse) -> None:
    limit = exchange.services.limits.answer_limit_bytes
    answer = bytearray()
    async for piece in got.content.iter_any():
        answer += piece
        if len(answer) > limit:
            raise ProxyError("upstream_protocol_error", "The transcript is too large.")
        await asyncio.sleep(0)
    kind = got.headers.get("content-type", "application/octet-stream")
    await exchange.answer.send_json(OK, bytes(answer), {"content-type": kind})


def _refused(choice: ModelChoice, status: int, body: bytes) -> ProxyError:
    """Mistakes of the client stay such; whatever else is wrong there is no fault of the client's."""
    is_clients = status in {400, 413, 415, 422}
    said = body.decode("utf-8", "replace")
    return ProxyError(
        "invalid_body" if is_clients else "upstream_error",
        f"The program that transcribes for {choice.id} refused the recording with status {status}: {said}",
        status=status if is_clients else None,
        extra={"upstream_status": status},
    )
