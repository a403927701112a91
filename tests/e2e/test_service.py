"""`paddock up` under a service manager: ready, reloading, signs of life, and an end in order."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import engine_table, model_table
from tests.support.service_manager_stand_in import stand_in
from tools.fetch import ROOT

UNIT = ROOT / "docs" / "paddock.service"


def test_the_whole_life_is_told(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    engine = fake_engine()
    with stand_in(str(tmp_path / "notify")) as systemd:
        variables = {"NOTIFY_SOCKET": systemd.name, "WATCHDOG_USEC": "1000000"}
        paddock = paddock_up(engine_table(engine) + model_table("tiny", tiny_gguf), environment=variables)
        systemd.until("READY", "1")
        systemd.until("STATUS", f"1 of 1 models ready; 127.0.0.1:{paddock.port}")
        for _ in range(3):
            systemd.until("WATCHDOG", "1")
        os.kill(paddock.pid, signal.SIGHUP)
        systemd.until("RELOADING", "1")
        systemd.until("READY", "1")
        paddock.write(paddock.manifest.read_text(encoding="utf-8") + "nonsense = 1\n")
        systemd.until("STATUS", "the manifest has 1 error")
        os.kill(paddock.pid, signal.SIGHUP)
        systemd.until("RELOADING", "1")
        systemd.until("READY", "1")
        os.kill(paddock.pid, signal.SIGTERM)
        assert int(systemd.until("STOPPING", "1")["EXTEND_TIMEOUT_USEC"]) > 30_000_000
        assert paddock.process.wait(30) == 0
    environment = engine.starts()[0]["environment"]
    assert not [name for name in environment if "NOTIFY" in name or "WATCHDOG" in name]


def test_nothing_is_ready_before_the_endpoint_answers(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    with stand_in(f"@paddock-up-{os.getpid()}") as systemd:
        paddock = paddock_up(
            engine_table(fake_engine(load_s=-1)) + model_table("tiny", tiny_gguf),
            wait=False,
            environment={"NOTIFY_SOCKET": systemd.name},
        )
        systemd.until("READY", "1")
        assert paddock.status()["models"][0]["state"] != "ready"
        systemd.until("STATUS", "0 of 1 models ready, 1 starting (tiny)")


def test_a_hang_up_during_the_start_ends_nothing(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    """MR-01, from the first moment on in which it is more than an interpreter."""
    paddock = paddock_up(engine_table(fake_engine()) + model_table("tiny", tiny_gguf), wait=False)
    paddock.wait(lambda: (paddock.state_dir / "lock").exists(), 30.0, "the start to begin")
    for _ in range(50):
        os.kill(paddock.pid, signal.SIGHUP)
    paddock.wait_ready()
    assert paddock.stop() == 0


def test_logs_of_what_was_declared_long_ago_go_at_the_start(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    state = tmp_path / "up-0" / "state"
    for name in ("gone.0", "tiny.0"):
        folder = state / "logs" / name
        folder.mkdir(parents=True)
        (folder / "a.log").write_text("lines", encoding="utf-8")
        for path in (folder / "a.log", folder):
            os.utime(path, (1e9, 1e9))
    state.chmod(0o700)
    paddock = paddock_up(engine_table(fake_engine()) + model_table("tiny", tiny_gguf))
    paddock.wait(lambda: "removed the logs of gone.0" in paddock.log_text(), 30.0, "the old logs to go")
    assert not (state / "logs" / "gone.0").exists()
    assert (state / "logs" / "tiny.0" / "a.log").exists()


def test_a_second_signal_ends_at_once_and_takes_the_engines_with_it(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine(ignore_sigterm=True)) + model_table("tiny", tiny_gguf))
    paddock.wait_state("tiny", "ready")
    os.kill(paddock.pid, signal.SIGTERM)
    paddock.wait(lambda: "Ending:" in paddock.log_text(), 10.0, "the end to begin")
    os.kill(paddock.pid, signal.SIGTERM)
    assert paddock.process.wait(10) == 130
    paddock.wait(lambda: not paddock.survivors(), 10.0, "the engine to be gone")


def test_the_unit_starts_the_command_that_there_is_and_fits_every_way_to_end() -> None:
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    settings = dict(line.partition("=")[::2] for line in lines if "=" in line and not line.startswith("#"))
    assert settings["Type"] == "notify"
    assert settings["ExecStart"].split()[1:] == ["up", "--manifest", "/etc/paddock/serve.toml"]
    assert settings["KillMode"] == "process", "what on_exit keeps must not be killed with the service"
    assert settings["OOMPolicy"] == "continue", "one engine without memory must not end the others"
    assert settings["RestartPreventExitStatus"] == "2"
    closed = {"PrivateDevices", "ProtectClock", "DevicePolicy", "MemoryDenyWriteExecute", "ProcSubset"}
    assert not closed & settings.keys(), "these take the GPUs away"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "paddock"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    unit = tmp_path / "paddock.service"
    text = UNIT.read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/paddock/.venv/bin/paddock", str(program)), encoding="utf-8")
    verified = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert [line for line in verified.stderr.splitlines() if "paddock" in line] == []
