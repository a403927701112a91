"""The routes that generate, in front of an engine whose results a test writes itself.

The tokens are bytes, and `<|im_end|>` is one special token. Nothing decodes: `results` says what each
task gets as soon as it is submitted, `push` gives more.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from framework.nativeserver import embeddings, infill, native_completion, oai_completion, rerank
from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.errors import ApiError
from framework.nativeserver.gate import Gate
from framework.nativeserver.options import ServerOptions
from framework.nativeserver.services import Services
from framework.nativeserver.transport import error_response
from tests.nativeserver import drafting
from tests.proxy.asgi_client import AsgiCall, start_call

SPECIAL = b"<|im_end|>"
SPECIAL_ID = 256
N_VOCAB = 300
ROUTES = {
    "/completion": native_completion.endpoint,
    "/v1/completions": oai_completion.endpoint,
    "/infill": infill.endpoint,
    "/embeddings": embeddings.native_endpoint,
    "/v1/embeddings": embeddings.oai_endpoint,
    "/rerank": rerank.endpoint,
}
TIMINGS = SimpleNamespace(
    cache_n=2,
    prompt_n=8,
    prompt_ms=4.0,
    prompt_per_token_ms=0.5,
    prompt_per_second=2000.0,
    predicted_n=5,
    predicted_ms=50.0,
    predicted_per_token_ms=10.0,
    predicted_per_second=100.0,
)


class GrammarTrigger:
    """As of the core."""

    def __init__(self, kind: str = "word", value: str = "", token: int = -1) -> None:
        self.kind, self.value, self.token = kind, value, token


def sampling_params() -> SimpleNamespace:
    """SamplingParams with the core's defaults."""
    return SimpleNamespace(
        seed=-1,
        samplers=[
            "penalties",
            "dry",
            "top_n_sigma",
            "top_k",
            "typ_p",
            "top_p",
            "min_p",
            "xtc",
            "temperature",
        ],
        temperature=0.8,
        dynatemp_range=0.0,
        dynatemp_exponent=1.0,
        top_k=40,
        top_p=0.95,
        min_p=0.05,
        top_n_sigma=-1.0,
        typical_p=1.0,
        xtc_probability=0.0,
        xtc_threshold=0.1,
        repeat_last_n=64,
        repeat_penalty=1.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        dry_multiplier=0.0,
        dry_base=1.75,
        dry_allowed_length=2,
        dry_penalty_last_n=-1,
        dry_sequence_breakers=["\n", ":", '"', "*"],
        mirostat=0,
        mirostat_tau=5.0,
        mirostat_eta=0.1,
        adaptive_target=-1.0,
        adaptive_decay=0.9,
        min_keep=0,
        ignore_eos=False,
        logit_bias=[],
        grammar="",
        grammar_lazy=False,
        grammar_triggers=[],
        preserved_tokens=[],
        reasoning=SimpleNamespace(
            start_tag="", end_tags=[], budget_tokens=-1, message="", starts_open=False, controllable=False
        ),
    )


def generation_params() -> SimpleNamespace:
    """GenerationParams with the core's defaults."""
    return SimpleNamespace(
        sampling=sampling_params(),
        n_predict=-1,
        n_keep=0,
        n_discard=0,
        n_indent=0,
        n_cache_reuse=0,
        t_max_predict_ms=0,
        cache_prompt=True,
        stream=False,
        return_tokens=False,
        return_progress=False,
        timings_per_token=False,
        post_sampling_probs=False,
        n_probs=0,
        stop=[],
        lora=None,
        speculation=drafting.speculation_request(),
        loop_guard=drafting.loop_guard_params(),
    )


def new_task() -> SimpleNamespace:
    """Task with the core's defaults."""
    return SimpleNamespace(
        id=0,
        kind="completion",
        index=0,
        tokens=[],
        params=None,
        id_slot=-1,
        completion_id="",
        children=[],
        parent=-1,
        embd_normalize=2,
    )


def result(task: Any, kind: str, **fields: Any) -> SimpleNamespace:
    """A result of a task."""
    base: dict[str, Any] = {
        "id": task.id,
        "kind": kind,
        "index": task.index,
        "id_slot": 0,
        "text": b"",
        "tokens": [],
        "records": [],
        "n_decoded": 0,
        "n_prompt_tokens": len(task.tokens),
        "n_prompt_cached": 0,
        "has_timings": kind == "final",
        "timings": TIMINGS,
        "is_progress": False,
        "progress": None,
        "truncated": False,
        "has_new_line": False,
        "stop": "eos",
        "stop_detail": "",
        "stopping_word": b"",
        "n_tokens_cached": 0,
        "n_reasoning_tokens": 0,
        "speculation": drafting.report(),
        "loop_guard": drafting.guard_report(),
        "embeddings": [],
        "score": 0.0,
        "error": "server",
        "n_ctx": 0,
    }
    return SimpleNamespace(**{**base, **fields})


