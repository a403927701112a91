"""The list of slots and what can be done to one (12 §15)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from framework.nativeserver.slot_files import is_valid_name
from tests.nativeserver import drafting
from tests.nativeserver.generation_world import failure, generation_params
from tests.nativeserver.small_world import done, slot_view, small_world

ALWAYS = ["id", "n_ctx", "speculative", "is_processing", "state", "t_last_used_ms"]
ALWAYS += ["n_cached_tokens", "n_checkpoints", "speculation", "loop_guard"]


def used(**fields: Any) -> Any:
    base = {"was_used": True, "id_task": 42, "n_prompt_tokens": 10, "n_prompt_processed": 8}
    return slot_view(
        **{**base, "params": generation_params(), "n_prompt_cached": 2, "n_decoded": 5, **fields}
    )


async def test_a_slot_that_was_never_used_has_no_task() -> None:
    async with small_world() as world:
        entries = (await world.get("/slots")).json()
        assert [list(entry) for entry in entries] == [ALWAYS, ALWAYS]
        assert [entry["id"] for entry in entries] == [0, 1]
        assert entries[0]["is_processing"] is entries[0]["speculative"] is False


async def test_a_busy_slot_shows_its_task() -> None:
    async with small_world() as world:
        world.core.slots_ = [used(state="generating", has_next_token=True, n_remaining=-1)]
        (entry,) = (await world.get("/slots")).json()
        assert (entry["is_processing"], entry["state"], entry["id_task"]) == (True, "generating", 42)
        prompt = {key: value for key, value in entry.items() if key.startswith("n_prompt")}
        assert prompt == {"n_prompt_tokens": 10, "n_prompt_tokens_processed": 8, "n_prompt_tokens_cache": 2}
        assert entry["next_token"] == [
            {"has_next_token": True, "has_new_line": False, "n_remain": -1, "n_decoded": 5}
        ]
        assert entry["params"]["dry_penalty_last_n"] == 1024
        assert entry["params"]["seed"] == 4294967295
        assert entry["timings"]["predicted_n"] == 5
        assert entry["speculation"]["fallback_reason"] == "none-requested"
        assert not {"prompt", "generated", "grammar"} & {*entry, *entry["params"]}


async def test_types_of_speculation_that_were_dropped_are_told() -> None:
    async with small_world(speculation_types=("draft-mtp",)) as world:
        world.core.speculation_ = drafting.speculation(draft_mtp="type-not-built")
        world.core.slots_ = [used(speculation=drafting.report(fallback_reason="type-not-built"))]
        entry = (await world.get("/slots")).json()[0]
        assert (entry["speculative"], entry["speculation"]["types"]) == (False, [])
        assert entry["speculation"]["fallback_reason"] == "type-not-built"
        assert entry["params"]["speculative.types"] == "none,draft-mtp"
        assert (await world.get("/props")).json()["speculation"]["dropped"] == [
            {"type": "draft-mtp", "reason": "type-not-built"}
        ]


async def test_a_slot_shows_its_drafts_and_its_guard() -> None:
    async with small_world(speculation_types=("ngram-mod", "draft-simple")) as world:
        world.core.speculation_ = drafting.speculation("ngram-mod", "draft-simple")
        guard = drafting.guard_report(mode="stop", visible_tokens=106)
        world.core.slots_ = [
            used(state="generating", speculation=drafting.drafted_report(), loop_guard=guard)
        ]
        (entry,) = (await world.get("/slots")).json()
        assert entry["speculative"] is True
        assert entry["params"]["speculative.types"] == "none,ngram-mod,draft-simple"
        assert entry["timings"]["draft_n_accepted"] == 61
        drafted = entry["speculation"]
        assert len(drafted["drafted_by_position"]) == len(drafted["accepted_by_position"]) == drafted["depth"]
        assert entry["loop_guard"]["visible_tokens"] == 106


async def test_texts_are_shown_with_the_debug_switch_alone() -> None:
    engine = {"model_path": "/m.gguf", "slots_debug": True}
    async with small_world(engine=engine) as world:
        world.core.slots_ = [used(prompt_tokens=[104, 105], generated=b"half \xc3")]
        (entry,) = (await world.get("/slots")).json()
        assert (entry["prompt"], entry["generated"]) == ("hi", "half \ufffd")
        assert entry["params"]["grammar"] == ""
        world.core.state_ = "sleeping"
        assert (await world.get("/slots")).json()[0]["prompt"] == ""


@pytest.mark.parametrize(
    ("query", "states", "status"),
    [
        ("fail_on_no_slot=1", ["generating", "generating"], 503),
        ("fail_on_no_slot=1", ["generating", "idle"], 200),
        ("fail_on_no_slot=", ["generating", "generating"], 200),
        ("", ["generating", "generating"], 200),
    ],
)
async def test_a_list_can_be_asked_to_fail_without_an_idle_slot(
    query: str, states: list[str], status: int
) -> None:
    async with small_world() as world:
        world.core.slots_ = [slot_view(number, state) for number, state in enumerate(states)]
        answer = await world.get(f"/slots?{query}")
        assert answer.status_code == status
        if status == 503:
            assert answer.json()["error"]["message"] == "no slot available"


async def test_slots_can_be_hidden() -> None:
    async with small_world(slots=False) as world:
        assert (await world.get("/slots")).status_code == 501


@pytest.mark.parametrize("number", ["99", "1x", "-1", "2", "+1", "1.0", "%31%20", "١", "0x1", "9" * 5000])
async def test_a_slot_number_is_a_plain_number_in_range(number: str) -> None:
    async with small_world() as world:
        answer = await world.post(f"/slots/{number}?action=erase")
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Invalid slot ID")
        assert world.core.tasks == []


@pytest.mark.parametrize("query", ["", "?action=", "?action=Save", "?action=copy"])
async def test_an_unknown_action_is_refused(query: str) -> None:
    async with small_world() as world:
        answer = await world.post(f"/slots/0{query}")
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Invalid action")


async def test_files_need_a_folder_and_erasing_does_not() -> None:
    async with small_world() as world:
        world.core.results = lambda task: [done(task, "slot_erase", n_slot_tokens=7)]
        for action in ("save", "restore"):
            answer = await world.post(f"/slots/0?action={action}", {"filename": "a.bin"})
            assert answer.status_code == 501
            assert "--slot-save-path" in answer.json()["error"]["message"]
        answer = await world.post("/slots/1?action=erase")
        assert answer.json() == {"id_slot": 1, "n_erased": 7}


async def test_a_saved_slot_tells_what_was_written(tmp_path: Path) -> None:
    async with small_world(slot_save_path=tmp_path) as world:
        world.core.results = lambda task: [done(task, task.kind, n_slot_tokens=7, n_bytes=99)]
        saved = (await world.post("/slots/1?action=save", {"filename": "a.bin"})).json()
        timings = {"save_ms": 1.5}
        assert saved == {"id_slot": 1, "filename": "a.bin", "n_saved": 7, "n_written": 99, "timings": timings}
        task = world.core.tasks[0]
        assert (task.kind, task.id_slot, task.file_path) == ("slot_save", 1, str(tmp_path / "a.bin"))
        restored = (await world.post("/slots/0?action=restore", {"filename": "a.bin"})).json()
        assert list(restored) == ["id_slot", "filename", "n_restored", "n_read", "timings"]
        assert restored["timings"] == {"restore_ms": 1.5}


async def test_what_the_core_refuses_is_told(tmp_path: Path) -> None:
    async with small_world(slot_save_path=tmp_path) as world:
        world.core.results = lambda task: [failure(task, "invalid_request", b"no room")]
        answer = await world.post("/slots/0?action=restore", {"filename": "missing.bin"})
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, "no room")


@pytest.mark.parametrize("body", [{}, {"filename": None}, {"filename": 5}, {"filename": ["a"]}])
async def test_a_file_name_is_a_text(tmp_path: Path, body: dict[str, Any]) -> None:
    async with small_world(slot_save_path=tmp_path) as world:
        answer = await world.post("/slots/0?action=save", body)
        assert answer.status_code == 400
        assert "filename" in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["a.bin", "a", ".hidden", "with blank.bin", "ä" * 127, "..a", "日本.bin"])
def test_plain_names_are_good(name: str) -> None:
    assert is_valid_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/b", "/etc/passwd", "a\\b", "c:a", "a\x00b", "a\nb", "a\x7f", " a", "a ", "a."]
    + ["ä" * 128, "a" * 256, "\ud800"],
)
def test_names_that_are_more_than_a_name_are_refused(name: str) -> None:
    assert not is_valid_name(name)


@pytest.mark.parametrize("kind", ["link-out", "dead-link", "pipe", "folder"])
async def test_only_a_regular_file_is_touched(tmp_path: Path, kind: str) -> None:
    folder, outside = tmp_path / "slots", tmp_path / "outside"
    folder.mkdir()
    outside.write_bytes(b"x")
    place = folder / "a.bin"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(outside if kind == "link-out" else folder / "nothing")
    async with small_world(slot_save_path=folder) as world:
        for action in ("save", "restore"):
            answer = await world.post(f"/slots/0?action={action}", {"filename": "a.bin"})
            assert answer.status_code == 400
            assert answer.json()["error"]["message"].startswith("Invalid filename")
        assert world.core.tasks == []


async def test_a_busy_slot_can_be_refused_instead_of_waited_for() -> None:
    async with small_world() as world:
        world.core.slots_ = [slot_view(0, "generating"), slot_view(1)]
        world.core.results = lambda task: [done(task, "slot_erase")]
        assert (await world.post("/slots/0?action=erase&wait=0")).status_code == 503
        assert (await world.post("/slots/1?action=erase&wait=0")).status_code == 200
        assert (await world.post("/slots/0?action=erase")).status_code == 200
