"""The status of 13 §5, key by key: no more, no less, and everything that a page says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.api import shapes
from framework.api.answers import DevicesAnswer
from framework.reconcile.current import CurrentManifest
from framework.values.instance import ExitInfo, State
from framework.values.plan import Attempt, FitPlan, LaunchResult, MemoryLine
from framework.values.problem import Problem
from framework.values.reason import Failure
from framework.values.request import LiveSettings, ModelSource, PoolLimits
from tests.api import samples

INSTANCE_KEYS = {
    "replica", "generation", "engine", "state", "pid", "port", "since_at", "restarts", "progress", "drift",
    "degradations", "inflight", "plan", "running", "slots", "speculation", "tokens_per_s", "last_error",
    "retry_in_s", "binary", "load_s", "attempts", "failure_detail", "last_exit",
}  # fmt: skip
SPECULATION_KEYS = {
    "asked", "resolved", "running", "chained", "depth", "depth_source", "drafter", "reason", "notes",
    "drafted", "accepted", "acceptance", "drafted_by_position", "accepted_by_position", "speedup",
    "baseline_tokens_per_s",
}  # fmt: skip
SLOT_KEYS = {
    "id", "state", "context_tokens", "context_limit", "prompt_tokens", "prompt_done", "generated",
    "tokens_per_s", "draft", "request_id", "stale_s",
}  # fmt: skip
PROBLEM = Problem("bad", "serve.toml", 3, 7, "models.x.slots", "must be a number", '"a"', "1 to 64", "4")


def status(*models: Any, problems: tuple[Problem, ...] = ()) -> dict[str, Any]:
    current = CurrentManifest(samples.manifest(), samples.NOON, problems)
    views = models or (samples.model("chat", samples.instance()),)
    devices = DevicesAnswer((samples.GPU, samples.CPU), sampled_at=samples.NOON)
    return shapes.status_json("1.2.3", samples.NOON, current, views, devices)


def as_json(value: Any) -> Any:
    """What a program reads; fails for anything that JSON does not have."""
    return json.loads(json.dumps(value, allow_nan=False))


def test_status_has_the_keys_of_the_specification() -> None:
    document = as_json(status())
    assert document.keys() == {
        "version", "since_at", "manifest", "devices_sampled_at", "pools", "models",
    }  # fmt: skip
    assert document["devices_sampled_at"] == "2026-11-29T12:00:00.250Z"
    assert document["manifest"].keys() == {"path", "sha256", "loaded_at", "error", "warnings", "notices"}
    pool = document["pools"][0]
    assert pool.keys() == {"name", "devices", "foreign_bytes", "residents"}
    assert pool["devices"][0].keys() == {
        "name",
        "total_bytes",
        "free_bytes",
        "planned_bytes",
        "measured_bytes",
    }
    assert pool["residents"][0].keys() == {
        "model", "replica", "planned_bytes", "idle_s", "pinned", "next_to_evict",
    }  # fmt: skip


def test_status_of_a_model_has_the_keys_of_the_specification() -> None:
    document = as_json(status())["models"][0]
    assert document.keys() == {
        "name", "aliases", "source", "load", "state", "replacing", "queue", "instances",
        "display_name", "pool", "unload_after_s", "replicas", "removed", "stopped_by_command",
    }  # fmt: skip
    assert document["queue"].keys() == {"waiting", "limit", "oldest_wait_s", "eta_s"}


def test_status_of_an_instance_has_the_keys_of_the_specification() -> None:
    document = as_json(status())["models"][0]["instances"][0]
    assert document.keys() == INSTANCE_KEYS
    assert document["running"].keys() == {
        "argv", "context", "slots", "kv_cache", "speculation", "offloaded",
    }  # fmt: skip
    assert document["slots"][0].keys() == SLOT_KEYS
    assert document["speculation"].keys() == SPECULATION_KEYS
    assert document["tokens_per_s"] == {"prompt": 100.0, "generation": 12.5}
    assert document["progress"].keys() == {
        "phase", "file", "loaded_bytes", "total_bytes", "fraction", "eta_s",
    }  # fmt: skip


def test_drift_and_other_differences_stand_apart() -> None:
    document = shapes.instance_json(samples.instance())
    assert [reason["code"] for reason in document["drift"]] == ["context_lowered"]
    assert [reason["code"] for reason in document["degradations"]] == ["slots_ignored"]


def test_nothing_runs_before_an_instance_is_ready() -> None:
    document = shapes.instance_json(
        samples.instance(state=State.STARTING, result=None, plan=None, progress=None)
    )
    assert document["running"] is None
    assert document["plan"] is None
    assert document["progress"] is None
    assert document["speculation"]["asked"] == "ngram"


def test_what_ran_is_not_running_once_the_process_is_gone() -> None:
    document = shapes.instance_json(samples.instance(state=State.STOPPED, pid=None))
    assert document["running"] is None
    assert document["speculation"]["running"] is None
    assert document["speculation"]["resolved"] == "ngram-mod"


def test_the_line_that_runs_is_the_one_that_was_started() -> None:
    attempts = (
        Attempt(1, "S", ("engine", "--new-flag"), "exited", 1, 0.5, Path("/l/1.log")),
        Attempt(2, "U", ("engine", "--hf-token", "hunter2"), "healthy", None, 2.5, Path("/l/2.log")),
    )
    document = as_json(shapes.instance_json(samples.instance(result=LaunchResult("ready", attempts))))
    assert document["running"]["argv"] == ["engine", "--hf-token", "<redacted>"]
    assert document["attempts"][0] == {
        "n": 1, "rung": "S", "argv": ["engine", "--new-flag"], "outcome": "exited", "exit_code": 1,
        "duration_s": 0.5, "log": "/l/1.log",
    }  # fmt: skip


def test_what_the_page_says_of_a_failed_instance_is_in_the_answer() -> None:
    failure = Failure(samples.REASON, "Ended with exit code 1")
    ended = samples.instance(
        state=State.BACKOFF,
        result=LaunchResult("failed", failure=failure, load_s=1.5),
        last_exit=ExitInfo(-9, hard=False, planned=False, seconds_ready=12.5),
        retry_in_s=3.0,
    )
    document = as_json(shapes.instance_json(ended))
    assert document["last_exit"] == {"code": -9, "hard": False, "planned": False, "ready_s": 12.5}
    assert (document["retry_in_s"], document["load_s"]) == (3.0, 1.5)
    assert document["failure_detail"] == "Ended with exit code 1"


def test_a_model_says_what_its_page_says() -> None:
    asked = samples.request(live=LiveSettings(display_name="Chat", idle_after_s=60.0, replicas=2))
    view = replace(samples.model("chat"), request=asked, removed=True, stopped_by_command=True)
    document = shapes.model_json(view)
    assert (document["display_name"], document["unload_after_s"], document["replicas"]) == ("Chat", 60.0, 2)
    assert (document["removed"], document["stopped_by_command"]) == (True, True)


def test_a_resident_says_how_long_it_has_been_idle() -> None:
    view = samples.model("chat", samples.instance(idle_s=7.5))
    assert status(view)["pools"][0]["residents"][0]["idle_s"] == 7.5


def fitted(**bytes_by_device: int) -> FitPlan:
    """A memory plan with weights on these devices, and as much again that only grows later."""
    lines = [MemoryLine(name, "weights", size, "computed") for name, size in bytes_by_device.items()]
    later = [replace(line, label="prompt_cache", grows=True) for line in lines]
    return FitPlan((*lines, *later), total_bytes=bytes_by_device, context=4096)


def test_planned_bytes_are_what_residents_hold_from_their_start() -> None:
    planned = samples.plan(fit=fitted(Vulkan0=500, CPU=70))
    pool = status(samples.model("chat", samples.instance(plan=planned)))["pools"][0]
    assert pool["residents"][0]["planned_bytes"] == 570
    assert {device["name"]: device["planned_bytes"] for device in pool["devices"]}["CPU"] == 70


def test_planned_bytes_are_not_known_where_a_resident_was_not_planned() -> None:
    pool = status(samples.model("chat", samples.instance(plan=samples.plan(fit=FitPlan()))))["pools"][0]
    assert pool["residents"][0]["planned_bytes"] is None
    assert {device["planned_bytes"] for device in pool["devices"]} == {None}


@pytest.mark.parametrize(
    ("pool", "devices"),
    [
        pytest.param(("cpu",), ["CPU"], id="host-memory"),
        pytest.param(("auto",), [], id="the-engine-chooses"),
        pytest.param(("cpu", "CUDA0"), [], id="the-engine-chooses-of-two"),
    ],
)
def test_devices_are_granted_where_there_is_no_choice(pool: tuple[str, ...], devices: list[str]) -> None:
    planned = samples.plan(samples.request(pool=PoolLimits("p", pool)), fit=FitPlan())
    assert shapes.instance_plan_json(planned)["granted"]["devices"] == devices


def test_failed_launch_runs_nothing() -> None:
    assert shapes.instance_json(samples.instance(result=LaunchResult("failed")))["running"] is None


def test_good_manifest_has_no_error() -> None:
    assert status()["manifest"]["error"] is None


def test_a_manifest_with_warnings_alone_has_no_error() -> None:
    warning = replace(PROBLEM, severity="warning")
    document = as_json(status(problems=(warning,)))["manifest"]
    assert document["error"] is None
    assert document["warnings"] == [shapes.problem_json(warning)]


def test_warnings_beside_errors_are_no_errors() -> None:
    document = status(problems=(replace(PROBLEM, severity="warning"), PROBLEM))["manifest"]
    assert [problem["severity"] for problem in document["error"]["problems"]] == ["error"]
    assert [problem["severity"] for problem in document["warnings"]] == ["warning"]


def test_broken_manifest_shows_its_problems_beside_what_runs() -> None:
    document = as_json(status(problems=(PROBLEM,)))
    assert document["manifest"]["error"] == {"problems": [shapes.problem_json(PROBLEM)]}
    assert document["models"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(ModelSource(path=Path("/m/a.gguf")), "/m/a.gguf", id="path"),
        pytest.param(ModelSource(repo="o/r", variant="Q4_K_M"), "hf:o/r:Q4_K_M", id="variant"),
        pytest.param(ModelSource(repo="o/r", file="a.gguf"), "hf:o/r/a.gguf", id="file"),
        pytest.param(ModelSource(repo="o/r"), "hf:o/r", id="repository"),
    ],
)
def test_source_is_written_as_in_the_manifest(source: ModelSource, expected: str) -> None:
    view = samples.model("chat")
    assert (
        shapes.model_json(replace(view, request=replace(view.request, source=source)))["source"] == expected
    )
