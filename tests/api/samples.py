"""Values as the fleet, planning and the engines give them, small but with every part filled in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from framework.values.device import Device
from framework.values.engine import Capabilities, EngineBinary, EngineRef, FileId
from framework.values.instance import InstanceView, LoadProgress, ModelView, QueueView, Slot, State
from framework.values.manifest import AccessKey, Listener, Manifest, ServerSettings
from framework.values.plan import FitPlan, LaunchPlan, LaunchResult, MemoryLine, Section, SpecDecision
from framework.values.pool import DeviceUse, PoolView, Resident, WaitingView
from framework.values.reason import Reason
from framework.values.request import LiveSettings, ModelRequest, ModelSource, PoolLimits, SpecPolicy

NOON = datetime(2026, 11, 29, 12, 0, 0, 250_000, tzinfo=UTC)
REASON = Reason("context_lowered", "Less than asked.", "Free memory.", "warning", {"path": Path("/m/a.gguf")})
CPU = Device("CPU", "cpu", 8_000, 5_000, "host memory", "default")
GPU = Device("Vulkan0", "gpu", 2_000, 1_000, "llvmpipe", "default")
BINARY = EngineBinary(Path("/e/llama-server"), Path("/e"), FileId(Path("/e/llama-server"), 10, 20), "bundled")
CAPS = Capabilities(
    True, "1 (571d0d5)", "b1-571d0d5", frozenset({"--metrics", "--jinja"}), {"--draft-max": "gone"}
)


def request(name: str = "chat", **changes: object) -> ModelRequest:
    """A model's request with an alias."""
    fields: dict[str, object] = {
        "id": name,
        "source": ModelSource(path=Path(f"/m/{name}.gguf")),
        "spec": SpecPolicy("ngram"),
        "live": LiveSettings(aliases=(f"{name}-alias",)),
    }
    return ModelRequest(**{**fields, **changes})  # type: ignore[arg-type]


def plan(asked: ModelRequest | None = None, **changes: object) -> LaunchPlan:
    """A plan with a secret in its line and its environment."""
    fields: dict[str, object] = {
        "request": asked or request(),
        "replica": 0,
        "main_gguf": Path("/m/chat.gguf"),
        "file_bytes": 100,
        "engine": BINARY,
        "caps": CAPS,
        "spec": SpecDecision("ngram", "ngram-mod", ("--spec-type", "ngram-mod"), None, (REASON,)),
        "sections": (
            Section("entry", ("/e/llama-server", "--port", "{port}")),
            Section("user", ("--hf-token", "hunter2"), "user"),
        ),
        "env": {"LD_LIBRARY_PATH": "/e", "MY_API_KEY": "hunter2"},
        "context": 4096,
        "slots": 4,
        "unified": True,
        "cache_types": ("q8_0", None),
        "fingerprint": "f" * 64,
        "fit": FitPlan((MemoryLine("CPU", "weights", 100, "computed"),), {"CPU": 500}, {"CPU": 100}, None),
        "reasons": (Reason("context_fitted", "What fits."),),
    }
    return LaunchPlan(**{**fields, **changes})  # type: ignore[arg-type]


def instance(**changes: object) -> InstanceView:
    """A ready instance with one busy slot."""
    asked = request()
    fields: dict[str, object] = {
        "instance": "chat.0@3",
        "model": "chat",
        "replica": 0,
        "generation": 3,
        "state": State.READY,
        "since": NOON,
        "restarts": 1,
        "last_error": REASON,
        "progress": LoadProgress("ready", 100, 100, 1.0, "chat.gguf", None),
        "pid": 4711,
        "port": 40_000,
        "request": asked,
        "plan": plan(asked),
        "result": LaunchResult(
            "ready",
            degradations=(REASON, Reason("slots_ignored", "Fewer slots.")),
            context=4096,
            slots=4,
            speculation="ngram-mod",
            offload=False,
        ),
        "last_exit": None,
        "inflight": 1,
        "slots": (
            Slot(0, "generating", 30, 1024, 20, 20, 10, 12.5, {"drafted": 4, "accepted": 2}, None, 0.5),
        ),
        "prompt_tokens_per_s": 100.0,
        "generation_tokens_per_s": 12.5,
    }
    return InstanceView(**{**fields, **changes})  # type: ignore[arg-type]


def model(name: str = "chat", *instances: InstanceView, state: State = State.READY) -> ModelView:
    """A model with the instances given."""
    return ModelView(request(name), state, False, QueueView(1, 16, 0.5, None), instances)


def pool(**changes: object) -> PoolView:
    """A pool with one device, an idle resident, one that is leaving, and a model that waits."""
    use = DeviceUse("CPU", "cpu", "host memory", 8_000, 5_000, 7_000, 700, 300, 650, 2_350, 0.5)
    idle = Resident("chat.0@3", "chat", 0, "default", "resident", {"CPU": 500}, 2, idle_s=7.5)
    leaving = Resident("old.0@1", "old", 0, "default", "leaving", {"CPU": 200}, pinned=True, idle_s=9.0)
    waits = Reason("waiting_for_memory", "chat holds it.", "Wait.", "info")
    fields: dict[str, object] = {
        "limits": PoolLimits(budget_bytes=7_000),
        "devices": (use,),
        "residents": (idle, leaving),
        "next_to_leave": ("chat.0@3",),
        "waiting": (WaitingView("big", 1, 1, 3, 2.5, None, waits),),
        "evictions": 4,
    }
    return PoolView(**{**fields, **changes})  # type: ignore[arg-type]


def manifest(*access: AccessKey, listen: Listener | None = None) -> Manifest:
    """A manifest of two models."""
    return Manifest(
        path=Path("/etc/paddock/serve.toml"),
        sha256="a" * 64,
        files=(Path("/etc/paddock/serve.toml"),),
        server=ServerSettings(listen=listen or Listener()),
        access=access,
        engines={"default": EngineRef()},
        pools={"default": PoolLimits()},
        models={name: request(name) for name in ("chat", "org/other:q4")},
    )
