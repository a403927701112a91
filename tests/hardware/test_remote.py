"""Devices of RPC servers: numbers, and who may be asked (04 §2.6, MN-07, MN-08)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.engines.discovery import describe_binary
from framework.hardware.devices import list_devices
from framework.hardware.remote import DeviceNumbers, ServerAnswer, ask_server, held, is_in_use
from framework.values.device import Device
from tests.engines.programs import program
from tests.support.rpc_servers import OtherVersion, start_rpc_server
from tests.support.waiting import unused_port, wait_until

ENV = {"PATH": os.environ["PATH"]}
MIB = 2**20
LISTS = """case "$2" in
  one:1) echo "  RPC0: $2 (100 MiB, 100 MiB free)";;
  two:1) echo "  RPC0: $2 (200 MiB, 200 MiB free)"; echo "  RPC1: $2 (300 MiB, 300 MiB free)";;
  gone:1) echo "0.00.071.939 E Failed to connect to $2" >&2;;
  *) echo "  CUDA0: a card (10 MiB, 10 MiB free)";;
esac"""


def device(endpoint: str, mib: int = 1) -> Device:
    return Device("RPC0", "rpc", mib * MIB, mib * MIB, endpoint=endpoint)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that accepts nobody, on a port of its own."""
    with socket.create_server(("127.0.0.1", unused_port())) as server:
        yield server


def endpoint_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


