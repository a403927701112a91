"""A request that breaks engines breaks one of them: it is not sent to the next (07 §9.2)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from framework.values.instance import State
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, request_for


@pytest.mark.parametrize(
    ("number", "others", "is_retried"),
    [
        pytest.param(signal.SIGSEGV, "none", False, id="alone"),
        pytest.param(signal.SIGABRT, "answered", False, id="others-get-answers"),
        pytest.param(signal.SIGSEGV, "waiting", True, id="nobody-knows-whose-fault"),
        pytest.param(signal.SIGKILL, "none", True, id="killed-from-outside"),
    ],
)
async def test_whether_it_is_tried_once_more(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, number: int, others: str, is_retried: bool
) -> None:
    rig.declare(request_for(fake_engine(), tiny_gguf))
    pid = (await rig.until("m", State.READY)).pid
    lease = await rig.fleet.acquire("m")
    other = await rig.fleet.acquire("m") if others != "none" else None
    if other is not None and others == "answered":
        other.heard = 1
    os.kill(pid or 0, number)
    verdict = await rig.fleet.report_failure(lease, "read", opened=False)
    assert verdict.retry is is_retried
    lease.release()
    if other is not None:
        other.release()
