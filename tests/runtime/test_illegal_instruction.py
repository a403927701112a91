"""An engine that needs instructions which the CPU lacks is ended by the CPU, not by a script (06 §12.8)."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from framework.values.instance import State
from tests.runtime.conftest import FleetRig, request_for
from tests.support.illegal_program import write_illegal_program

ILL_OF_SHELL = 128 + signal.SIGILL
WRAPPER = '#!/bin/sh\n"{}" "$@"\n'


def test_the_program_is_ended_by_the_cpu(tmp_path: Path) -> None:
    program = write_illegal_program(tmp_path / "llama-server")
    assert subprocess.run([program], check=False).returncode == -signal.SIGILL


@pytest.mark.parametrize("is_wrapped", [False, True], ids=["program", "behind a script"])
async def test_a_build_for_another_cpu_is_named_after_one_try(
    rig: FleetRig, tiny_gguf: Path, tmp_path: Path, is_wrapped: bool
) -> None:
    program = write_illegal_program(tmp_path / "llama-server")
    if is_wrapped:
        script = tmp_path / "wrapper"
        script.write_text(WRAPPER.format(program))
        script.chmod(0o755)
        program = script
    rig.declare(request_for(program, tiny_gguf))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "cpu_unsupported"
    assert str(program) in view.last_error.remedy
    assert view.result is not None
    assert [attempt.exit_code for attempt in view.result.attempts] == [
        ILL_OF_SHELL if is_wrapped else -signal.SIGILL
    ]
