"""A stranger has the port of an engine before the end of that engine has been seen (PL-06)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.conftest import StartPaddock
from tests.e2e.clients import chat, engine_table, model_table
from tests.support.chaos.thief import Thief

# Requests wait for the first two restarts of a window (07 §9.6).
TIMES = 2


@pytest.mark.engine
def test_nobody_answers_in_its_place(
    paddock_up: StartPaddock, engine_binary: Path, smollm2: Path, tmp_path: Path
) -> None:
    # Its helper holds the pipe that the engine prints to, so that the exit is told some moments later.
    wrapper = tmp_path / "with-a-helper"
    wrapper.write_text(f'#!/bin/sh\n[ "$1" != -m ] || sleep 600 &\nexec "{engine_binary}" "$@"\n')
    wrapper.chmod(0o755)
    paddock = paddock_up(engine_table(wrapper) + model_table("a", smollm2))
    for _ in range(TIMES):
        instance = paddock.wait_state("a", "ready")["instances"][0]
        os.kill(instance["pid"], signal.SIGKILL)
        with Thief(instance["port"]):
            answer = chat(paddock, "a", ignore_eos=True)
            assert answer.status_code == 200, answer.text
            assert "thief" not in answer.text
            assert answer.json()["usage"]["completion_tokens"] == 8
