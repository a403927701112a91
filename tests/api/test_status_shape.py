"""The status of 13 §5, key by key: no more, no less, and everything that a page says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.api import shapes
from framework.reconcile.current import CurrentManifest
from framework.values.instance import ExitInfo, State
from framework.values.plan import Attempt, FitPlan, LaunchResult
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
    "requests", "drafted", "accepted", "acceptance", "drafted_by_position", "accepted_by_position",
    "speedup", "baseline_tokens_per_s",
}  # fmt: skip
SLOT_KEYS = {
    "id", "state", "context_tokens", "context_limit", "prompt_tokens", "prompt_done", "generated",
    "tokens_per_s", "draft", "request_id", "stale_s",
}  # fmt: skip
PROBLEM = Problem("bad", "serve.toml", 3, 7, "models.x.slots", "must be a number", '"a"', "1 to 64", "4")


def status(*models: Any, problems: tuple[Problem, ...] = ()) -> dict[str, Any]:
    current = CurrentManifest(samples.manifest(), samples.NOON, problems)
    views = models or (samples.model("chat", samples.instance()),)
    return shapes.status_json("1.2.3", samples.NOON, current, views, [samples.pool()], samples.NOON)


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
    assert pool.keys() == {
        "name", "limits", "devices", "foreign_bytes", "residents", "waiting", "evictions",
    }  # fmt: skip
    assert pool["devices"][0].keys() == {
        "name", "kind", "total_bytes", "free_bytes", "planned_bytes", "promised_bytes", "usable_bytes",
        "measured_bytes", "foreign_bytes", "utilisation",
    }  # fmt: skip
    assert pool["residents"][0].keys() == {
        "model", "replica", "instance", "holding", "planned_bytes", "bytes", "mapped_bytes", "grows_bytes",
        "inflight", "idle_s", "priority", "pinned", "load", "next_to_evict", "yields_to", "eviction_order",
    }  # fmt: skip
    assert pool["waiting"][0].keys() == {
        "model", "replica", "position", "requests", "waited_s", "eta_s", "reason",
    }  # fmt: skip


def test_status_of_a_model_has_the_keys_of_the_specification() -> None:
    document = as_json(status())["models"][0]
    assert document.keys() == {
        "name", "aliases", "source", "load", "state", "replacing", "queue", "instances",
        "display_name", "pool", "unload_after_s", "replicas", "removed", "stopped_by_command",
            "speculation_yield",
    }  # fmt: skip
    assert document["queue"].keys() == {"waiting", "limit", "oldest_wait_s", "eta_s", "position"}


def test_status_of_an_instance_has_the_keys_of_the_specification() -> None:
    document = as_json(status())["models"][0]["instances"][0]
    assert document.keys() == INSTANCE_KEYS
    assert document["running"].keys() == {
        "argv", "context", "slots", "kv_cache", "speculation", "offloaded", "buffers",
            "held_bytes",
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


def test_a_pool_tells_its_limits_and_what_is_on_its_devices() -> None:
    pool = as_json(status())["pools"][0]
    assert pool["limits"] == {
        "devices": ["auto"], "fill": 0.97, "budget_bytes": 7000, "reserve_bytes": 0, "evict": "idle",
        "offload": "allow",
    }  # fmt: skip
    device = pool["devices"][0]
    assert (device["planned_bytes"], device["promised_bytes"], device["measured_bytes"]) == (700, 300, 650)
    assert (device["usable_bytes"], device["foreign_bytes"], pool["foreign_bytes"]) == (7000, 2350, 2350)
    assert pool["evictions"] == 4


def test_a_resident_says_what_it_holds_and_when_it_leaves() -> None:
    idle, leaving = as_json(status())["pools"][0]["residents"]
    assert (idle["planned_bytes"], idle["bytes"], idle["idle_s"]) == (500, {"CPU": 500}, 7.5)
    assert (idle["next_to_evict"], idle["eviction_order"], idle["priority"]) == (True, 1, 2)
    assert (idle["yields_to"], leaving["yields_to"]) == (2, None)
    assert (leaving["next_to_evict"], leaving["eviction_order"], leaving["pinned"]) == (False, None, True)
    assert leaving["idle_s"] is None


def test_what_nobody_can_tell_of_a_device_is_null() -> None:
    unknown = replace(samples.pool().devices[0], measured_bytes=None, foreign_bytes=None, utilisation=None)
    pool = as_json(shapes.pool_json(samples.pool(devices=(samples.pool().devices[0], unknown))))
    assert pool["foreign_bytes"] is None
    assert [device["measured_bytes"] for device in pool["devices"]] == [650, None]
    assert as_json(shapes.pool_json(samples.pool(devices=())))["foreign_bytes"] is None


def test_a_model_that_waits_for_memory_has_its_place_and_reason() -> None:
    waiting = as_json(status())["pools"][0]["waiting"][0]
    assert (waiting["model"], waiting["position"], waiting["requests"]) == ("big", 1, 3)
    assert waiting["eta_s"] is None
    assert waiting["reason"]["code"] == "waiting_for_memory"
    queue = replace(samples.model("chat").queue, position=2)
    assert shapes.queue_json(queue)["position"] == 2


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
