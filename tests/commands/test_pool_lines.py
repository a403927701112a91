"""What `paddock status` says of pools: their devices, and who waits for memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.api.shapes import pool_json
from framework.commands.pool_lines import print_pools
from tests.api import samples
from tests.commands.conftest import Paddock, Running


def test_status_shows_the_memory_of_pools(paddock: Paddock, server: Running) -> None:
    line = next(line for line in paddock("status").out.splitlines() if line.startswith("default "))
    assert line.split() == [
        "default", "CPU", "7.8", "KiB", "6.8", "KiB", "700", "B", "300", "B", "650", "B", "2.3", "KiB",
        "4.9", "KiB", "chat.0@3", "(for", "priority", "2", "and", "above)",
    ]  # fmt: skip


def test_status_shows_who_waits_for_memory_and_why(paddock: Paddock, server: Running) -> None:
    out = paddock("status").out
    assert "big replica 1: number 1 in pool default, with 3 requests, waiting for 2 s; for how long" in out
    assert "for how long is not known yet\n  chat holds it. [waiting_for_memory]\n    → Wait." in out


def test_a_pool_without_devices_or_a_queue_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_pools([pool_json(samples.pool(devices=(), waiting=()))])
    assert capsys.readouterr().out == ""


def test_what_is_not_measured_is_a_dash_and_a_known_rest_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    pool = samples.pool()
    device = replace(pool.devices[0], measured_bytes=None, foreign_bytes=None)
    waiting = replace(pool.waiting[0], replica=0, requests=1, eta_s=3.2)
    print_pools([pool_json(replace(pool, devices=(device,), waiting=(waiting,)))])
    out = capsys.readouterr().out
    assert "300 B     -         -" in out
    assert "big: number 1 in pool default, with 1 request, waiting for 2 s; about 3.2 s left" in out


def test_who_waits_for_what_nobody_gives_is_promised_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    (waiting,) = samples.pool().waiting
    hopeless = replace(waiting, eta_s=1.1, reason=replace(waiting.reason, severity="error"))
    print_pools([pool_json(samples.pool(waiting=(hopeless,)))])
    assert "for how long is not known yet" in capsys.readouterr().out
