"""The whole application in front of a core that does what a test says: states, wakes, slots, counts, results.

For faults and timing that the real core does not show on demand. Results may come from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
from starlette.applications import Starlette

from framework.chat.template import ChatTemplate
from framework.nativeserver.app import make_app
from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.options import ServerOptions
from tests.nativeserver import drafting
from tests.nativeserver.generation_world import (
    TIMINGS,
    GrammarTrigger,
    WrittenEngine,
    generation_params,
    new_task,
    result,
)

TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
COUNTS = (
    "prompt_tokens prompt_tokens_cached prompt_us predicted_tokens predicted_us n_decode n_tokens_max"
    " busy_slots refills checkpoints_created checkpoints_restored checkpoints_evicted"
)


def small_task() -> SimpleNamespace:
    """Task with the attributes of actions as well."""
    action = {"file_name": "", "file_path": "", "lora_scales": {}}
    return SimpleNamespace(**{**vars(new_task()), **action})


MODULE = SimpleNamespace(
    Task=small_task,
    GenerationParams=generation_params,
    GrammarTrigger=GrammarTrigger,
    EngineParams=drafting.engine_params,
)


def slot_view(number: int = 0, state: str = "idle", **fields: Any) -> SimpleNamespace:
    """SlotView of a slot that was never used."""
    base: dict[str, Any] = {
        "id": number,
        "n_ctx": 1024,
        "state": state,
        "idle_ms": -1,
        "n_cached_tokens": 0,
        "n_checkpoints": 0,
        "was_used": False,
        "id_task": -1,
        "n_prompt_tokens": 0,
        "n_prompt_processed": 0,
        "n_prompt_cached": 0,
        "has_next_token": False,
        "has_new_line": False,
        "n_remaining": -1,
        "n_decoded": 0,
        "timings": TIMINGS,
        "params": None,
        "prompt_tokens": [],
        "generated": b"",
        "speculation": drafting.report(),
        "loop_guard": drafting.guard_report(),
    }
    return SimpleNamespace(**{**base, **fields})


def totals(**fields: Any) -> SimpleNamespace:
    """Totals of a fresh engine."""
    rates = {"prompt_rate": 0.0, "predicted_rate": 0.0, "decode_failures": {}}
    rates |= {"speculation": drafting.speculation_totals()}
    return SimpleNamespace(**{**dict.fromkeys(COUNTS.split(), 0), **rates, **fields})


def done(task: Any, kind: str, **fields: Any) -> SimpleNamespace:
    """The result of an action."""
    base = {"n_slot_tokens": 0, "n_bytes": 0, "action_ms": 1.5, "loras": [], "success": False}
    return result(task, kind, **{**base, **fields})


class SmallCore(WrittenEngine):
    """An engine whose state a test sets; safe to push from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.state_ = "ready"
        self.wake_result = True
        self.wakes = 0
        self.may_wake = threading.Event()
        self.may_wake.set()
        self.results = lambda task: []
        self.slots_ = [slot_view(0), slot_view(1)]
        self.n_slots_ = 2
        self.totals_ = totals()
        self._lock = threading.Lock()
        self.meta_.__dict__.update(
            chat_template=TEMPLATE,
            chat_template_tool_use="",
            bos_text="<s>",
            eos_text="</s>",
            file_type="Q4_1",
            vocab_type=2,
            n_ctx_train=8192,
            n_embd=576,
            n_params=134515008,
            size_bytes=96576768,
        )
        self.facts_.__dict__.update(
            n_swa=0,
            is_recurrent=False,
            is_hybrid=False,
            kv_unified=True,
            n_ubatch=512,
            removal="partial",
            backend_sampler=True,
            backend_multi_output=False,
        )

    def submit(self, tasks: Sequence[Any]) -> list[int]:
        """As the real core, which copies what it is given."""
        return super().submit([SimpleNamespace(**vars(task)) for task in tasks])

    def push(self, *results: Any) -> None:
        with self._lock:
            super().push(*results)

    def poll(self, most: int, wait: bool) -> list[Any]:
        with self._lock:
            return super().poll(most, wait)

    def state(self) -> str:
        return self.state_

    def wake(self) -> bool:
        self.wakes += 1
        self.may_wake.wait(10)
        if self.wake_result:
            self.state_ = "ready"
        return self.wake_result

    def snapshot(self) -> Any:
        busy = sum(view.state != "idle" for view in self.slots_)
        return SimpleNamespace(
            state=self.state_,
            slots=self.slots_,
            totals=self.totals_,
            n_processing=busy,
            n_deferred=0,
            prompt_cache_bytes=0,
            prompt_cache_entries=0,
        )

    def tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        self._need_model()
        return [1] * add_special + super().tokenize(text, add_special, parse_special)

    def detokenize(self, ids: Sequence[int], special: bool) -> bytes:
        self._need_model()
        return super().detokenize(ids, special)

    def piece(self, token: int, special: bool) -> bytes:
        return self.detokenize([token], special)

    def _need_model(self) -> None:
        if self.state_ != "ready":
            raise RuntimeError("the engine has no model in memory; load() or wake() it")


class SmallWorld:
    """Core, application, and a client of it."""

    def __init__(self, core: SmallCore, app: Starlette, client: httpx.AsyncClient) -> None:
        self.core = core
        self.app = app
        self.client = client

    async def get(self, path: str, **options: Any) -> httpx.Response:
        """An answer, whatever its status."""
        return await self.client.get(path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """An answer to a JSON body, or to none."""
        extra = {} if body is None else {"json": body}
        return await self.client.post(path, **extra, **options)


@asynccontextmanager
async def small_world(**options: Any) -> AsyncIterator[SmallWorld]:
    """A server whose model is loaded. `options` are those of ServerOptions."""
    core = SmallCore()
    given = {"engine": {"model_path": "/models/small.gguf"}, **options}
    settings = ServerOptions(**given)
    async with EngineBridge(core, MODULE, withheld=settings.undrafted_types) as bridge:  # type: ignore[arg-type]
        app = make_app(settings, bridge)
        app.state.services.templates = ChatTemplate(TEMPLATE, bos="<s>", eos="</s>")
        app.state.services.created_at = 1_700_000_000
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            yield SmallWorld(core, app, client)
    core.close()
