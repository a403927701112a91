"""`/v1/audio/transcriptions`: sound to text, by a model that hears (09 §6). Called by `routes`.

The sound goes to the instance as a chat, which can be streamed, cancelled and watched; llama-server makes one
of its own route for it, too. A model without ears is refused before anything is loaded for it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import orjson

from framework.proxy.answering import Generation, answer
from framework.proxy.client import JSON
from framework.proxy.errors import ProxyError, envelope
from framework.proxy.exchange import Exchange
from framework.proxy.fields import wrong
from framework.proxy.form_body import Form
from framework.proxy.leased_body import leased_body
from framework.proxy.media import audio_format
from framework.proxy.model_choice import shown
from framework.proxy.outside_engine import transcribe_outside
from framework.proxy.reasoning_answer import ReasoningForm, ReasoningView
from framework.proxy.relay import sse
from framework.proxy.request_body import CHAT_BODY
from framework.proxy.stream_events import DONE, StreamEvent, StreamState, choices_of, delta_of
from framework.proxy.usage import backfill, count
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings, ModelRequest

PATH = "/v1/chat/completions"
KNOWN = ("file", "language", "model", "prompt", "response_format", "stream", "temperature")
FORMATS: Mapping[str, str] = {"json": JSON, "text": "text/plain; charset=utf-8"}
SWITCHES: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False, "": False}
# Thinking is nobody's wish here, and what little there may be is no text that was heard.
NO_REASONING_SHOWN = ReasoningForm("split", promote=False, extract=True)


async def transcriptions(exchange: Exchange) -> None:
    """Write down what a recording says, here or by the program that the manifest names."""
    form = await exchange.read_form()
    fields = form.fields
    choice = exchange.choose_model(fields.get("model"))
    streamed = exchange.request.stream = _switch(fields, "stream")
    if (elsewhere := choice.request.live.transcription) is not None:
        failing = TranscriptStream(exchange.request.state, request_id=exchange.request.id, limit_bytes=0)
        await transcribe_outside(exchange, choice, form, elsewhere, failing)
        return
    if choice.request.projector is None:
        raise _cannot_hear(choice.request)
    asked = _chat(form)
    media_type = _media_type(fields)
    state = exchange.request.state

    def build(lease: Lease, live: LiveSettings) -> Mapping[str, Any]:
        if not lease.audio:
            raise _cannot_hear(lease.request)
        return leased_body(exchange, asked, CHAT_BODY, lease, live)

    limit = exchange.services.limits.answer_limit_bytes
    generation = Generation(
        PATH,
        build,
        lambda now: TranscriptStream(state, request_id=exchange.request.id, limit_bytes=limit),
        lambda now: WholeTranscript(state, limit_bytes=limit, is_text=media_type != JSON),
        refine=lambda: ReasoningView(NO_REASONING_SHOWN, limit_bytes=limit),
        media_type=media_type,
    )
    await answer(exchange, generation, choice, streamed=streamed)


class _Transcript:
    """The text as it grows, without blanks at its ends. Memory is bounded by the limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._room_bytes = limit_bytes
        self._pieces: list[str] = []
        self._blanks = ""

    def add(self, event: StreamEvent) -> str:
        """What an event adds: of blanks only those that something follows."""
        pieces = [delta_of(choice).get("content") for choice in choices_of(event.data)]
        piece = "".join(one for one in pieces if isinstance(one, str))
        self._room_bytes -= len(piece)
        if self._room_bytes < 0:
            raise ProxyError("upstream_protocol_error", "The engine's answer is too large to be collected.")
        text = self._blanks + piece if self._pieces else piece.lstrip()
        kept = text.rstrip()
        self._blanks = text[len(kept) :]
        if kept:
            self._pieces.append(kept)
        return kept

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)


