"""Models that share real RPC devices, which serve one engine at a time (04 §16, MN-07, MN-08)."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartPaddock
from tests.e2e.clients import chat, error_of, model_table
from tests.support.offline_swaps import fewest_swaps
from tests.support.paddock import RunningPaddock
from tests.support.rpc_servers import OtherVersion, StartServer, start_rpc_server
from tests.support.traffic import Answer, Peak, mixed_requests, run_clients
from tests.support.waiting import unused_port, wait_until

pytestmark = pytest.mark.engine

MIB = 2**20
# The weights are 92 MiB; 1024 tokens of one slot take 22 MiB, and computing 13 MiB.
CONTEXTS = {"a": 1024, "b": 2048, "c": 4096}
BUDGET_MIB = 256
TOKENS = 2
# Of the best that anybody could do who knew all requests from the start.
MOST_SWAPS = 1.5
# A debugger that is installed would be asked for one first, which takes seconds.
NO_BACKTRACE = '[engines.default]\nenvironment = { GGML_NO_BACKTRACE = "1" }\n'


def pool_table(*devices: str, name: str = "far", **lines: Any) -> str:
    named = ", ".join(f'"{device}"' for device in devices)
    settings = {"budget": f"{BUDGET_MIB}MiB", "offload": "forbid", **lines}
    return f"[pools.{name}]\ndevices = [{named}]\n" + "".join(f'{k} = "{v}"\n' for k, v in settings.items())


def far_model(name: str, model: Path, **lines: Any) -> str:
    settings = {"pool": "far", "load": "on-demand", "slots": 1, "context": CONTEXTS.get(name, 1024), **lines}
    return model_table(name, model, **settings)


def device_of(paddock: RunningPaddock, pool: str = "far") -> dict[str, Any]:
    """The first device of a pool in the status."""
    found: dict[str, Any] = next(p for p in paddock.status()["pools"] if p["name"] == pool)["devices"][0]
    return found


def swaps_of(paddock: RunningPaddock) -> int:
    """Loads for which another model had to leave."""
    return len(paddock.events(kind="evicted", limit=1000))


def broken(answers: list[Answer]) -> list[Answer]:
    return [answer for answer in answers if not answer.is_whole]


@pytest.mark.timeout(600)
def test_three_models_share_a_device_that_holds_one(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    """300 requests of 8 clients: all answered, within the budget, nobody cut off, few swaps."""
    server = rpc_server()
    tables = pool_table(server.device) + "".join(far_model(name, smollm2) for name in CONTEXTS)
    paddock = paddock_up(tables)
    sequences = mixed_requests(tuple(CONTEXTS), requests=300, clients=8, stay=0.8, seed=1)
    with Peak(server.held_bytes) as peak:
        answers = run_clients(paddock, sequences, TOKENS)
    assert broken(answers) == []
    assert len(answers) == 300
    assert 92 * MIB < peak.most <= BUDGET_MIB * MIB
    evictions = paddock.events(kind="evicted", limit=1000)
    assert [event for event in evictions if event["data"]["leases"]] == []
    _, best = fewest_swaps(sequences)
    assert best <= len(evictions) <= MOST_SWAPS * best
    assert server.is_running()


def test_a_second_model_starts_only_after_the_first_process_is_gone(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    """MN-08, although both would fit: the server serves one process at a time."""
    server = rpc_server()
    tables = pool_table(server.device, budget="2GiB") + "".join(far_model(n, smollm2) for n in "ab")
    paddock = paddock_up(tables)
    assert chat(paddock, "a").status_code == 200
    first = paddock.pids()["a"][0]
    assert chat(paddock, "b").status_code == 200
    assert not Path(f"/proc/{first}").exists()
    assert list(paddock.pids()) == ["b"]
    assert server.held_bytes() > 92 * MIB
    assert server.is_running()


def test_a_server_in_front_of_one_in_use_gets_the_next_model(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    """A wider pool restarts nothing, and everybody still knows which server is in use."""
    old, new = rpc_server(), rpc_server()
    paddock = paddock_up(pool_table(old.device) + "".join(far_model(name, smollm2) for name in "ab"))
    assert chat(paddock, "a").status_code == 200
    pids = paddock.pids()["a"]
    paddock.edit(f'["{old.device}"]', f'["{new.device}", "{old.device}"]')
    paddock.wait(lambda: len(paddock.events(kind="manifest_loaded")) == 2, 20, "the wider pool")
    assert chat(paddock, "b").status_code == 200
    assert paddock.pids()["a"] == pids
    assert new.held_bytes() > 92 * MIB


def test_a_model_placed_by_hand_waits_for_its_server(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    """MN-08: memory is the user's own affair there, a server in use is not."""
    server = rpc_server()
    by_hand = far_model("b", smollm2) + '[models.b.placement]\nmode = "manual"\ngpu_layers = 99\n'
    paddock = paddock_up(pool_table(server.device) + far_model("a", smollm2) + by_hand)
    for name in "aba":
        assert chat(paddock, name).status_code == 200
        assert list(paddock.pids()) == [name]
    assert server.is_running()


