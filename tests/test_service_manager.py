"""What systemd is told, over a real datagram socket."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.service_manager import ServiceManager
from framework.service_report import status_line
from framework.values.instance import ModelView, QueueView, State
from framework.values.problem import Problem
from framework.values.request import ModelRequest, ModelSource
from tests.support.service_manager_stand_in import stand_in


def a_model(name: str, state: State) -> ModelView:
    request = ModelRequest(id=name, source=ModelSource())
    return ModelView(request, state, False, QueueView(0, 16, None, None, None), ())


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_both_kinds_of_sockets_are_reached(tmp_path: Path, kind: str) -> None:
    name = str(tmp_path / "notify") if kind == "path" else f"@paddock-test-{os.getpid()}"
    with stand_in(name) as systemd:
        ServiceManager.take({"NOTIFY_SOCKET": name}).ready()
        assert systemd.until("READY") == {"READY": "1"}


def test_the_variables_are_taken_so_that_no_engine_has_them() -> None:
    environ = {
        "NOTIFY_SOCKET": "/run/x",
        "WATCHDOG_USEC": "3000000",
        "WATCHDOG_PID": str(os.getpid()),
        "A": "b",
    }
    manager = ServiceManager.take(environ)
    assert environ == {"A": "b"}
    assert (manager.is_there, manager.watchdog_s) == (True, 3.0)


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({"WATCHDOG_USEC": "3000000"}, id="nobody"),
        pytest.param(
            {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, id="another's"
        ),
        pytest.param({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "soon"}, id="nonsense"),
        pytest.param({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "0"}, id="off"),
    ],
)
def test_no_sign_of_life_is_given_to_who_wants_none(environ: dict[str, str]) -> None:
    assert ServiceManager.take(environ).watchdog_s is None


@pytest.mark.parametrize("name", ["", "@", "relative", "vsock:2:1234"])
def test_other_addresses_are_nobody(name: str) -> None:
    assert not ServiceManager.take({"NOTIFY_SOCKET": name}).is_there


def test_a_socket_that_is_gone_harms_nobody(tmp_path: Path) -> None:
    manager = ServiceManager.take({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    manager.ready()
    manager.status("on")


def test_what_found_the_buffer_full_is_said_later(tmp_path: Path) -> None:
    with stand_in(str(tmp_path / "notify")) as systemd:
        manager = ServiceManager.take({"NOTIFY_SOCKET": systemd.name})
        for number in range(2000):
            manager.status(f"number {number}")
        manager.ready()
        while "READY" not in (message := systemd.until("")):
            manager.alive()
        assert message == {"READY": "1"}


def test_a_status_is_one_short_line(tmp_path: Path) -> None:
    with stand_in(str(tmp_path / "notify")) as systemd:
        ServiceManager.take({"NOTIFY_SOCKET": systemd.name}).status("a\nREADY=1\x1b" + "x" * 1000)
        assert systemd.until("STATUS")["STATUS"].startswith("a\\x0aREADY=1\\x1bxxx")
        assert len(systemd.said) == 1
        assert len(systemd.said[0]["STATUS"]) < 250


def test_a_reload_carries_its_moment(tmp_path: Path) -> None:
    with stand_in(str(tmp_path / "notify")) as systemd:
        ServiceManager.take({"NOTIFY_SOCKET": systemd.name}).reloading()
        message = systemd.until("RELOADING", "1")
        assert int(message["MONOTONIC_USEC"]) > 0


def test_the_line_says_what_serves_and_what_does_not() -> None:
    models = [a_model("a", State.READY), a_model("b", State.FAILED), a_model("c", State.STOPPED)]
    assert status_line(models, "127.0.0.1:8080", ()) == (
        "1 of 3 models ready, 1 failed (b), 1 stopped; 127.0.0.1:8080"
    )


def test_the_line_says_that_the_manifest_is_broken() -> None:
    problem = Problem("unknown_key", "serve.toml", 1, 1, "x", "no such key", "x", "")
    assert status_line((), "h:1", (problem,)).endswith("; the manifest has 1 error and is not in force")
