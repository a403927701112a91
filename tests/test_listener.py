"""Binding the listener, and keeping an open one closed to strangers."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from framework.listener import ListenerTaken, Listening, keep_closed
from framework.manifest.load import Loaded
from framework.values.manifest import AccessKey, Listener, Manifest

MANIFEST = Manifest(Path("/m/serve.toml"), "0" * 64, ())
KEY = AccessKey("laptop", "0" * 64)


def loaded(manifest: Manifest) -> Loaded:
    return Loaded(manifest, (), manifest.sha256, ())


def test_a_free_port_is_bound_and_reported(free_port: int) -> None:
    listening = Listening.open(Listener("127.0.0.1", free_port))
    assert listening.address == Listener("127.0.0.1", free_port)
    listening.socket.close()


def test_a_taken_port_names_its_holder_and_the_field(free_port: int) -> None:
    with socket.create_server(("127.0.0.1", free_port)), pytest.raises(ListenerTaken) as taken:
        Listening.open(Listener("127.0.0.1", free_port))
    assert "server.listen" in str(taken.value)
    assert "held by process" in str(taken.value)


def test_an_address_of_another_machine_is_refused_with_the_remedy() -> None:
    with pytest.raises(ListenerTaken, match="no address of this machine"):
        Listening.open(Listener("203.0.113.7", 1))


def test_taking_the_keys_away_is_refused_while_others_reach_the_socket() -> None:
    refused = keep_closed(loaded(MANIFEST), Listener("0.0.0.0", 8080))
    assert refused.manifest is None
    assert refused.problems[0].code == "open_listener"


@pytest.mark.parametrize(
    ("manifest", "host"),
    [
        pytest.param(MANIFEST, "127.0.0.1", id="loopback-without-keys"),
        pytest.param(replace(MANIFEST, access=(KEY,)), "0.0.0.0", id="public-with-keys"),
    ],
)
def test_what_is_safe_is_left_alone(manifest: Manifest, host: str) -> None:
    assert keep_closed(loaded(manifest), Listener(host, 8080)).manifest is manifest
