"""From a loaded text to an apply, or to a refusal that changes nothing (01 §2.5, 07 §3.13)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from framework.manifest.load import Loaded
from framework.reconcile.apply import Reconciler
from framework.reconcile.current import CurrentManifest
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog, utc_now
from framework.values.action import ModelAction
from framework.values.instance import ModelView, QueueView, State
from framework.values.manifest import AccessKey, Listener, Manifest, ServerSettings
from framework.values.problem import Problem
from framework.values.reason import Reason
from framework.values.request import ModelRequest, ModelSource

A = ModelRequest(id="a", source=ModelSource(path=Path("/a.gguf")))
FIRST = Manifest(Path("/m/serve.toml"), "1" * 64, (), models={"a": A})
BAD = Problem("unknown_key", "serve.toml", 3, 1, "models.a.contxt", "contxt is not a known key")
WARNING = replace(BAD, code="model_missing", severity="warning", message="no such file")


@dataclass
class RecordingFleet:
    """Takes what it is told; shows the models of the last apply as stopped."""

    applied: list[tuple[Manifest, list[tuple[str, str]]]] = field(default_factory=list)

    def views(self) -> list[ModelView]:
        models = self.applied[-1][0].models.values() if self.applied else ()
        return [ModelView(m, State.STOPPED, False, QueueView(0, 16, None, None), ()) for m in models]

    def apply(self, manifest: Manifest, actions: Sequence[ModelAction]) -> None:
        self.applied.append((manifest, [(action.model, action.kind) for action in actions]))


class Bench:
    """A reconciler whose file holds what the test says."""

    def __init__(self) -> None:
        self.fleet = RecordingFleet()
        self.events = EventLog(Changes())
        self.file = Loaded(FIRST, (), FIRST.sha256, ())
        self.adopted: list[Manifest] = []
        self.current = CurrentManifest(FIRST, utc_now())
        self.reconciler = Reconciler(
            self.current, lambda: self.file, self.fleet, self.events, adopt=self.adopted.append
        )
        self.reconciler.begin()

    async def save(self, manifest: Manifest | None, *problems: Problem, asked: bool = False) -> None:
        self.file = Loaded(manifest, problems, manifest.sha256 if manifest else "x", ())
        self.reconciler.accept(await self.reconciler.load(), asked=asked)

    def said(self, kind: str) -> list[str]:
        return [event.message for event in self.events.recent(kind=kind, limit=100)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def changed(**fields: Any) -> Manifest:
    return replace(FIRST, sha256="2" * 64, **fields)


async def test_a_good_text_is_applied_and_told_with_counts(bench: Bench) -> None:
    await bench.save(changed(models={"a": replace(A, n_ctx=1), "b": replace(A, id="b")}))
    assert bench.fleet.applied[-1][1] == [("a", "record"), ("b", "record")]
    assert bench.said("manifest_loaded")[-1] == "generation 2 applied: 1 added, 1 changed, 0 removed"
    assert bench.said("applied")[-2:] == [
        "noted: context 0 -> 1",
        "noted: a new model; it loads on the first request",
    ]


async def test_a_list_is_told_as_the_manifest_has_it(bench: Bench) -> None:
    await bench.save(changed(models={"a": replace(A, extra_args=("--no-warmup", "-v"))}))
    assert bench.said("applied")[-1] == 'noted: engine_args [] -> ["--no-warmup", "-v"]'


async def test_the_same_text_is_not_applied_again(bench: Bench) -> None:
    await bench.save(FIRST)
    assert len(bench.fleet.applied) == 1


async def test_the_same_text_is_answered_when_somebody_asked(bench: Bench) -> None:
    await bench.save(FIRST, asked=True)
    assert bench.said("manifest_loaded")[-1] == "the manifest is as it was; nothing to do"


async def test_a_rotated_key_is_applied_although_no_text_changed(bench: Bench) -> None:
    await bench.save(replace(FIRST, access=(AccessKey("laptop", "f" * 64),)))
    assert bench.current.manifest.access[0].key_sha256 == "f" * 64


async def test_a_bad_text_changes_nothing_and_is_told_once(bench: Bench) -> None:
    await bench.save(None, WARNING, BAD)
    await bench.save(None, WARNING, BAD)
    assert len(bench.fleet.applied) == 1
    assert bench.current.manifest is FIRST
    assert bench.current.problems == (WARNING, BAD)
    assert bench.said("manifest_rejected") == ["serve.toml:3:1: contxt is not a known key"]


async def test_an_event_tells_some_of_many_problems_and_errors_first(bench: Bench) -> None:
    await bench.save(None, *[WARNING] * 30, *[BAD] * 5)
    (event,) = bench.events.recent(kind="manifest_rejected")
    told = [problem["severity"] for problem in event.data["problems"]]
    assert told == ["error"] * 5 + ["warning"] * 15
    assert "(and 4 more)" in event.message
    assert len(bench.current.problems) == 35


async def test_the_old_text_again_clears_the_problems(bench: Bench) -> None:
    await bench.save(None, BAD)
    await bench.save(FIRST)
    assert bench.current.problems == ()
    assert len(bench.fleet.applied) == 1


async def test_warnings_stay_beside_an_applied_manifest(bench: Bench) -> None:
    await bench.save(changed(), WARNING)
    assert bench.current.problems == (WARNING,)
    assert bench.current.manifest.sha256 == "2" * 64


async def test_a_new_listener_waits_for_the_next_up_and_says_so(bench: Bench) -> None:
    await bench.save(changed(server=ServerSettings(listen=Listener("127.0.0.1", 9000))))
    assert bench.current.server_notices == (
        "server.listen: 127.0.0.1:9000 is used from the next `paddock up` on; now 127.0.0.1:8080",
    )


async def test_the_planner_is_given_each_manifest_that_is_applied(bench: Bench) -> None:
    await bench.save(None, BAD)
    await bench.save(changed())
    assert [manifest.sha256[0] for manifest in bench.adopted] == ["1", "2"]


async def test_warnings_of_a_text_are_logged_when_they_are_new(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    await bench.save(FIRST, WARNING)
    await bench.save(FIRST, WARNING, asked=True)
    assert caplog.messages == ["serve.toml:3:1: no such file [model_missing]"]
    bench.reconciler.begin()
    assert len(caplog.messages) == 2


def test_what_a_plan_does_not_grant_is_logged_once_for_each_model(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    events = EventLog(Changes())
    less = Reason("context_lowered", "Less than asked.", "Free memory.", "warning")
    for model in ("a", "a", "b"):
        events.record("planned", less.message, model=model, reason=less)
        events.record("planned", "4,096 tokens", model=model)
    assert caplog.messages == [f"{model}: planned: Less than asked. [context_lowered]" for model in "ab"]
    assert len(events.recent()) == 6
