"""Device lists for planning, shared by starts that come together.

Called by runtime and by whoever shows devices. What is free changes with every load, so a list holds for a
few seconds only; that a binary sees no GPU, or cannot say, stays so for a minute, and so does that a server
let a question wait. Each server is remembered by itself: while an instance holds it, it is as it was before.
Host memory is looked up afresh each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from framework.hardware import remote
from framework.hardware.amd import SpillWatch, read_amd_cards
from framework.hardware.devices import DeviceList, list_local, together, with_host_memory
from framework.hardware.remote import SERVER_TIMEOUT_S, DeviceNumbers, ServerAnswer, ask_server
from framework.values.device import Device
from framework.values.engine import EngineBinary, FileId
from framework.values.reason import Reason

FRESH_S = 3.0
LASTING_S = 60.0
UNKNOWN = "devices_unknown"
# Pairs of engine and environment, and servers; nobody has more in use at once.
MOST_ENTRIES = 256

Answer = TypeVar("Answer")
Key = TypeVar("Key")


@dataclass
class _Entry(Generic[Answer]):
    """One question, its last answer, and when that was given."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    answer: Answer | None = None
    asked_s: float = 0.0
    answered_s: float = 0.0
    """Its age counts from here: an engine that takes long to answer is not asked by each caller anew."""
    holds_s: float = 0.0


class DeviceCache:
    """Device lists of this process. Belongs to one event loop."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        server_timeout_s: float = SERVER_TIMEOUT_S,
    ) -> None:
        self.held: Callable[[], Collection[str]] = frozenset
        """`host:port` of servers that instances hold, or may still hold: they are not asked. Set by whoever
        starts instances."""
        self._clock = clock
        self._server_timeout_s = server_timeout_s
        self._local: dict[object, _Entry[DeviceList]] = {}
        self._servers: dict[tuple[FileId, str], _Entry[ServerAnswer]] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        """Engines of several builds must not meet at a server either."""
        self._known: dict[str, tuple[Device, ...]] = {}
        self._away: dict[str, Reason] = {}
        self._numbers = DeviceNumbers()
        self._spills = SpillWatch()

    async def get(
        self,
        binary: EngineBinary,
        environ: Mapping[str, str],
        *,
        rpc: Sequence[str] = (),
        max_age_s: float | None = None,
    ) -> DeviceList:
        """What `list_devices` says now or said just now. Never raises; callers that come together share.

        Remote devices keep their names for the life of this cache; those of servers that are met for the
        first time are counted in the order of `rpc`. `max_age_s` is how old an answer may be; None leaves
        that to what was answered.
        """
        servers = tuple(dict.fromkeys(rpc))
        asking = [self._server(binary, environ, endpoint, max_age_s) for endpoint in servers]
        local, answers = await asyncio.gather(
            self._locally(binary, environ, max_age_s), asyncio.gather(*asking)
        )
        return with_host_memory(together(local, self._numbers.named(servers, answers), answers))

    def why_not(self, endpoint: str) -> Reason | None:
        """Why a server gave no devices when it was asked last; None where it did, or never was.

        Thread-safe.
        """
        return self._away.get(endpoint)

    async def get_anew(
        self, binary: EngineBinary, environ: Mapping[str, str], *, rpc: Sequence[str] = ()
    ) -> DeviceList:
        """What `list_devices` says now; whoever asks next is spared the question."""
        return await self.get(binary, environ, rpc=rpc, max_age_s=0.0)

    async def until_quiet(self, endpoints: Collection[str]) -> None:
        """Wait until no question to these servers is on its way. Whoever starts an instance on them first
        makes them `held`, then waits for this: a question that meets an engine at its server must be killed.
        """
        for turn in [self._turns[endpoint] for endpoint in endpoints if endpoint in self._turns]:
            async with turn:
                pass

    async def _locally(
        self, binary: EngineBinary, environ: Mapping[str, str], max_age_s: float | None
    ) -> DeviceList:
        entry = _entry(self._local, (binary.file, frozenset(environ.items())))

        async def ask() -> tuple[DeviceList, float]:
            found = await self._with_spills(await list_local(binary, environ))
            if (known := entry.answer) is not None and _has_gpus(known) and not _is_known(found):
                # One failed question does not take GPUs away, or models would move to the CPU.
                return replace(known, reasons=tuple(map(_as_before, found.reasons))), FRESH_S
            # Without a GPU nothing changes: neither where there is none, nor where asking failed.
            return found, FRESH_S if _has_gpus(found) else LASTING_S

        return await self._answer(entry, ask, max_age_s)

    async def _server(
        self,
        binary: EngineBinary,
        environ: Mapping[str, str],
        endpoint: str,
        max_age_s: float | None,
    ) -> ServerAnswer:
        def as_known() -> ServerAnswer:
            return remote.held(endpoint, self._known.get(endpoint, ()))

        if endpoint in self.held():
            return as_known()

        async def ask() -> tuple[ServerAnswer, float]:
            if endpoint in self.held():  # since this caller began to wait for its turn
                return as_known(), 0.0
            answer = await ask_server(binary, environ, endpoint, timeout_s=self._server_timeout_s)
            if answer.reason is not None:
                self._away[endpoint] = answer.reason
            else:
                self._away.pop(endpoint, None)
                self._known[endpoint] = answer.devices
            return answer, LASTING_S if answer.hung else FRESH_S

        # One that hangs is left alone, however fresh an answer is wanted: each question that is given up may
        # end the server.
        entry = _entry(self._servers, (binary.file, endpoint))
        entry.lock = self._turns.setdefault(endpoint, entry.lock)
        hung = entry.answer is not None and entry.answer.hung
        return await self._answer(entry, ask, None if hung else max_age_s)

    async def _answer(
        self,
        entry: _Entry[Answer],
        ask: Callable[[], Awaitable[tuple[Answer, float]]],
        max_age_s: float | None,
    ) -> Answer:
        wanted_s = self._clock()
        async with entry.lock:
            age_s = self._clock() - entry.answered_s
            allowed_s = entry.holds_s if max_age_s is None else max_age_s
            # What was asked while this caller waited for its turn is as good as new.
            known = entry.answer if entry.asked_s > wanted_s or age_s < allowed_s else None
            if known is None:
                asked_s = self._clock()
                known, entry.holds_s = await ask()
                entry.answer, entry.asked_s, entry.answered_s = known, asked_s, self._clock()
            return known

    async def _with_spills(self, found: DeviceList) -> DeviceList:
        if not any(device.name.startswith("ROCm") for device in found.devices):
            return found
        spilled = self._spills.look(await asyncio.to_thread(read_amd_cards))
        return replace(found, reasons=(*found.reasons, *spilled))


def _entry(entries: dict[Key, _Entry[Answer]], key: Key) -> _Entry[Answer]:
    if key not in entries and len(entries) >= MOST_ENTRIES:
        for idle in [known for known, entry in entries.items() if not entry.lock.locked()]:
            del entries[idle]
    return entries.setdefault(key, _Entry())


def _has_gpus(found: DeviceList) -> bool:
    return any(device.kind == "gpu" for device in found.devices)


def _is_known(found: DeviceList) -> bool:
    return not any(reason.code == UNKNOWN for reason in found.reasons)


def _as_before(reason: Reason) -> Reason:
    if reason.code != UNKNOWN:
        return reason
    engine = reason.evidence.get("path", "The engine")
    return Reason(
        "devices_as_before",
        f"{engine} did not list its devices this time; those that it listed before are planned with.",
        reason.remedy,
        reason.severity,
        reason.evidence,
    )
