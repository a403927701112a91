"""What happened outlives the manager, however it ends, and a bad disk costs nobody an answer (07 §14.1)."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import chat, engine_table, model_table
from tests.support.paddock import RunningPaddock

FULL = 'request_log = "full"'
STORE = "paddock.sqlite"


def requests(paddock: RunningPaddock, **query: Any) -> list[dict[str, Any]]:
    """The request log, oldest first."""
    found: list[dict[str, Any]] = paddock.api("GET", "/requests", params=query).json()["requests"]
    return found


def stored_bytes(paddock: RunningPaddock) -> bytes:
    """Everything that the store has on the disk."""
    return b"".join(path.read_bytes() for path in paddock.state_dir.glob(f"{STORE}*"))


@pytest.mark.engine
def test_a_kill_loses_nothing_that_was_written_a_second_before(
    paddock_up: StartPaddock, smollm2: Path
) -> None:
    paddock = paddock_up(model_table("a", smollm2), server=FULL)
    paddock.wait_state("a", "ready")
    assert chat(paddock, "a", messages=[{"role": "user", "content": "Name a horse."}]).status_code == 200
    paddock.wait(lambda: requests(paddock), 20, "the request to be written")
    before = paddock.events(limit=1000)
    paddock.kill()
    paddock.restart()
    paddock.wait_state("a", "ready")

    after = paddock.events(limit=1000)
    assert after[: len(before)] == before
    begun = next(event for event in after[len(before) :] if event["kind"] == "manager")
    assert begun["id"] > before[-1]["id"]
    assert begun["data"]["ended_before"] == "killed"
    ids = [event["id"] for event in after]
    assert ids == sorted(set(ids))
    ready = [event["data"] for event in paddock.events(kind="ready", model="a")]
    assert [data["instance"] for data in ready] == ["a.0@1", "a.0@1"]

    (kept,) = requests(paddock)
    one = paddock.api("GET", f"/requests/{kept['id']}").json()
    assert (one["model"], one["instance"], one["status"], one["stream"]) == ("a", "a.0@1", 200, False)
    assert one["generated_tokens"] > 0
    assert one["texts"]["asked"]["messages"][0]["content"] == "Name a horse."
    assert one["texts"]["answered"]["content"] != ""

    printed = paddock.command("events", "-n", "1000").stdout
    assert "the one before was killed" in printed
    assert printed.count("ready after") == 2
    oldest = f"/events?before={begun['id']}"
    with httpx.Client(base_url=paddock.base_url, trust_env=False) as browser:
        page = browser.get(oldest).text
    assert f'id="event-{before[-1]["id"]}"' in page or before[-1]["message"] in page


def test_after_an_end_in_order_ids_go_on_by_one(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    assert paddock.stop() == 0
    paddock.restart()
    found = paddock.events(limit=1000)
    assert [event["id"] for event in found] == list(range(1, len(found) + 1))
    ends = [event for event in found if event["kind"] == "manager"]
    assert [event["message"].partition(" as ")[0] for event in ends][1] == "paddock ends"
    assert ends[2]["data"]["ended_before"] == "in order"
    # Also what was done at the very end.
    assert any(event["kind"] == "stopped" for event in found)


def test_a_full_disk_costs_no_request_and_no_event(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    manager = psutil.Process(paddock.pid)
    manager.rlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    assert chat(paddock, "a").status_code == 200
    (told,) = paddock.wait(lambda: paddock.events(kind="storage"), 20, "the warning")
    assert told["reason"]["code"] == "event_log_unwritable"
    assert "Free space" in told["reason"]["remedy"]
    answer = paddock.api("GET", "/events").json()
    assert answer["storage_fault"]["code"] == "event_log_unwritable"
    assert "event_log_unwritable" in paddock.command("events").stderr
    assert chat(paddock, "a").status_code == 200
    paddock.api("POST", "/models/a/unload")
    paddock.wait_state("a", "stopped")
    assert paddock.events(kind="storage") == [told]

    manager.rlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    paddock.wait(lambda: len(requests(paddock)) == 2, 40, "the requests to be written")
    assert paddock.api("GET", "/events").json()["storage_fault"] is None
    in_memory = paddock.events(limit=1000)
    paddock.stop()
    paddock.restart()
    assert paddock.events(limit=1000)[: len(in_memory)] == in_memory


def test_a_damaged_file_is_told_and_kept(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf, load="manual"))
    last = paddock.events()[-1]["id"]
    paddock.stop()
    (paddock.state_dir / STORE).write_bytes(b"not a database, and never was one " * 1000)
    paddock.restart()
    (told,) = paddock.wait(lambda: paddock.events(kind="storage"), 20, "the warning")
    assert told["reason"]["code"] == "event_log_set_aside"
    assert Path(told["reason"]["evidence"]["path"]).read_bytes().startswith(b"not a database")
    assert told["id"] > last
    paddock.wait(lambda: "event_log_set_aside" in paddock.log_text(), 20, "the line in the log")


def test_the_mode_of_the_request_log_is_live(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(
        engine_table(fake_engine()) + model_table("a", tiny_gguf), server='request_log = "off"'
    )
    pids = paddock.wait_state("a", "ready")["instances"][0]["pid"]

    def ask(text: str) -> None:
        assert chat(paddock, "a", messages=[{"role": "user", "content": text}]).status_code == 200

    def mode_is(mode: str) -> bool:
        return bool(paddock.api("GET", "/requests").json()["request_log"] == mode)

    ask("first of all")
    paddock.edit('request_log = "off"', FULL)
    paddock.wait(lambda: mode_is("full"), 20, "the mode to change")
    ask("second to none")
    paddock.wait(lambda: b"second to none" in stored_bytes(paddock), 20, "the text to be written")
    paddock.edit(FULL, 'request_log = "metadata"')
    paddock.wait(lambda: mode_is("metadata"), 20, "the mode to change")
    ask("third time lucky")
    paddock.wait(lambda: len(requests(paddock)) == 2, 20, "the third request")
    paddock.wait(lambda: b"second to none" not in stored_bytes(paddock), 20, "the text to go")
    paddock.stop()
    stored = stored_bytes(paddock)
    assert not any(text in stored for text in (b"first of all", b"second to none", b"third time lucky"))
    paddock.restart()
    assert [one["status"] for one in requests(paddock, model="a")] == [200, 200]
    assert paddock.wait_state("a", "ready")["instances"][0]["pid"] != pids
