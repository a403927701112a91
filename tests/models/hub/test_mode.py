"""Whether a load may use the network (02 §8.1)."""

from __future__ import annotations

import threading

import pytest

from framework.models.hub.mode import endpoint_host, hub_mode, is_on


def dead(host: str) -> object:
    raise OSError(f"no address for {host}")


def alive(host: str) -> object:
    return host


@pytest.mark.parametrize(
    ("environ", "offline", "reason"),
    [
        pytest.param({}, True, "dns", id="nothing set"),
        pytest.param({"TRANSFORMERS_OFFLINE": "0"}, True, "dns", id="another switch off"),
        pytest.param({"HF_HUB_OFFLINE": "0"}, False, "env", id="forced online"),
        pytest.param({"HF_HUB_OFFLINE": "TRUE"}, True, "env", id="forced offline"),
        pytest.param({"HF_HUB_OFFLINE": "0", "PADDOCK_OFFLINE": "1"}, False, "env", id="the hub's own wins"),
        pytest.param({"PADDOCK_OFFLINE": "yes"}, True, "env", id="our switch"),
        pytest.param({"TRANSFORMERS_OFFLINE": "on"}, True, "env", id="another switch on"),
        pytest.param({"HTTPS_PROXY": "http://proxy"}, False, "proxy", id="proxy"),
        pytest.param({"all_proxy": "http://proxy"}, False, "proxy", id="proxy for all"),
    ],
)
def test_mode_with_a_dead_resolver(environ: dict[str, str], offline: bool, reason: str) -> None:
    before = dict(environ)
    mode = hub_mode(environ, resolve=dead)
    assert (mode.offline, mode.reason) == (offline, reason)
    assert environ == before


def test_a_host_with_an_address_is_online() -> None:
    assert hub_mode({}, resolve=alive).reason == "online"


def test_a_resolver_that_does_not_answer_is_offline_in_time() -> None:
    release = threading.Event()
    try:
        mode = hub_mode({}, resolve=lambda _: release.wait(10), limit_s=0.05)
    finally:
        release.set()
    assert (mode.offline, mode.reason, mode.detail) == (True, "dns", "huggingface.co")


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://mirror.example/hf", "mirror.example"),
        ("http://[::1]:8000", "::1"),
        ("", "huggingface.co"),
        ("nonsense", "huggingface.co"),
        ("http://[broken", "huggingface.co"),
    ],
)
def test_the_host_that_is_looked_up(address: str, host: str) -> None:
    assert endpoint_host({"HF_ENDPOINT": address}) == host


@pytest.mark.parametrize("text", ["1", " TRUE ", "Yes", "on"])
def test_words_that_switch_on(text: str) -> None:
    assert is_on(text)


@pytest.mark.parametrize("text", ["", "0", "no", "off", "2", "enabled"])
def test_words_that_do_not(text: str) -> None:
    assert not is_on(text)
