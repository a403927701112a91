"""What a fake engine answers: slots, settings, generated text, in the shapes of 15 §5-6. Knows no sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fake_engine.script import Script

TRAINED_CONTEXT = 8192
AUTOMATIC_SLOTS = 4
JSON_TYPE = "application/json; charset=utf-8"


class HttpRefusal(Exception):
    """An error answer in llama-server's form."""

    def __init__(self, status: int, kind: str, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": status, "message": message, "type": kind, **extra}}


@dataclass
class Slot:
    """One lane and what `/slots` says about it. Counts are tokens."""

    id: int
    busy: bool = False
    task: int | None = None
    prompt: int = 0
    decoded: int = 0

    def as_json(self, context: int, speculative: bool | None) -> dict[str, Any]:
        """Short until the slot was used once, as the real one is; `speculative` None leaves the field out."""
        shown: dict[str, Any] = {"id": self.id, "n_ctx": context}
        shown |= {} if speculative is None else {"speculative": speculative}
        shown["is_processing"] = self.busy
        if self.task is not None:
            shown |= {"id_task": self.task, "n_prompt_tokens": self.prompt + self.decoded}
            shown |= {"n_prompt_tokens_processed": self.prompt, "n_prompt_tokens_cache": 0}
            left = {"has_next_token": self.busy, "has_new_line": False, "n_remain": -1}
            shown["next_token"] = [left | {"n_decoded": self.decoded}]
        return shown


@dataclass
class Engine:
    """The server behind the routes: options of the command line, slots, counters."""

    script: Script
    options: Mapping[str, str]
    can_draft: bool = False
    ready: bool = False
    generations: int = 0
    slots: list[Slot] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        asked = int(self.options.get("--parallel", -1))
        self.slots = [Slot(number) for number in range(asked if asked > 0 else AUTOMATIC_SLOTS)]

    @property
    def alias(self) -> str:
        return self.options.get("--alias", self.options["--model"])

    @property
    def slot_context(self) -> int:
        """Tokens one slot holds, never more than the model was trained with."""
        asked = int(self.options.get("--ctx-size", 0)) or TRAINED_CONTEXT
        per_slot = asked if "--kv-unified" in self.options else asked // len(self.slots)
        return self.script.context or min(per_slot, TRAINED_CONTEXT)

    def answer(self, method: str, path: str) -> tuple[str, str]:
        """Content type and body of the routes that do not generate."""
        if path in ("/health", "/v1/health"):
            return JSON_TYPE, '{"status":"ok"}'
        if path == "/metrics":
            return "text/plain; version=0.0.4", self._metrics()
        if path == "/props" and method == "GET":
            return JSON_TYPE, json.dumps(self._props())
        if path == "/slots":
            drafting = self.can_draft if self.script.tells_drafting else None
            shown = [slot.as_json(self.slot_context, drafting) for slot in self.slots]
            return JSON_TYPE, json.dumps(shown)
        if path in ("/models", "/v1/models"):
            model = {"id": self.alias, "object": "model", "owned_by": "llamacpp", "meta": {}}
            return JSON_TYPE, json.dumps({"object": "list", "data": [model]})
        if path.endswith("/embeddings"):
            hint = "This server does not support embeddings. Start it with `--embeddings`"
            raise HttpRefusal(501, "not_supported_error", hint)
        raise HttpRefusal(404, "not_found_error", "File Not Found")

    def _props(self) -> dict[str, Any]:
        settings = {"params": {"speculative.types": "none"}, "n_ctx": self.slot_context}
        shown: dict[str, Any] = {"default_generation_settings": settings, "total_slots": len(self.slots)}
        shown |= {"model_alias": self.alias, "model_path": self.script.model_path or self.options["--model"]}
        sees, hears = "--mmproj" in self.options, self.script.hears
        shown |= {"modalities": {"vision": sees, "video": False, "audio": hears}}
        return shown | {"endpoint_slots": True, "chat_template": "", "build_info": "b1-571d0d5"}

    def _metrics(self) -> str:
        if "--metrics" not in self.options:
            hint = "This server does not support metrics endpoint. Start it with `--metrics`"
            raise HttpRefusal(501, "not_supported_error", hint)
        name = "llamacpp:tokens_predicted_total"
        total = f"# TYPE {name} counter\n{name} {sum(slot.decoded for slot in self.slots)}\n"
        return total + f"llamacpp:requests_processing {sum(slot.busy for slot in self.slots)}\n"

    def timings(self, prompt: int, count: int) -> dict[str, float]:
        """What an answer of so many tokens says of its speed; drafts are named only where there were any."""
        script = self.script
        drafts = self.can_draft and script.drafted > 0
        each_ms = script.drafting_token_ms if drafts else script.token_ms
        shown: dict[str, float] = {"cache_n": 0, "prompt_n": prompt, "prompt_ms": 1.0}
        shown |= {"prompt_per_second": 1000.0, "predicted_n": count, "predicted_ms": count * each_ms}
        shown["predicted_per_second"] = 1000.0 / each_ms
        return shown | ({"draft_n": script.drafted, "draft_n_accepted": script.accepted} if drafts else {})

    async def take_slot(self, prompt: int) -> Slot:
        """Wait for a free slot; the client hears nothing meanwhile, as 15 §5 says."""
        async with self.changed:
            await self.changed.wait_for(lambda: not all(slot.busy for slot in self.slots))
            slot = next(slot for slot in self.slots if not slot.busy)
            slot.busy, slot.task, slot.prompt, slot.decoded = True, self.generations, prompt, 0
            return slot

    async def give_slot(self, slot: Slot) -> None:
        """The slot is idle again."""
        slot.busy = False
        async with self.changed:
            self.changed.notify_all()


@dataclass(frozen=True)
class Reply:
    """One generation: how long its prompt is, how many tokens it gets, how they are wrapped."""

    chat: bool
    model: str
    prompt: int
    count: int
    finish: str
    usage_chunk: bool
    timings: Mapping[str, float]
    native: bool = False
    """`/completion`: the engine's own shape instead of OpenAI's."""

    @classmethod
    def to(cls, engine: Engine, path: str, body: Mapping[str, Any]) -> Reply:
        """The reply to a request body; refuses what the real server refuses."""
        chat = "chat" in path
        key = "messages" if chat else "prompt"
        if key not in body:
            raise HttpRefusal(400, "invalid_request_error", f'"{key}" is required')
        prompt = max(1, len(json.dumps(body[key]).split()))
        if prompt >= engine.slot_context:
            message = "the request exceeds the available context size, try increasing it"
            sizes = {"n_prompt_tokens": prompt, "n_ctx": engine.slot_context}
            raise HttpRefusal(400, "exceed_context_size_error", message, **sizes)
        limits = (body.get(name) for name in ("max_tokens", "max_completion_tokens", "n_predict"))
        limit = next(filter(None, limits), engine.script.tokens)
        count = min(engine.script.tokens, limit)
        finish = "length" if limit < engine.script.tokens else "stop"
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        usage, native = chat and wants_usage, path == "/completion"
        return cls(chat, engine.alias, prompt, count, finish, usage, engine.timings(prompt, count), native)

    @staticmethod
    def token(number: int) -> str:
        """Text of the n-th token; counted, so that a test sees a gap in a stream."""
        return f"t{number} "

    def chunk(self, text: str | None, finish: str | None = None, **extra: Any) -> bytes:
        """One event of a stream."""
        if self.native:
            return event({"content": text or "", "stop": text is None, "id_slot": -1} | extra)
        if self.chat:
            part: dict[str, Any] = {"delta": {} if text is None else {"content": text}}
        else:
            part = {"text": text or "", "logprobs": None}
        choice = {"finish_reason": finish, "index": 0, **part}
        return event(self._frame("chat.completion.chunk", [choice]) | extra)

    def ending(self) -> bytes:
        """The events after the last token, `[DONE]` included."""
        totals = self._totals()
        if not self.usage_chunk:
            last = self.chunk(None, self.finish, **totals)
            return last if self.native else last + b"data: [DONE]\n\n"
        last = event(self._frame("chat.completion.chunk", []) | totals)
        return self.chunk(None, self.finish) + last + b"data: [DONE]\n\n"

    def whole(self) -> dict[str, Any]:
        """The answer of a request that is not streamed."""
        text = "".join(self.token(number) for number in range(self.count))
        if self.native:
            return {"content": text, "stop": True, "tokens_predicted": self.count} | self._totals()
        part = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        choice = {"finish_reason": self.finish, "index": 0, **part}
        return self._frame("chat.completion", [choice]) | self._totals()

    def _frame(self, chat_object: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind = chat_object if self.chat else "text_completion"
        shown = {"choices": choices, "created": 1_700_000_000, "id": "chatcmpl-" + "x" * 32}
        return shown | {"model": self.model, "system_fingerprint": "b1-571d0d5", "object": kind}

    def _totals(self) -> dict[str, Any]:
        tokens = {"completion_tokens": self.count, "prompt_tokens": self.prompt}
        timings = {"timings": self.timings}
        if self.native:
            return timings
        return {"usage": tokens | {"total_tokens": self.prompt + self.count}} | timings


def event(value: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"
