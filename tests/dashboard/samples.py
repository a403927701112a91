"""Values to make pages from: models in every state, full slots, hostile names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.event import Event
from framework.values.instance import InstanceView, LoadProgress, ModelView, QueueView, Slot, State
from framework.values.naming import instance_name
from framework.values.plan import Attempt, LaunchPlan, LaunchResult, Section, SpecDecision
from framework.values.reason import Failure, Reason
from framework.values.request import LiveSettings, ModelRequest, ModelSource

NOW = datetime(2026, 3, 4, 3, 12, 45, tzinfo=UTC)
MIB = 2**20
GIB = 2**30

STARTED_ARGV = ("/opt/llama.cpp/bin/llama-server", "--port", "43117", "--api-key", "<redacted>")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202eexe.gpj",
    "a/b:c%2Fd?e=f#g&h",
    "tab\u200bzero\u2066isolate",
    "x" * 200,
    "{{ 7*7 }}{% raw %}",
    "'; DROP TABLE models; --",
)
"""Names and texts that must come out as text, whatever they hold."""

NO_MEMORY = Reason(
    "out_of_memory",
    "The engine ran out of memory on CUDA0 while it loaded the model.",
    "Lower context, use fewer slots, or choose a smaller quantisation.",
    "error",
    {"device": "CUDA0", "needed_bytes": 9 * GIB},
)
CONTEXT_CUT = Reason(
    "context_lowered",
    "The engine allocated 8,192 tokens of context instead of 32,768.",
    "Set context = 8192, or free memory on the device.",
    "warning",
    {"asked": 32768, "granted": 8192},
)
KNOBS = Reason(
    "ngram_knobs_missing",
    "The n-gram tuning flags are unknown to this llama-server build; its own defaults apply.",
    "Install a newer llama.cpp build to use the ngram settings of the policy.",
)


def request(name: str = "smollm2", **fields: Any) -> ModelRequest:
    """A request; `live` fields are given as `live={...}`."""
    live = LiveSettings(**fields.pop("live", {}))
    source = ModelSource(path=Path("/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
    return ModelRequest(id=name, source=source, live=live, **{"n_ctx": 4096, **fields})


def plan(asked: ModelRequest, **fields: Any) -> LaunchPlan:
    """What planning made of a request."""
    entry = Path("/opt/llama.cpp/bin/llama-server")
    values: dict[str, Any] = {
        "request": asked,
        "replica": 0,
        "main_gguf": Path("/models/SmolLM2-135M-Instruct.Q4_1.gguf"),
        "file_bytes": 98 * MIB,
        "engine": EngineBinary(
            entry, entry.parent, FileId(entry, 1, 1), "path", env={"LD_LIBRARY_PATH": "/opt"}
        ),
        "caps": Capabilities(conclusive=True, version="b10068"),
        "spec": SpecDecision("ngram", "ngram-mod", notes=(KNOBS,)),
        "sections": (
            Section("model", (str(entry), "-m", "/models/SmolLM2-135M-Instruct.Q4_1.gguf")),
            Section(
                "listen", ("--host", "127.0.0.1", "--port", "{port}", "--ctx-size", "4096", "--parallel", "4")
            ),
            Section("user", ("--api-key", "very-secret"), "user"),
        ),
        "env": {"LD_LIBRARY_PATH": "/opt", "HOME": "/home/op"},
        "context": 4096,
        "slots": 4,
        "unified": True,
        "cache_types": ("q8_0", None),
        "fingerprint": "0" * 64,
    }
    return LaunchPlan(**{**values, **fields})


def result(**fields: Any) -> LaunchResult:
    """What a launch turned out to run."""
    attempt = Attempt(1, "S", STARTED_ARGV, "healthy", None, 1.8, Path("/state/logs/smollm2.log"))
    values: dict[str, Any] = {
        "outcome": "ready",
        "attempts": (attempt,),
        "context": 4096,
        "slots": 4,
        "speculation": "ngram-mod",
        "offload": True,
        "load_s": 1.84,
    }
    return LaunchResult(**{**values, **fields})


def slot(number: int = 0, **fields: Any) -> Slot:
    """An idle slot."""
    values: dict[str, Any] = {
        "id": number,
        "state": "idle",
        "context_tokens": 0,
        "context_limit": 4096,
        "prompt_tokens": 0,
        "prompt_done": 0,
        "generated": 0,
        "tokens_per_s": None,
        "draft": None,
        "request_id": None,
        "stale_s": 0.4,
    }
    return Slot(**{**values, **fields})


def busy_slot(number: int = 0, **fields: Any) -> Slot:
    """A slot in the middle of an answer."""
    values: dict[str, Any] = {
        "state": "generating",
        "context_tokens": 1536,
        "prompt_tokens": 512,
        "prompt_done": 512,
        "generated": 1024,
        "tokens_per_s": 41.27,
        "draft": {"drafted": 200, "accepted": 150},
    }
    return slot(number, **{**values, **fields})


def instance(asked: ModelRequest, state: State = State.READY, **fields: Any) -> InstanceView:
    """An instance; a ready one has plan, result, process and four slots."""
    live = state in (State.READY, State.DRAINING)
    started = live or state in (State.STARTING, State.STOPPING)
    replica, generation = fields.pop("replica", 0), fields.pop("generation", 1)
    values: dict[str, Any] = {
        "instance": instance_name(asked.id, replica, generation),
        "model": asked.id,
        "replica": replica,
        "generation": generation,
        "state": state,
        "since": NOW,
        "restarts": 0,
        "last_error": None,
        "progress": None,
        "pid": 4242 if started else None,
        "port": 43117 if started else None,
        "request": asked,
        "plan": plan(asked) if started else None,
        "result": result() if live else None,
        "last_exit": None,
        "inflight": 2 if live else 0,
        "slots": (busy_slot(0), reading_slot(1), slot(2), slot(3)) if live else (),
        "prompt_tokens_per_s": 812.5 if live else None,
        "generation_tokens_per_s": 41.27 if live else None,
    }
    return InstanceView(**{**values, **fields})


def reading_slot(number: int = 0) -> Slot:
    """A slot that reads a prompt."""
    return slot(
        number, state="processing_prompt", context_tokens=900, prompt_tokens=2048, prompt_done=900, draft=None
    )


def model(name: str = "smollm2", state: State = State.READY, **fields: Any) -> ModelView:
    """A model in a state, with the instance that goes with it."""
    asked = fields.pop("asked", None) or request(name)
    given = fields.pop("instances", None)
    instances = given if given is not None else () if state is State.STOPPED else (instance(asked, state),)
    values = {"replacing": False, "queue": QueueView(0, 16, None, None), **fields}
    return ModelView(request=asked, state=state, instances=tuple(instances), **values)


def loading(name: str = "coder") -> ModelView:
    """A model in the middle of its load."""
    asked = request(name, n_ctx=0, live={"aliases": ("gpt-4o",), "display_name": "Qwen Coder 32B"})
    progress = LoadProgress("mapping", 7 * GIB, 19 * GIB, 0.3684, "part-1.gguf", 42.4)
    view = model(name, State.STARTING, asked=asked, queue=QueueView(3, 16, 12.0, 42.0))
    return replace(view, instances=(replace(view.instances[0], progress=progress),))


def failed(name: str = "big") -> ModelView:
    """A model that gave up."""
    asked = request(name, n_ctx=32768)
    attempt = Attempt(1, "S", ("llama-server",), "exited", 1, 3.2, Path("/state/logs/big.log"))
    failure = Failure(NO_MEMORY, "exit code 1\nggml_cuda: out of memory\nlog: /state/logs/big.log")
    ended = result(
        outcome="failed", attempts=(attempt,), failure=failure, context=None, slots=0, offload=None
    )
    gone = instance(asked, State.FAILED, last_error=NO_MEMORY, plan=plan(asked), result=ended)
    return model(name, State.FAILED, asked=asked, instances=(gone,))


def degraded(name: str = "long-context") -> ModelView:
    """A model that runs with less than was asked."""
    asked = request(name, n_ctx=32768, cache_type=("q8_0", "q8_0"), live={"aliases": ("long",)})
    lowered = result(context=8192, degradations=(CONTEXT_CUT,))
    return model(
        name,
        State.READY,
        asked=asked,
        instances=(instance(asked, plan=plan(asked, context=32768), result=lowered),),
    )


def event(number: int, kind: str = "state", **fields: Any) -> Event:
    """An event."""
    values: dict[str, Any] = {"message": "starting -> ready: healthy", "model": "smollm2", "replica": 0}
    return Event(id=number, kind=kind, **{"at": NOW, **values, **fields})
