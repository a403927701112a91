"""Systems in the states that a dashboard has to look good in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from framework.editing.documents import ManifestFile
from framework.editing.history import History
from framework.proxy.inflight import InFlight
from framework.proxy.records import ActiveRequest
from framework.values.instance import QueueView, State
from framework.values.manifest import AccessKey
from framework.values.reason import Reason
from tests.api.model_folder import fill
from tests.dashboard import fits, pool_samples, samples, spec_samples
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.renders import PROBLEM, hostile_pool, planned, retrying
from tests.dashboard.samples import GIB, HOSTILE
from tests.telemetry.samples import record

WATCH_KEY = "look"
"""Of a system that is closed."""
WIDE = "wide"
"""The model with 64 slots."""


def empty(folder: Path) -> FakeSystem:
    """No model is declared, and nothing has happened."""
    return make_system(folder=folder)


def ordinary(folder: Path) -> FakeSystem:
    """Everything once: states, memory, drafting, pools with a queue, files, events, a log."""
    system = make_system(
        samples.model(asked=samples.request(live={"aliases": ("small", "gpt-4o-mini"), "replicas": 2})),
        samples.loading(),
        samples.failed(),
        samples.degraded(),
        samples.model("idle", State.STOPPED),
        samples.model("leaving", State.DRAINING, removed=True),
        samples.model("flaky", State.BACKOFF, instances=(retrying(),)),
        samples.model("big-one", State.PENDING, queue=QueueView(3, 16, 4.2, 11.7, position=1)),
        planned("on-host", fits.ON_HOST),
        planned("on-two", fits.ON_TWO, samples.result(buffers=fits.SAID_OF_TWO, held_bytes={"CPU": 2 * GIB})),
        planned("on-three", fits.ON_THREE),
        *spec_samples.all_models()[:-1],
        folder=fill(folder),
    )
    write_manifest(folder)
    system.fleet.show(*pool_samples.all_pools())
    events = system.services.events
    events.record("manifest_loaded", "12 models")
    events.record("state", "starting -> ready: healthy", model="smollm2", data={"seconds": 1.8})
    events.record("degraded", "context lowered", model="smollm2", reason=samples.CONTEXT_CUT)
    events.record("failed", samples.NO_MEMORY.message, model="big", reason=samples.NO_MEMORY)
    system.fleet.write("smollm2", *[f"line {number} " + "word " * 40 for number in range(100)])
    ask(system, "smollm2", "laptop")
    return system


def ask(system: FakeSystem, model: str, key: str) -> None:
    """A request that is served now, and some that ended."""
    in_flight, history = system.services.requests, system.services.history
    assert isinstance(in_flight, InFlight)
    request_id = f"req-{len(in_flight.views())}"
    in_flight.add(ActiveRequest(request_id, samples.NOW, "/v1/completions", 0.0, key=key, model=model))
    for status in (200, 200, 429, 502):
        ended = record(1, model=model, status=status, drafted=9, generation_tokens_per_s=41.0)
        history.request_ended(ended, ago_s=30.0 * (status - 199))
    history.known_for(3600.0)
    history.looked(system.fleet.views(), system.fleet.pools())


def write_manifest(folder: Path) -> None:
    """A text with a mistake in it, and one that was replaced before."""
    file = ManifestFile("serve.toml", folder / "serve.toml", b"[models.a]\nslots = 2\n")
    file.path.write_text(f"[models.a]\nslots = 4\nslot = 5  # {'a long comment ' * 20}\n", encoding="utf-8")
    name = str(file.path)
    History(folder).keep(
        replace(file, name=name), "b" * 64, at=samples.NOW, by="laptop", summary="replaces a"
    )


def broken(folder: Path) -> FakeSystem:
    """A manifest that does not apply; what was read before it runs on."""
    system = make_system(samples.failed(), folder=fill(folder))
    system.current.problems = (PROBLEM,) * 3
    system.current.server_notices = ("listen",)
    return system


def hostile(folder: Path) -> FakeSystem:
    """Hostile text in every name, message and line, one of them 200 characters long."""
    views = []
    for text in HOSTILE:
        live = {"aliases": (f"{text} too",), "display_name": text}
        failed = samples.instance(
            samples.request(text),
            State.FAILED,
            last_error=Reason("a_code", text, text, "error", {text: text}),
        )
        views += [
            samples.model(text, asked=samples.request(text, live=live)),
            samples.model(f"{text} failed", State.FAILED, instances=(failed,)),
            spec_samples.hostile(f"{text} drafts"),
        ]
    system = make_system(*views, folder=fill(folder))
    system.fleet.show(*map(hostile_pool, HOSTILE))
    for text in HOSTILE:
        reason = Reason("a_code", text, text, "error", {text: text})
        system.services.events.record("state", text, model=text, reason=reason, data={text: text})
        system.fleet.write(HOSTILE[0], text)
        system.fleet.write(HOSTILE[5], text)
        ask(system, text, text)
    return system


def crowded(folder: Path) -> FakeSystem:
    """300 models, one of them with 64 slots, a full event log."""
    asked = samples.request(WIDE, slots=64)
    slots = tuple(samples.busy_slot(number) for number in range(64))
    wide = samples.model(WIDE, asked=asked, instances=(samples.instance(asked, slots=slots),))
    others = [samples.model(f"model-{n}", State.STOPPED if n % 3 else State.READY) for n in range(299)]
    system = make_system(wide, *others, folder=folder)
    for number in range(200):
        system.services.events.record("state", f"event {number}", model=f"model-{number}")
    return system


def closed(folder: Path) -> FakeSystem:
    """Nobody gets in without a key."""
    key = AccessKey("night-shift", sha256(WATCH_KEY.encode()).hexdigest(), dashboard="view")
    return make_system(samples.model(), access=[key], folder=folder)


STATES: Mapping[str, Callable[[Path], FakeSystem]] = {
    make.__name__: make for make in (empty, ordinary, broken, hostile, crowded)
}
