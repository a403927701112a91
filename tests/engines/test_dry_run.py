"""Dry measurements: what is started, when it ends, and what becomes of engines that do not answer."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from framework.engines.dry_run import NotMeasured, dry_line, measure
from framework.values.measurement import EngineChoice, MeasuredRow, Measurement
from framework.values.plan import LaunchPlan, Section
from tests.engines.programs import program
from tests.engines.requests import caps_with
from tests.support.launch_plans import a_plan
from tests.support.waiting import eventually

START = "0.1 I common_params_fit_impl: getting device memory data for initial parameters:"
TABLE = [
    "0.1 I common_memory_breakdown_print: | memory breakdown [MiB] | total free self model context compute |",
    "0.1 I common_memory_breakdown_print: |   - Host | 197 =    92 +      90 +      15                |",
]
FINE = "0.1 I common_params_fit_impl: will leave 9 >= 1 MiB of system memory, no changes needed"
REDUCED = "0.1 I common_params_fit_impl: context size reduced from 8192 to 4096 -> need 1 MiB less"
SUCCESS = "0.1 I common_fit_params: successfully fit params to free device memory"
ROW = MeasuredRow("CPU", "Host", 92, 90, 15)
FOR_EVER = "sleep 600"


def plan_of(folder: Path, lines: Sequence[str], after: str = FOR_EVER, *sections: Section) -> LaunchPlan:
    """A plan whose engine prints these lines, and then does something else. It notes its world."""
    said = "\n".join(f"echo {shlex.quote(line)} >&2" for line in lines)
    notes = f'echo $$ >> {folder}/pids; env > {folder}/env; echo "$@" >> {folder}/lines; pwd > {folder}/cwd'
    return a_plan(program(folder, f"{notes}\n{said}\n{after}"), *sections)


def pids(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def living(folder: Path) -> list[int]:
    """Processes that were started and still run."""
    return [
        pid
        for pid in pids(folder)
        if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ]


async def refusal(plan: LaunchPlan, *, timeout_s: float = 30.0) -> tuple[str, str]:
    with pytest.raises(NotMeasured) as caught:
        await measure(plan, timeout_s=timeout_s)
    return caught.value.reason.code, caught.value.reason.message


async def test_the_engine_is_ended_when_its_table_is_read(tmp_path: Path) -> None:
    measured = await measure(plan_of(tmp_path, [START, *TABLE, FINE]))
    assert measured == Measurement((ROW,))
    assert (len(pids(tmp_path)), living(tmp_path)) == (1, [])


async def test_its_helpers_end_with_it(tmp_path: Path) -> None:
    helper = f"sh -c 'echo $$ >> {tmp_path}/pids; sleep 600' &"
    both = f"while [ $(wc -l < {tmp_path}/pids) -lt 2 ]; do sleep 0.05; done"
    plan = plan_of(tmp_path, [START, *TABLE], f"{helper}\n{both}\necho {shlex.quote(FINE)} >&2; wait")
    await measure(plan)
    assert len(pids(tmp_path)) == 2
    await eventually(lambda: not living(tmp_path), what="the end of the helper")


async def test_a_shorter_context_is_measured_with_that_context(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [START, *TABLE, REDUCED, SUCCESS])
    measured = await measure(plan)
    assert measured.choice == EngineChoice((ROW,), 4096)
    first, second = (tmp_path / "lines").read_text().splitlines()
    assert "-c 4096" in second
    assert "-c 4096" not in first


async def test_a_launch_without_fit_is_not_fitted(tmp_path: Path) -> None:
    fixed = Section("placement", ("--gpu-layers", "9", "--fit", "off"))
    plan = plan_of(tmp_path, [START, *TABLE, REDUCED, SUCCESS], FOR_EVER, fixed)
    assert (await measure(plan)).choice is None


def test_the_line_is_that_of_the_plan_on_no_port_and_speaks(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [], FOR_EVER, Section("context", ("-c", "4096")))
    assert dry_line(plan)[1:] == [
        *("-m", "/models/demo.gguf", "--host", "127.0.0.1", "--port", "0", "-c", "4096"),
        *("--fit", "on", "--log-verbosity", "4", "--offline"),
    ]


def test_what_would_hide_the_table_is_left_out(tmp_path: Path) -> None:
    user = Section("user", ("--log-disable", "--log-file", "/tmp/x", "--mlock"), "user")
    template = Section("template", ("--chat-template-file", "{template}"))
    line = dry_line(plan_of(tmp_path, [], FOR_EVER, template, user))
    assert "--mlock" in line
    assert not {"--log-disable", "--log-file", "/tmp/x", "{template}"}.intersection(line)


async def test_no_secret_and_no_folder_of_ours_reaches_it(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [START, *TABLE, FINE])
    env = {"PATH": os.environ["PATH"], "MY_API_KEY": "k", "HF_TOKEN": "t", "LLAMA_ARG_MLOCK": "1"}
    await measure(replace(plan, env=env))
    seen = (tmp_path / "env").read_text()
    assert "LLAMA_ARG_MLOCK=1" in seen
    assert not {"MY_API_KEY", "HF_TOKEN"}.intersection(seen.replace("=", "\n").split("\n"))
    assert not Path((tmp_path / "cwd").read_text().strip()).exists()


async def test_an_engine_without_a_fit_step_is_not_started(tmp_path: Path) -> None:
    plan = replace(plan_of(tmp_path, []), caps=caps_with("--model"))
    assert (await refusal(plan))[0] == "measure_unsupported"
    assert pids(tmp_path) == []


@pytest.mark.parametrize(
    ("lines", "after", "code", "text"),
    [
        pytest.param([], "exit 0", "measure_failed", "exited with 0", id="says nothing"),
        pytest.param([], "exit 7", "measure_failed", "exited with 7", id="dies"),
        pytest.param([], "kill -SEGV $$", "measure_failed", "signal 11", id="crashes"),
        pytest.param(["error: invalid argument: --x"], "exit 1", "measure_failed", "--x", id="parser"),
        pytest.param([START, TABLE[0]], "exit 1", "measure_failed", "exited", id="half a table"),
        pytest.param(
            [START, "0.1 E common_fit_params: encountered an error while trying to fit params: no memory"],
            FOR_EVER,
            "measure_failed",
            "gave up",
            id="cannot",
        ),
        pytest.param(
            ["0.1 I load_tensors: loading model tensors, this can take a while... (mmap = true)"],
            FOR_EVER,
            "measure_unsupported",
            "began to load",
            id="loads for real",
        ),
    ],
)
async def test_an_engine_that_does_not_answer_is_a_reason(
    tmp_path: Path, lines: list[str], after: str, code: str, text: str
) -> None:
    found, message = await refusal(plan_of(tmp_path, lines, after))
    assert found == code
    assert text in message
    assert living(tmp_path) == []


async def test_an_engine_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    code, message = await refusal(plan_of(tmp_path, []), timeout_s=1.0)
    assert (code, "did not end within 1 s" in message, living(tmp_path)) == ("measure_failed", True, [])


async def test_an_engine_that_does_not_begin_is_ended_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framework.engines.dry_run.BEGIN_LIMIT_S", 0.5)
    code, message = await refusal(plan_of(tmp_path, ["0.1 I srv: loading"]), timeout_s=600.0)
    assert (code, "nothing of its fit step" in message) == ("measure_failed", True)
    assert living(tmp_path) == []


async def test_a_table_before_the_time_is_up_counts(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [START, *TABLE, "0.1 I x: y"])
    assert await measure(plan, timeout_s=5.0) == Measurement((ROW,))


async def test_a_flood_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framework.engines.dry_run.OUTPUT_LIMIT_BYTES", 2**20)
    code, message = await refusal(plan_of(tmp_path, [], "exec yes xxxxxxxxxxxxxxxxxxxxxxxx >&2"))
    assert (code, "printed more than" in message, living(tmp_path)) == ("measure_unsupported", True, [])


async def test_a_line_without_an_end_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framework.engines.dry_run.OUTPUT_LIMIT_BYTES", 2**20)
    assert (await refusal(plan_of(tmp_path, [], "exec cat /dev/zero >&2")))[0] == "measure_unsupported"


async def test_a_cancelled_measurement_leaves_no_process(tmp_path: Path) -> None:
    running = asyncio.create_task(measure(plan_of(tmp_path, [START])))
    await eventually(lambda: pids(tmp_path), what="the start")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert living(tmp_path) == []


async def test_a_program_that_cannot_be_started_is_a_reason(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [])
    plan.engine.entry.unlink()
    assert (await refusal(plan))[0] == "measure_failed"


GPU_ROW = "0.1 I common_memory_breakdown_print: |   - EVIL9 (x) | 100 = 50 + (30 = 10 + 10 + 10) + 20 |"


@pytest.mark.parametrize(("listed", "accepted"), [(["CUDA0"], False), (["EVIL9"], True), (None, True)])
async def test_an_answer_about_a_device_that_is_not_listed_is_none(
    tmp_path: Path, listed: list[str] | None, accepted: bool
) -> None:
    plan = plan_of(tmp_path, [START, TABLE[0], GPU_ROW, *TABLE[1:], FINE])
    if accepted:
        assert len((await measure(plan, listed=listed)).asked) == 2
        return
    with pytest.raises(NotMeasured) as caught:
        await measure(plan, listed=listed)
    assert caught.value.reason.evidence["device"] == "EVIL9"