class TranscriptStream:
    """A streamed transcript between instance and client (09 §6.6)."""

    def __init__(self, state: StreamState, *, request_id: str, limit_bytes: int) -> None:
        self._state = state
        self._request_id = request_id
        self._transcript = _Transcript(limit_bytes)

    def take(self, event: StreamEvent) -> bytes:
        """What an event adds to the text."""
        added = self._transcript.add(event) if event.kind == "model" else ""
        return _event({"type": "transcript.text.delta", "delta": added}) if added else b""

    def finish(self) -> bytes:
        """The whole text, and the end mark."""
        done = {"type": "transcript.text.done", "text": self._transcript.text, **usage_of(self._state)}
        return _event(done) + sse(DONE)

    def fail(self, error: ProxyError) -> bytes:
        """The error as an event, and the end mark."""
        return sse(envelope(error, self._request_id)) + sse(DONE)

    def cancelled(self) -> bytes:
        """The text so far, and the end mark."""
        done = {"type": "transcript.text.done", "text": self._transcript.text, "cancelled": True}
        return _event(done) + sse(DONE)


class WholeTranscript:
    """The transcript of a client that wants no stream."""

    def __init__(self, state: StreamState, *, limit_bytes: int, is_text: bool) -> None:
        self._state = state
        self._transcript = _Transcript(limit_bytes)
        self._is_text = is_text

    def take(self, event: StreamEvent) -> None:
        """Add an event."""
        if event.kind == "model":
            self._transcript.add(event)

    def result(self) -> Any:
        """An object, or the bare text."""
        text = self._transcript.text
        return text if self._is_text else {"text": text, **usage_of(self._state)}


def _event(data: dict[str, Any]) -> bytes:
    return sse(orjson.dumps(data))


def usage_of(state: StreamState) -> dict[str, Any]:
    """`usage` as OpenAI's transcripts have it, empty where nobody counted."""
    counts = backfill(state.usage, state.timings)
    if not counts:
        return {}
    prompt, generated = count(counts, "prompt_tokens") or 0, count(counts, "completion_tokens") or 0
    found = {"input_tokens": prompt, "output_tokens": generated, "total_tokens": prompt + generated}
    return {"usage": {"type": "tokens", **found}}


def _chat(form: Form) -> dict[str, Any]:
    """The chat that asks for it (09 §6.4)."""
    for name in form.fields:
        if name not in KNOWN:
            known = ", ".join(KNOWN)
            raise ProxyError(
                "invalid_body", f"The field {shown(name)} is not known here; known are {known}.", param=name
            )
    fields = form.fields
    words = ["Transcribe this audio."]
    if language := fields.get("language"):
        words.append(f"The language is {language}.")
    if prompt := fields.get("prompt"):
        words.append(prompt)
    sound = {"data": base64.b64encode(form.file).decode(), "format": audio_format(form.file)}
    parts = [{"type": "text", "text": " ".join(words)}, {"type": "input_audio", "input_audio": sound}]
    return {
        "messages": [{"role": "user", "content": parts}],
        "temperature": _temperature(fields),
        "enable_thinking": False,
        "reasoning_effort": "none",
    }


def _temperature(fields: Mapping[str, str]) -> float:
    try:
        value = float(fields.get("temperature") or 0)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise wrong("temperature", "a number")
    return value


def _switch(fields: Mapping[str, str], name: str) -> bool:
    value = fields.get(name, "").lower()
    if value not in SWITCHES:
        raise wrong(name, "true or false")
    return SWITCHES[value]


def _media_type(fields: Mapping[str, str]) -> str:
    wanted = fields.get("response_format") or "json"
    if wanted not in FORMATS:
        raise wrong("response_format", "json or text; no engine here tells times")
    return FORMATS[wanted]


def _cannot_hear(model: ModelRequest) -> ProxyError:
    lack = "has no projector" if model.projector is None else "runs without a projector that takes sound"
    return ProxyError(
        "transcription_not_supported",
        f"Model {model.id} {lack} and cannot hear. Declare one with an audio encoder "
        f"(models.{model.id}.projector), or a program that transcribes (models.{model.id}.transcription).",
        param="model",
    )