def test_a_model_is_split_over_two_servers_by_bytes(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    """GP-08: neither device holds more than its budget, nor much more than the plan says."""
    servers = rpc_server(), rpc_server()
    tables = pool_table(*(server.device for server in servers), budget="100MiB")
    paddock = paddock_up(tables + far_model("a", smollm2))
    with Peak(servers[0].held_bytes) as near, Peak(servers[1].held_bytes) as far:
        assert chat(paddock, "a").status_code == 200
    pool = next(pool for pool in paddock.status()["pools"] if pool["name"] == "far")
    planned = [device["planned_bytes"] for device in pool["devices"]]
    assert all(0 < count <= 100 * MIB for count in planned), planned
    assert sum(planned) > 127 * MIB
    assert 42 * MIB < near.most <= 100 * MIB
    assert 42 * MIB < far.most <= 100 * MIB


def test_a_server_that_is_not_there_is_named_and_found_when_it_comes(
    paddock_up: StartPaddock, engine_binary: Path, smollm2: Path, tmp_path: Path
) -> None:
    """MN-07: the others are not affected, and nothing runs elsewhere instead."""
    port = unused_port()
    tables = (
        pool_table(f"rpc://127.0.0.1:{port}")
        + '[pools.here]\ndevices = ["cpu"]\n'
        + far_model("a", smollm2)
        + model_table("near", smollm2, pool="here", slots=1)
    )
    paddock = paddock_up(tables)
    paddock.wait_state("near", "ready")
    refused = chat(paddock, "a")
    assert refused.status_code == 503
    assert f"127.0.0.1:{port}" in error_of(refused)["message"]
    assert "a" not in paddock.pids()
    server = start_rpc_server(engine_binary, tmp_path, port)
    try:
        paddock.wait(lambda: chat(paddock, "a").status_code == 200, 60, "the model on the server that came")
        assert server.held_bytes() > 92 * MIB
    finally:
        paddock.close()
        server.stop()


def test_a_server_of_another_version_is_told_and_nothing_runs_without_it(
    paddock_up: StartPaddock, smollm2: Path
) -> None:
    """MN-01."""
    server = OtherVersion()
    try:
        paddock = paddock_up(pool_table(f"rpc://{server.endpoint}") + far_model("a", smollm2))
        refused = chat(paddock, "a")
    finally:
        server.close()
    assert refused.status_code == 503
    assert server.endpoint in error_of(refused)["message"]
    assert server.version in str(error_of(refused))
    assert paddock.pids() == {}


def test_a_server_that_somebody_else_uses_is_never_asked(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    """A question would wait for ever, and end the server when it is given up."""
    server = rpc_server()
    with socket.create_connection(("127.0.0.1", server.port)):
        paddock = paddock_up(pool_table(server.device) + far_model("a", smollm2))
        refused = chat(paddock, "a")
        assert refused.status_code == 503
        assert server.endpoint in error_of(refused)["message"]
    assert server.is_running()
    paddock.wait(lambda: chat(paddock, "a").status_code == 200, 60, "the model once the server is free")


def test_a_server_that_dies_takes_its_model_down_and_both_come_back(
    paddock_up: StartPaddock, rpc_server: StartServer, engine_binary: Path, smollm2: Path, tmp_path: Path
) -> None:
    server = rpc_server()
    tables = NO_BACKTRACE + pool_table(server.device) + far_model("a", smollm2)
    paddock = paddock_up(tables)
    assert chat(paddock, "a").status_code == 200
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    assert chat(paddock, "a").status_code >= 500
    assert [event["reason"]["code"] for event in paddock.events(kind="exited")] == ["rpc_lost"]
    again = start_rpc_server(engine_binary, tmp_path, server.port)
    try:
        paddock.wait(lambda: chat(paddock, "a").status_code == 200, 90, "the model on the new server")
        assert again.held_bytes() > 92 * MIB
    finally:
        paddock.close()
        again.stop()


def test_memory_that_is_gone_at_the_start_makes_the_plan_smaller_and_no_loop(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    """The device lists all of it as free, and has 230 MiB: the first plan, of 287 MiB, runs out of it."""
    server = rpc_server()
    server.leave_bytes(230 * MIB)
    tables = pool_table(server.device, budget="300MiB") + far_model("a", smollm2, context="auto")
    paddock = paddock_up(tables)
    assert chat(paddock, "a").status_code == 200
    entry = paddock.model("a")["instances"][0]["plan"]
    assert "planned_smaller" in [reason["code"] for reason in entry["reasons"]], entry
    assert paddock.events(kind="crash_loop") == []
    assert len(paddock.events(kind="attempt", limit=1000)) <= 4


def test_a_server_without_room_ends_in_a_reason_and_no_loop(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    server = rpc_server()
    server.leave_bytes(10 * MIB)
    paddock = paddock_up(pool_table(server.device) + far_model("a", smollm2))
    refused = chat(paddock, "a")
    assert refused.status_code >= 500
    assert "out_of_memory" in str(error_of(refused))
    server.leave_bytes(None)
    paddock.wait(lambda: chat(paddock, "a").status_code == 200, 60, "the model once there is room")


def test_the_device_shows_what_is_planned_and_what_is_held(
    paddock_up: StartPaddock, rpc_server: StartServer, smollm2: Path
) -> None:
    server = rpc_server()
    paddock = paddock_up(pool_table(server.device) + far_model("a", smollm2))
    assert chat(paddock, "a").status_code == 200
    device = device_of(paddock)
    assert device["kind"] == "rpc"
    assert device["usable_bytes"] <= BUDGET_MIB * MIB
    assert 127 * MIB < device["planned_bytes"] < 160 * MIB
    assert abs(device["planned_bytes"] - device["measured_bytes"]) < 16 * MIB
    paddock.command("unload", "a")
    wait_until(lambda: device_of(paddock)["planned_bytes"] == 0, 30, "the device to be free again")
