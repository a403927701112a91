"""Listeners and device names as the manifest writes them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.manifest.addresses import is_loopback, parse_address, parse_device
from framework.manifest.bad_value import BadValue
from framework.values.manifest import Listener


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("127.0.0.1:8080", Listener("127.0.0.1", 8080)),
        ("localhost:1", Listener("localhost", 1)),
        ("[::1]:8080", Listener("::1", 8080)),
        ("[::]:65535", Listener("::", 65535)),
        ("gpu-1.example.org:80", Listener("gpu-1.example.org", 80)),
        (" 0.0.0.0:80 ", Listener("0.0.0.0", 80)),
    ],
)
def test_addresses_are_host_and_port(text: str, listener: Listener) -> None:
    assert parse_address(text) == listener


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        pytest.param("127.0.0.1", '"127.0.0.1:8080"', id="no port"),
        pytest.param("::1:8080", '"[::1]:8080"', id="IPv6 without brackets"),
        pytest.param("8080", '"127.0.0.1:8080"', id="port alone"),
        pytest.param("70000", "", id="number that is no port"),
        pytest.param("localhost", '"localhost:8080"', id="name of this machine"),
        pytest.param("gpu.example.org", '"gpu.example.org:8080"', id="name of a network"),
        pytest.param("1.2.3", "", id="part of an address"),
        pytest.param("fe80::abc", '"[fe80::abc]:8080"', id="IPv6 alone"),
        pytest.param("x", "", id="word"),
    ],
)
def test_a_likely_meaning_is_suggested(text: str, suggestion: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_address(text)
    assert caught.value.suggestion == suggestion


@pytest.mark.parametrize(
    "value",
    ["", ":", ":8080", "host:", "host:0", "host:65536", "host:70000", "host:-1", "host:8e1", "host: 80"]
    + ["[::1:80", "[1.2.3.4]:80", "1.2.3:80", "1.2.3.400:80", "a b:80", "http://a:80", "a/b:80", "-a:80"]
    + [
        "a..b:80",
        f"{'x' * 64}.{'y' * 200}:80",
        "host:" + "9" * 50,
        "host:８０",
        "a\n:80",
        8080,
        None,
        ["a:80"],
        True,
    ],
    ids=repr,
)
def test_anything_else_is_no_address(value: Any) -> None:
    with pytest.raises(BadValue):
        parse_address(value)


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    with suppress(BadValue):
        assert 1 <= parse_address(text).port <= 65535


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_is_this_machine_only(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "localhost.example.org", "example.org"])
def test_everything_else_may_be_reached_by_others(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "name",
    ["auto", "cpu", "CUDA0", "Vulkan12", "rpc://10.0.0.7:50052", "rpc://gpu-1:1"]
    + ["GPU-5f1c9a40-1111-2222-3333-444455556666", "MIG-GPU-5f1c/1/0"],
    ids=repr,
)
def test_devices_are_names_uuids_or_remote_addresses(name: str) -> None:
    assert parse_device(name) == name


@pytest.mark.parametrize(
    ("written", "device"),
    [("CPU", "cpu"), ("Auto", "auto"), ("rpc://LocalHost:50052", "rpc://localhost:50052")],
)
def test_one_device_has_one_spelling(written: str, device: str) -> None:
    assert parse_device(written) == device


@pytest.mark.parametrize("name", ["RPC0", "rpc1", "RPC"])
def test_a_remote_device_is_named_by_its_address_because_numbers_move(name: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_device(name)
    assert "rpc://127.0.0.1:50052" in caught.value.must_be


@pytest.mark.parametrize("server", ["rpc://[::1]:50052", "rpc://[fe80::1]:1"])
def test_an_engine_cannot_read_the_ipv6_address_of_a_server(server: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_device(server)
    assert "IPv6" in caught.value.must_be


@pytest.mark.parametrize(
    "value",
    ["", "0", "CUDA 0", "GPU-", "GPU-a b", "rpc://", "rpc://host", "rpc://a,b:1", "a,b", 0, None, []],
    ids=repr,
)
def test_anything_else_is_no_device(value: Any) -> None:
    with pytest.raises(BadValue):
        parse_device(value)