def partial(task: Any, text: bytes, **fields: Any) -> SimpleNamespace:
    """Some text of a stream."""
    return result(task, "partial", text=text, **fields)


def final(task: Any, text: bytes = b"", **fields: Any) -> SimpleNamespace:
    """The last result of a generating task."""
    return result(task, "final", text=text, **fields)


def failure(task: Any, kind: str = "server", text: bytes = b"broken", **fields: Any) -> SimpleNamespace:
    """An error result."""
    return result(task, "error", error=kind, text=text, **fields)


Answering = Callable[[Any], Sequence[Any]]


class WrittenEngine:
    """The engine of the extension as far as the bridge calls it."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []
        self.cancelled: list[int] = []
        self.results: Answering = lambda task: [final(task, b"hello", n_decoded=5)]
        self.n_slots_ = 4
        self.meta_ = SimpleNamespace(
            n_vocab=N_VOCAB,
            n_embd=3,
            library_version="b-test",
            rerank_template="",
            bos=1,
            eos=2,
            sep=3,
            fim_prefix=-1,
            fim_suffix=-1,
            fim_middle=-1,
            fim_repository=-1,
            fim_separator=-1,
            adds_bos=False,
            adds_eos=False,
            adds_sep=False,
        )
        self.facts_ = SimpleNamespace(n_ctx_slot=1024, n_batch=512, pooling=1)
        self.speculation_ = drafting.speculation()
        self._waiting: deque[Any] = deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK)

    def submit(self, tasks: Sequence[Any]) -> list[int]:
        for task in tasks:
            task.id = len(self.tasks) + 1
            self.tasks.append(task)
        for task in tasks:
            self.push(*self.results(task))
        return [task.id for task in tasks]

    def push(self, *results: Any) -> None:
        self._waiting.extend(results)
        if results:
            os.eventfd_write(self._fd, 1)

    def poll(self, most: int, wait: bool) -> list[Any]:
        if not self._waiting:
            return []
        if len(self._waiting) <= most:
            os.eventfd_read(self._fd)
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def cancel(self, ids: Sequence[int]) -> None:
        self.cancelled += ids

    def notify_fd(self) -> int:
        return self._fd

    def state(self) -> str:
        return "ready"

    def meta(self) -> Any:
        return self.meta_

    def facts(self) -> Any:
        return self.facts_

    def n_slots(self) -> int:
        return self.n_slots_

    def speculation(self) -> Any:
        return self.speculation_

    def tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        parts = text.split(SPECIAL) if parse_special else [text]
        tokens = list(parts[0])
        for part in parts[1:]:
            tokens += [SPECIAL_ID, *part]
        return tokens

    def detokenize(self, ids: Sequence[int], special: bool) -> bytes:
        texts = {SPECIAL_ID: SPECIAL}
        return b"".join(bytes([token]) if token < SPECIAL_ID else texts.get(token, b"") for token in ids)

    def piece(self, token: int, special: bool) -> bytes:
        return self.detokenize([token], special)

    def close(self) -> None:
        os.close(self._fd)


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_response(error)


class World:
    """Application, engine, and a client below HTTP."""

    def __init__(self, **options: Any) -> None:
        self.engine = WrittenEngine()
        module = SimpleNamespace(
            Task=new_task,
            GenerationParams=generation_params,
            GrammarTrigger=GrammarTrigger,
            EngineParams=drafting.engine_params,
        )
        self.bridge = EngineBridge(self.engine, module)  # type: ignore[arg-type]
        self.services = Services(
            options=ServerOptions(engine={}, **options),
            bridge=self.bridge,
            model_name="small",
            started_at=1,
            created_at=1,
        )
        routes = [Route(path, endpoint, methods=["POST"]) for path, endpoint in ROUTES.items()]
        inner = Starlette(routes=routes, exception_handlers={ApiError: _answer_error})
        inner.state.services = self.services
        self.app = Gate(inner, self.services)

    def start(self, path: str, body: Any) -> AsgiCall:
        """Begin a request."""
        return start_call(self.app, path, body)

    async def post(self, path: str, body: Any) -> AsgiCall:
        """The whole answer."""
        return await self.start(path, body).finished()

    async def submitted(self, count: int = 1) -> list[Any]:
        """The tasks, once there are that many."""
        async with asyncio.timeout(5):
            while len(self.engine.tasks) < count:
                await asyncio.sleep(0)
        return self.engine.tasks


@asynccontextmanager
async def generation_world(**options: Any) -> Any:
    """A world whose bridge is at work."""
    world = World(**options)
    async with world.bridge:
        yield world
    world.engine.close()
