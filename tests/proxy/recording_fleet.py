"""A fleet that gives leases on one scripted engine and records what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from framework.runtime.engine_client import EngineClient
from framework.runtime.lease import FailureKind, Glance, Lease, LeaseRefused, RetryVerdict
from framework.values.instance import ModelView, QueueView, State
from framework.values.manifest import Manifest
from framework.values.reasoning import NO_REASONING, ReasoningFacts

TOKEN = "launch-key-of-the-engine"


@dataclass(frozen=True)
class Failed:
    """One report of a broken connection. `released` tells whether the lease was back by then."""

    instance: str
    kind: FailureKind
    opened: bool
    released: bool


@dataclass
class RecordingFleet:
    """Instances are numbered by the leases given, so that a retry shows in the name."""

    manifest: Callable[[], Manifest]
    url: Callable[[], str]
    slot_context: int = 2048
    vision: bool = False
    audio: bool = False
    reasoning: ReasoningFacts = NO_REASONING
    loaded: bool = True
    refusal: LeaseRefused | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Leases are given while this is set."""
    verdicts: list[RetryVerdict] = field(default_factory=list)
    acquired: list[tuple[str, str | None]] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    waiting: int = 0
    ended: Container[str] = ()
    """Instances whose process has ended although nobody has seen it yet."""

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def open_leases(self) -> int:
        """Leases that were not given back."""
        return sum(not lease.released for lease in self.leases)

    def views(self) -> tuple[ModelView, ...]:
        """Every declared model, stopped."""
        queue = QueueView(0, 16, None, None)
        models = self.manifest().models.values()
        return tuple(ModelView(request, State.STOPPED, False, queue, ()) for request in models)

    def resolve(self, name: str) -> str | None:
        """As the manifest says."""
        return self.manifest().resolve(name)

    async def glance(self, model_id: str, path: str, *, timeout_s: float) -> Glance | None:
        """What the engine answers, while it is said to be loaded."""
        if not self.loaded:
            return None
        client, port = EngineClient(), int(self.url().rpartition(":")[2])
        looked = await client.look(port, TOKEN, path, timeout_s)
        await client.close()
        return Glance(self.manifest().models[model_id], *looked)

    async def acquire(self, model_id: str, *, key: str | None) -> Lease:
        """A lease, or the refusal that is set."""
        self.acquired.append((model_id, key))
        self.waiting += 1
        try:
            await self.gate.wait()
        finally:
            self.waiting -= 1
        if self.refusal is not None:
            raise self.refusal
        number = len(self.leases) + 1
        name = f"{model_id}.0@{number}"
        lease = Lease(
            instance=name,
            model=model_id,
            replica=0,
            generation=number,
            base_url=self.url(),
            headers={"Authorization": f"Bearer {TOKEN}"},
            request=self.manifest().models[model_id],
            slot_context=self.slot_context,
            vision=self.vision,
            revoked=asyncio.get_running_loop().create_future(),
            on_release=lambda released: None,
            audio=self.audio,
            reasoning=self.reasoning,
            is_over=lambda: name in self.ended,
        )
        self.leases.append(lease)
        return lease

    async def report_failure(self, lease: Lease, kind: FailureKind, *, opened: bool) -> RetryVerdict:
        """The next verdict; without one, no retry."""
        self.failures.append(Failed(lease.instance, kind, opened, lease.released))
        return self.verdicts.pop(0) if self.verdicts else RetryVerdict(False, "connection_lost")
