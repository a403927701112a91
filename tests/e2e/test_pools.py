"""Many models on one card, seen from outside: clients, API, commands, edits (PL-09 to PL-21, 04 §16)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import Stream, chat, engine_table, error_of, model_table
from tests.support.fakes import FakeEngine
from tests.support.paddock import RunningPaddock
from tests.support.sized_models import write_large_model

# A context of 8192 tokens takes 1 GiB, computing and the runtime some more: one of HALF and two of these fit.
CARD_MIB = 4000
DEVICES = [f"Vulkan0: a card ({CARD_MIB} MiB, {CARD_MIB} MiB free)"]
TOKENS = 8192
WHOLE = 2 * TOKENS
POOL = '[pools.gpu]\ndevices = ["auto"]\noffload = "forbid"\n'
# A streamed answer of the fake engine: 40 tokens in 2 s.
SLOW = {"tokens": 40, "token_interval_s": 0.05}

Up = Callable[..., RunningPaddock]


@pytest.fixture
def card(fake_engine: MakeFake) -> FakeEngine:
    """An engine that sees one card, which lists all of it as free whatever is loaded."""
    return fake_engine(devices=DEVICES)


@pytest.fixture
def up(paddock_up: StartPaddock, card: FakeEngine, tmp_path: Path) -> Up:
    """Serve models of one pool: the context of each, or a table of its settings."""
    path = write_large_model(tmp_path / "large.gguf")

    def start(pool: str = POOL, **models: int | dict[str, Any]) -> RunningPaddock:
        tables = engine_table(card) + pool
        for name, asked in models.items():
            lines = asked if isinstance(asked, dict) else {"context": asked}
            tables += model_table(name, path, **{"load": "on-demand", "slots": 1, "context": WHOLE, **lines})
        return paddock_up(tables)

    return start


def ready(paddock: RunningPaddock) -> set[str]:
    return {model["name"] for model in paddock.status()["models"] if model["state"] == "ready"}


def evicted(paddock: RunningPaddock) -> list[str]:
    return [event["model"] for event in paddock.events(kind="evicted", limit=1000)]


def budget_of(paddock: RunningPaddock) -> int | None:
    budget: int | None = paddock.status()["pools"][0]["limits"]["budget_bytes"]
    return budget


def ask(paddock: RunningPaddock, model: str) -> int:
    return chat(paddock, model).status_code


def asked_in_the_background(paddock: RunningPaddock, model: str) -> tuple[threading.Thread, list[int]]:
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(ask(paddock, model)), daemon=True)
    thread.start()
    return thread, statuses


def until_it_waits(paddock: RunningPaddock, model: str) -> dict[str, Any]:
    """Wait until a model waits for memory; what the status says of it."""

    def found() -> dict[str, Any] | None:
        waiting = paddock.status()["pools"][0]["waiting"]
        return next((entry for entry in waiting if entry["model"] == model), None)

    entry: dict[str, Any] = paddock.wait(found, 30, f"{model} to wait for memory")
    return entry


def test_an_answer_is_finished_before_its_model_makes_room(up: Up, card: FakeEngine) -> None:
    """PL-09: however old its last request is, and however many wait."""
    card.rescript(devices=DEVICES, **SLOW)
    paddock = up(a=WHOLE, b=WHOLE)
    stream = Stream(paddock, "a", {"max_tokens": 40})
    paddock.wait(lambda: stream.raw.count(b"data:") > 2, 30, "the stream to flow")
    thread, statuses = asked_in_the_background(paddock, "b")
    entry = until_it_waits(paddock, "b")
    assert entry["position"] == 1
    assert entry["requests"] == 1
    assert entry["reason"]["code"] == "waiting_for_memory"
    assert "a" in entry["reason"]["message"]
    assert paddock.model("b")["queue"]["position"] == 1
    assert evicted(paddock) == []
    assert stream.join().endswith(b"data: [DONE]\n\n")
    assert len(stream.pieces) == 40
    thread.join(60)
    assert statuses == [200]
    assert evicted(paddock) == ["a"]


def test_what_is_loading_is_never_told_to_leave(up: Up, card: FakeEngine) -> None:
    """PL-10."""
    card.rescript(devices=DEVICES, load_s=2.0)
    paddock = up(a=WHOLE, b=WHOLE)
    first, first_status = asked_in_the_background(paddock, "a")
    paddock.wait_state("a", "starting")
    second, second_status = asked_in_the_background(paddock, "b")
    until_it_waits(paddock, "b")
    first.join(60)
    second.join(60)
    assert (first_status, second_status) == ([200], [200])
    stops = paddock.events(kind="stopped", limit=1000)
    assert [event["data"]["signals"] for event in stops if event["model"] == "a"] == [["SIGTERM"]]
    assert len(card.starts()) == 2


def test_a_crowd_at_a_cold_model_loads_it_once(up: Up, card: FakeEngine) -> None:
    """PL-12."""
    card.rescript(devices=DEVICES, load_s=1.0)
    paddock = up(a={"context": WHOLE, "max_queue": 32})
    with ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(lambda _: ask(paddock, "a"), range(20)))
    assert statuses == [200] * 20
    assert len(card.starts()) == 1
    assert len(paddock.events(kind="ready")) == 1


def test_a_model_loaded_by_command_makes_room_as_any_other(up: Up) -> None:
    """PL-19."""
    paddock = up(a=WHOLE, b=WHOLE)
    assert paddock.command("load", "a").returncode == 0
    paddock.wait_state("a", "ready")
    assert ask(paddock, "b") == 200
    assert evicted(paddock) == ["a"]


def test_a_pin_is_kept_shown_and_named_in_the_refusal(up: Up) -> None:
    """PL-19."""
    paddock = up(a={"pin": True}, b=WHOLE)
    assert ask(paddock, "a") == 200
    refused = chat(paddock, "b")
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    error = error_of(refused)
    assert error["reason"]["code"] == "capacity_pinned"
    assert "a" in error["message"]
    (resident,) = paddock.status()["pools"][0]["residents"]
    assert resident["pinned"]
    assert not resident["next_to_evict"]
    assert ready(paddock) == {"a"}


def test_a_pinned_model_stays_while_others_take_turns(up: Up) -> None:
    """PL-21."""
    paddock = up(p={"context": TOKENS, "pin": True}, a=TOKENS, b=TOKENS)
    assert ask(paddock, "p") == 200
    pids = paddock.pids()["p"]
    assert [ask(paddock, name) for name in ("a", "b", "a")] == [200, 200, 200]
    assert paddock.pids()["p"] == pids
    assert evicted(paddock) == ["a", "b"]


def test_a_pin_set_later_holds_without_a_restart(up: Up) -> None:
    paddock = up(a=WHOLE, b=WHOLE)
    assert ask(paddock, "a") == 200
    pids = paddock.pids()["a"]
    paddock.edit("[models.a]\n", "[models.a]\npin = true\n")
    paddock.wait(lambda: paddock.status()["pools"][0]["residents"][0]["pinned"], 20, "the pin")
    assert chat(paddock, "b").status_code == 503
    assert paddock.pids()["a"] == pids


def test_the_lower_priority_makes_room_and_the_higher_does_not(up: Up) -> None:
    paddock = up(
        low={"context": TOKENS},
        high={"context": TOKENS, "priority": 5},
        c={"context": TOKENS, "priority": 5},
    )
    assert [ask(paddock, name) for name in ("low", "high", "c")] == [200, 200, 200]
    assert evicted(paddock) == ["low"]
    refused = chat(paddock, "low")
    assert refused.status_code == 503
    assert error_of(refused)["code"] == "no_memory"


def test_a_request_never_loads_a_manual_model(up: Up, card: FakeEngine) -> None:
    paddock = up(a={"load": "manual"})
    refused = chat(paddock, "a")
    assert refused.status_code == 503
    assert error_of(refused)["code"] == "model_not_loaded"
    assert card.starts() == []


def test_models_at_start_come_up_in_the_order_of_their_priority(up: Up) -> None:
    first, later = {"load": "at-start", "priority": 9}, {"load": "at-start"}
    paddock = up(last=later, first=first, other=later)
    paddock.wait_state("first", "ready")
    until_it_waits(paddock, "last")
    until_it_waits(paddock, "other")
    assert ready(paddock) == {"first"}
    assert evicted(paddock) == []


def test_the_least_recently_used_leaves_first_and_the_status_says_so(up: Up) -> None:
    paddock = up(a=TOKENS, b=TOKENS, c=TOKENS)
    assert [ask(paddock, name) for name in ("a", "b", "a")] == [200, 200, 200]

    def next_out() -> list[str]:
        residents = paddock.status()["pools"][0]["residents"]
        return [resident["model"] for resident in residents if resident["next_to_evict"]]

    assert next_out() == ["b"]
    assert ask(paddock, "c") == 200
    assert evicted(paddock) == ["b"]
    assert ready(paddock) == {"a", "c"}


def test_a_budget_that_shrinks_counts_from_the_next_plan_and_restarts_nothing(up: Up) -> None:
    paddock = up(a=TOKENS, b=TOKENS, c=TOKENS)
    assert [ask(paddock, name) for name in "ab"] == [200, 200]
    pids = paddock.pids()
    paddock.edit("[pools.gpu]\n", '[pools.gpu]\nbudget = "2000MiB"\n')
    paddock.wait(lambda: budget_of(paddock) == 2000 << 20, 20, "the budget")
    assert paddock.pids() == pids
    assert ask(paddock, "c") == 200
    assert sorted(evicted(paddock)) == ["a", "b"]
    paddock.edit('budget = "2000MiB"\n', "")
    paddock.wait(lambda: budget_of(paddock) is None, 20, "the end of it")
    assert ask(paddock, "a") == 200
    assert ready(paddock) == {"a", "c"}


def test_eviction_can_be_switched_off_while_it_runs(up: Up) -> None:
    paddock = up(a=WHOLE, b=WHOLE)
    assert ask(paddock, "a") == 200
    pids = paddock.pids()
    paddock.edit("[pools.gpu]\n", '[pools.gpu]\nevict = "never"\n')
    paddock.wait(lambda: paddock.status()["pools"][0]["limits"]["evict"] == "never", 20, "the edit")
    assert chat(paddock, "b").status_code == 503
    assert paddock.pids() == pids


def test_memory_of_other_programs_is_seen_before_anything_is_started(up: Up, card: FakeEngine) -> None:
    """FM-15: 2507 MiB of a large card are free, and the rest is somebody else's."""
    card.rescript(devices=["Vulkan0: a card (32607 MiB, 2507 MiB free)"])
    paddock = up(a=9 * TOKENS)
    refused = chat(paddock, "a")
    assert refused.status_code == 503
    reason = error_of(refused)["reason"]
    assert reason["code"] == "does_not_fit"
    assert "1.5 GiB can be used (other programs hold 29 GiB)" in reason["message"]
    assert card.starts() == []


def test_manual_placement_starts_over_the_plan_and_says_so(up: Up) -> None:
    """FM-14: whoever places by hand is not refused."""
    paddock = up(a={"context": 9 * TOKENS, "placement": {"mode": "manual", "gpu_layers": 99}})
    assert ask(paddock, "a") == 200
    told = paddock.model("a")["instances"][0]["plan"]["reasons"]
    assert "does_not_fit" in [reason["code"] for reason in told], told


def test_who_waits_and_who_holds_is_on_the_pools_page(up: Up, card: FakeEngine) -> None:
    card.rescript(devices=DEVICES, **SLOW)
    paddock = up(a=WHOLE, b=WHOLE)
    stream = Stream(paddock, "a", {"max_tokens": 40})
    paddock.wait(lambda: stream.raw.count(b"data:") > 2, 30, "the stream to flow")
    thread, _ = asked_in_the_background(paddock, "b")
    message = until_it_waits(paddock, "b")["reason"]["message"]
    page = httpx.get(f"{paddock.base_url}/pools", trust_env=False)
    assert page.status_code == 200
    assert "Vulkan0" in page.text
    assert message.split(".")[0].split("'")[0][:40] in page.text
    stream.join()
    thread.join(60)
