"""One client's request while a handler serves it, with the ways in which it can end (08 §4, §26).

Made by `routes` for every request. Handlers read the body and choose a model through it, run their work so
that a leaving client or a command stops it, and let errors fly: `fail` gives each its one form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs

from starlette.types import Receive, Scope

from framework.proxy.allowances import BYTES_PER_TOKEN, KeyUse
from framework.proxy.answer_stream import AnswerStream
from framework.proxy.body import read_bytes, read_object
from framework.proxy.body_budget import BodyShare
from framework.proxy.client import ClientAnswer
from framework.proxy.errors import CLIENT_CLOSED, ClientGone, ProxyError, revoked_lease
from framework.proxy.form_body import Form, parse_form
from framework.proxy.interrupt import Interrupted, InterruptScope
from framework.proxy.model_choice import ModelChoice, choose_model
from framework.proxy.records import ActiveRequest
from framework.proxy.services import ProxyServices
from framework.proxy.texts import KeptTexts, Pieces
from framework.values.manifest import AccessKey, Manifest
from framework.values.request_record import RequestRecord

T = TypeVar("T")


@dataclass
class Exchange:
    """A request with its answer. `manifest` is the one in force when the request came."""

    services: ProxyServices
    request: ActiveRequest
    answer: ClientAnswer
    receive: Receive
    headers: Mapping[str, str]
    query: str
    manifest: Manifest
    share: BodyShare
    """What the body takes of the memory for all bodies."""
    key: AccessKey | None = None
    use: KeyUse | None = None
    """What the key uses, where this request counts against its limits."""
    path_name: str | None = None
    """What the path names: a model, or a request."""
    relay: AnswerStream | None = None
    """Set once the answer is to be a stream; it knows how to end one."""

    async def read_object(self) -> dict[str, Any]:
        """The body as a JSON object. Raises ProxyError and ClientGone."""
        limits = self.services.limits
        body = await read_object(
            self.receive,
            self.headers,
            limit_bytes=self.manifest.server.max_body_bytes,
            silence_s=limits.client_write_timeout_s,
            share=self.share,
        )
        if self.manifest.server.request_log == "full":
            self.request.texts = KeptTexts(body)
        return body

    async def read_form(self) -> Form:
        """The body as a form with one file. Raises ProxyError and ClientGone."""
        raw = await read_bytes(
            self.receive,
            self.headers,
            limit_bytes=self.manifest.server.max_body_bytes,
            silence_s=self.services.limits.client_write_timeout_s,
            share=self.share,
        )
        form = await parse_form(raw, self.headers.get("content-type", ""))
        if self.manifest.server.request_log == "full":
            self.request.texts = KeptTexts(form.fields)
        return form

    def keep_texts(self, pieces: Pieces) -> None:
        """Where texts are kept, find those of the answer with `pieces`."""
        if self.request.texts is not None:
            self.request.texts.pieces = pieces

    def choose_model(self, in_body: object) -> ModelChoice:
        """The model named by path, query or body, in this order (08 §2.1). Raises ProxyError."""
        in_query = parse_qs(self.query).get("model", [None])[0]
        name = self.path_name or in_query or in_body
        choice = choose_model(name, manifest=self.manifest, fleet=self.services.fleet, key=self.key)
        self.request.model = choice.id
        return choice

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work of this request, in the list of active ones and with an eye on the client.

        Returns or raises as the work does, and raises Interrupted when it was stopped.
        """
        self.services.requests.add(self.request)
        watcher = asyncio.create_task(_watch_client(self.receive, self.request.scope))
        try:
            with self.request.scope:
                return await work()
        finally:
            watcher.cancel()
            self.services.requests.remove(self.request)

    async def fail(self, error: ProxyError) -> None:
        """Answer with an error: as a JSON body, or in the stream once that has begun. Raises ClientGone."""
        self.request.error = error.code
        self.answer.stop_keep_alive()
        if not self.answer.started:
            await self.answer.send_error(error)
        elif self.relay is not None and not self.answer.ended:
            await self.answer.end(self.relay.fail(error))

    def count_in(self) -> None:
        """Count the request against the limits of its key. Raises ProxyError 429."""
        if self.key is not None:
            self.use = self.services.allowances.enter(self.key, self.request.began_at_s)

    def count_out(self, ended: RequestRecord) -> None:
        """The request has ended: its key may have another, and has used its tokens."""
        if self.use is None:
            return
        prompt = ended.prompt_tokens or 0
        if ended.prompt_tokens is None and self.request.state.opened:
            prompt = self.share.body_bytes // BYTES_PER_TOKEN
        tokens = prompt + (ended.generated_tokens or 0)
        self.services.allowances.leave(self.use, tokens, self.services.clock())
        self.use = None

    def recorded_status(self, answered: int | None) -> int | None:
        """The status for the record: a request that was cancelled is no success and no error (08 §4.4)."""
        return CLIENT_CLOSED if self.request.scope.cause == "cancelled" else answered


def stopped(interrupted: Interrupted) -> Exception:
    """The error that a stopped request ends with, where nothing more particular is known."""
    cause = interrupted.cause
    if cause == "client_gone":
        return ClientGone()
    if cause == "cancelled":
        return ProxyError("cancelled", "The request was cancelled.")
    return revoked_lease(cause)


def header_values(scope: Scope) -> dict[str, str]:
    """Headers by lower-case name; the first of several, as Latin-1 text."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return found


async def _watch_client(receive: Receive, scope: InterruptScope) -> None:
    """Wait until the server says that the client's connection is gone (08 §4.2)."""
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.interrupt("client_gone")