async def test_devices_are_counted_over_all_servers(tmp_path: Path) -> None:
    found = await list_devices(program(tmp_path, LISTS), ENV, rpc=("one:1", "two:1"))
    assert [(one.name, one.endpoint, one.total_bytes // MIB) for one in found.devices[:-1]] == [
        ("RPC0", "one:1", 100),
        ("RPC1", "two:1", 200),
        ("RPC2", "two:1", 300),
        ("CUDA0", "", 10),
    ]


async def test_a_server_that_is_away_is_named_and_keeps_its_number(tmp_path: Path) -> None:
    found = await list_devices(program(tmp_path, LISTS), ENV, rpc=("gone:1", "one:1"))
    assert [one.name for one in found.devices] == ["RPC1", "CUDA0", "CPU"]
    (reason,) = found.reasons
    assert (reason.code, reason.evidence["endpoint"]) == ("rpc_unreachable", "gone:1")
    assert "gone:1" in reason.message
    assert found.why_not("gone:1") == reason
    assert found.why_not("one:1") is None


async def test_a_server_that_is_named_twice_is_one(tmp_path: Path) -> None:
    found = await list_devices(program(tmp_path, LISTS), ENV, rpc=("one:1", "one:1"))
    assert [one.name for one in found.devices] == ["RPC0", "CUDA0", "CPU"]


def test_numbers_run_on_behind_servers_that_did_not_answer() -> None:
    answers = [ServerAnswer(), ServerAnswer((device("b:1"), device("b:1"))), ServerAnswer((device("c:1"),))]
    found = DeviceNumbers().named(["a:1", "b:1", "c:1"], answers)
    assert [one.name for one in found] == ["RPC1", "RPC2", "RPC3"]


@pytest.mark.parametrize(
    ("servers", "sizes", "expected"),
    [
        pytest.param(["b:1"], [2], ["b:1=RPC1", "b:1=RPC2"], id="the-first-one-leaves"),
        pytest.param(["c:1", "b:1"], [1, 1], ["c:1=RPC3", "b:1=RPC1"], id="one-comes-in-front"),
        pytest.param(["a:1", "b:1"], [0, 2], ["b:1=RPC1", "b:1=RPC2"], id="one-is-away"),
        pytest.param(["a:1", "b:1"], [2, 1], ["a:1=RPC0", "a:1=RPC3", "b:1=RPC1"], id="one-grows"),
    ],
)
def test_a_device_keeps_its_number_whoever_comes_and_goes(
    servers: list[str], sizes: list[int], expected: list[str]
) -> None:
    numbers = DeviceNumbers()

    def named(servers: list[str], sizes: list[int]) -> list[str]:
        answers = [ServerAnswer((device(name),) * size) for name, size in zip(servers, sizes, strict=True)]
        return [f"{one.endpoint}={one.name}" for one in numbers.named(servers, answers)]

    assert named(["a:1", "b:1"], [1, 2]) == ["a:1=RPC0", "b:1=RPC1", "b:1=RPC2"]
    assert named(servers, sizes) == expected
    assert named(["a:1", "b:1"], [1, 2]) == ["a:1=RPC0", "b:1=RPC1", "b:1=RPC2"]


async def test_the_devices_of_this_machine_are_hidden_from_the_question(tmp_path: Path) -> None:
    binary = program(
        tmp_path, 'echo "  RPC0: [$GGML_VK_VISIBLE_DEVICES$CUDA_VISIBLE_DEVICES] (1 MiB, 1 MiB free)"'
    )
    answer = await ask_server(binary, {**ENV, "GGML_VK_VISIBLE_DEVICES": "3"}, "a:1", timeout_s=30.0)
    assert answer.devices[0].description == "[-1]"


async def test_a_server_that_lets_the_question_wait_is_busy(tmp_path: Path) -> None:
    answer = await ask_server(program(tmp_path, "exec sleep 60"), ENV, "a:1", timeout_s=0.3)
    assert answer.hung
    assert answer.reason is not None
    assert answer.reason.code == "rpc_busy"


async def test_an_engine_that_cannot_be_asked_reaches_no_server(tmp_path: Path) -> None:
    answer = await ask_server(program(tmp_path, "echo 'bad flag' >&2; exit 1"), ENV, "a:1", timeout_s=30.0)
    assert answer.reason is not None
    assert (answer.reason.code, answer.reason.evidence["last_line"]) == ("rpc_unreachable", "bad flag")


def test_a_server_that_an_instance_holds_is_as_it_was() -> None:
    assert held("a:1", [device("a:1")]) == ServerAnswer((device("a:1"),))


def test_a_server_that_was_never_asked_is_not_known_while_it_is_held() -> None:
    reason = held("a:1", []).reason
    assert reason is not None
    assert (reason.code, reason.evidence["endpoint"]) == ("rpc_busy", "a:1")


def test_a_server_nobody_uses(listener: socket.socket) -> None:
    assert not is_in_use(endpoint_of(listener))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[127.0.0.1]"])
def test_a_server_that_somebody_is_connected_to(listener: socket.socket, host: str) -> None:
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        assert is_in_use(f"{host}:{port}")


async def test_a_server_in_use_is_not_asked(listener: socket.socket, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    with socket.create_connection(listener.getsockname()):
        binary = program(tmp_path, f"touch {asked}")
        answer = await ask_server(binary, ENV, endpoint_of(listener), timeout_s=30.0)
    assert answer.reason is not None
    assert answer.reason.code == "rpc_busy"
    assert not asked.exists()


@pytest.mark.parametrize("endpoint", ["a.example:1", "1.2.3.4", "127.0.0.1:x", ""])
def test_addresses_that_only_a_name_server_knows_are_asked(endpoint: str) -> None:
    assert not is_in_use(endpoint)


@pytest.mark.engine
async def test_a_real_server_is_listed_and_left_alone_while_in_use(
    engine_binary: Path, tmp_path: Path
) -> None:
    server = start_rpc_server(engine_binary, tmp_path)
    try:
        binary = describe_binary(engine_binary, "manifest")
        free = await list_devices(binary, os.environ, rpc=(server.endpoint,))
        assert (free.devices[0].name, free.devices[0].endpoint) == ("RPC0", server.endpoint)
        assert free.devices[0].free_bytes == free.devices[0].total_bytes > 0
        with socket.create_connection(("127.0.0.1", server.port)):
            wait_until(lambda: is_in_use(server.endpoint))
            busy = await list_devices(binary, os.environ, rpc=(server.endpoint,))
        assert [one.code for one in busy.reasons if "endpoint" in one.evidence] == ["rpc_busy"]
        assert server.is_running()
    finally:
        server.stop()


@pytest.mark.engine
async def test_a_server_of_another_release_is_named_with_its_version(engine_binary: Path) -> None:
    server = OtherVersion()
    try:
        binary = describe_binary(engine_binary, "manifest")
        found = await list_devices(binary, os.environ, rpc=(server.endpoint,))
        reason = found.why_not(server.endpoint)
        assert reason is not None
        assert (reason.code, reason.evidence["version"]) == ("rpc_unreachable", server.version)
    finally:
        server.close()
