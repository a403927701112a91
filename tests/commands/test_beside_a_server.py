"""`paddock plan` and `paddock load` beside a running server: what is loaded counts, a wait is explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from framework.commands import waiting
from framework.manifest.load import load_manifest
from framework.values.instance import QueueView, State
from framework.values.pool import PoolView, WaitingView
from framework.values.reason import Reason
from tests.api import samples
from tests.commands.conftest import Paddock, Running

NO_ROOM = Reason("does_not_fit", "chat needs 61 MiB of CPU, and x holds it.", "Unload x.", "error")


@pytest.fixture
def declared(place: Path) -> Path:
    """The file of a manifest with the first model of the server."""
    (place / "serve.toml").write_text('[models.chat]\nsource = "tiny.gguf"\n')
    return place


@pytest.fixture
def same_text(server: Running, declared: Path) -> None:
    """The server has in force what the file says."""
    current = server.world.services.current
    current.manifest = replace(current.manifest, sha256=load_manifest(declared / "serve.toml", {}).sha256)


def test_plan_of_what_runs_is_the_plan_of_the_server(
    paddock: Paddock, server: Running, same_text: None
) -> None:
    ended = paddock("plan", "--json")
    assert [one["model"] for one in ended.json["instances"]] == ["chat", "org/other:q4"]
    assert ended.err == "As the running server plans it, beside what it has loaded.\n"
    assert ended.code == 1


def test_plan_of_one_model_of_what_runs_leaves_the_others_out(
    paddock: Paddock, server: Running, same_text: None
) -> None:
    ended = paddock("plan", "chat", "--json")
    assert ([one["model"] for one in ended.json["instances"]], ended.code) == (["chat"], 0)


def test_plan_of_another_text_is_made_here(declared: Path, paddock: Paddock, server: Running) -> None:
    ended = paddock("plan", "--json")
    assert [one["model"] for one in ended.json["instances"]] == ["chat"]
    assert "running server" not in ended.err


def test_a_measurement_is_made_here(paddock: Paddock, server: Running, same_text: None) -> None:
    assert "running server" not in paddock("plan", "--measure", "--json").err


def test_plan_does_not_repeat_what_an_instance_has_said(
    paddock: Paddock, server: Running, same_text: None
) -> None:
    assert paddock("plan", "chat").out.count(samples.REASON.message) == 1


def waits(reason: Reason) -> PoolView:
    return samples.pool(waiting=(WaitingView("chat", 0, 1, 0, 9.0, None, reason),))


def test_load_for_which_nobody_makes_room_ends_with_1_the_reason_and_the_remedy(
    paddock: Paddock, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "IDLE_LIMIT_S", 0.0)
    planning = samples.instance(state=State.PLANNING, pid=None, slots=(), inflight=0, last_error=None)
    view = samples.model("chat", planning, state=State.PLANNING)
    server.world.fleet.models["chat"] = replace(view, queue=QueueView(0, 16, None, None, position=1))
    server.world.fleet.shown = (waits(NO_ROOM),)
    ended = paddock("load", "chat")
    assert ended.code == 1
    assert f"paddock: load of chat failed: {NO_ROOM.message} {NO_ROOM.remedy} [does_not_fit]\n" in ended.err
    assert "stays in the queue" in ended.err
