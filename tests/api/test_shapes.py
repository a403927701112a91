"""The shapes of 13, key by key: no more, no less, and values of JSON only."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.api import shapes
from framework.api.answers import (
    DevicesAnswer,
    DiffAnswer,
    DoctorCheck,
    EngineAnswer,
    PlanAnswer,
    RefusedInstance,
)
from framework.values.action import FieldChange, ModelAction
from framework.values.engine import EngineRef
from framework.values.event import Event
from framework.values.instance import State
from framework.values.plan import FitPlan, Remedy, SpecDecision
from framework.values.problem import Problem
from framework.values.reason import Failure, Reason
from tests.api import samples

REASON_KEYS = {"code", "message", "remedy", "severity", "evidence"}
INSTANCE_PLAN_KEYS = {
    "model", "replica", "engine", "fingerprint", "argv", "environment", "asked", "granted", "fit",
    "speculation", "reasons",
}  # fmt: skip
PROBLEM = Problem("bad", "serve.toml", 3, 7, "models.x.slots", "must be a number", '"a"', "1 to 64", "4")


def as_json(value: Any) -> Any:
    """What a program reads; fails for anything that JSON does not have."""
    return json.loads(json.dumps(value, allow_nan=False))


def test_reason_has_the_keys_of_the_specification() -> None:
    assert as_json(shapes.reason_json(samples.REASON)).keys() == REASON_KEYS


def test_evidence_becomes_plain_json() -> None:
    assert shapes.reason_json(samples.REASON)["evidence"] == {"path": "/m/a.gguf"}


def test_times_are_rfc_3339_in_utc() -> None:
    there = datetime(2026, 11, 29, 13, 0, tzinfo=timezone(timedelta(hours=1)))
    assert shapes.at(there) == "2026-11-29T12:00:00.000Z"


def test_plan_has_the_keys_of_the_specification() -> None:
    answer = PlanAnswer(Path("serve.toml"), "a" * 64, (samples.CPU,), (samples.plan(),), (samples.REASON,))
    document = as_json(shapes.plan_json(answer))
    assert document.keys() == {"manifest", "inventory", "instances", "reasons"}
    assert document["manifest"] == {"path": "serve.toml", "sha256": "a" * 64}
    assert document["inventory"][0].keys() == {
        "name", "kind", "total_bytes", "free_bytes", "pool", "description", "endpoint", "uuid", "bus_id",
        "unified", "same_as", "utilisation", "used_by_pid",
    }  # fmt: skip
    assert document["instances"][0].keys() == INSTANCE_PLAN_KEYS


def test_instance_plan_keeps_asked_and_granted_apart() -> None:
    document = as_json(shapes.instance_plan_json(samples.plan()))
    cache = {"k": "auto", "v": "auto"}
    assert document["asked"] == {
        "context": "auto", "slots": 4, "kv_cache": cache, "speculation": "ngram", "offload": "auto",
    }  # fmt: skip
    assert document["granted"] == {
        "context": 4096, "slots": 4, "kv_cache": {"k": "q8_0", "v": "f16"}, "speculation": "ngram-mod",
        "offload": "auto", "devices": ["CPU"],
        "placement": {"delegated": True, "split": "layer", "shares": {}},
    }  # fmt: skip


def test_fit_says_how_each_number_is_known() -> None:
    assert as_json(shapes.instance_plan_json(samples.plan()))["fit"] == {
        "budget_bytes": {"CPU": 500},
        "total_bytes": {"CPU": 100},
        "needed_bytes": {"CPU": 100},
        "lines": [
            {
                "device": "CPU", "label": "weights", "bytes": 100, "basis": "computed", "mapped": False,
                "grows": False,
            }
        ],
        "fits": None,
        "context": None,
        "slots": 0,
        "remedies": [],
    }  # fmt: skip


def test_remedies_are_data_and_words() -> None:
    remedy = Remedy("cache_type", "q8_0", 1000, True, "Store the cache as q8_0.")
    document = as_json(shapes.instance_plan_json(samples.plan(fit=FitPlan(remedies=(remedy,)))))
    assert document["fit"]["remedies"] == [
        {
            "kind": "cache_type", "to": "q8_0", "frees_bytes": 1000, "fits": True,
            "sentence": "Store the cache as q8_0.",
        }
    ]  # fmt: skip


def test_granted_values_are_those_that_memory_was_planned_for() -> None:
    fit = FitPlan(context=2048, slots=4, cache_types=("q8_0", "q4_0"), total_bytes={"CUDA1": 2, "CPU": 1})
    granted = as_json(shapes.instance_plan_json(samples.plan(context=0, fit=fit)))["granted"]
    assert (granted["context"], granted["kv_cache"]) == (2048, {"k": "q8_0", "v": "q4_0"})
    assert granted["devices"] == ["CUDA1", "CPU"]


@pytest.mark.parametrize(
    ("layers", "experts", "expected"),
    [
        pytest.param(None, 0, "all", id="all"),
        pytest.param(0, 0, "none", id="host-memory"),
        pytest.param(20, 0, {"gpu_layers": 20, "cpu_experts": 0}, id="some-layers"),
        pytest.param(49, 3, {"gpu_layers": 49, "cpu_experts": 3}, id="without-experts"),
        pytest.param(None, 3, {"gpu_layers": None, "cpu_experts": 3}, id="all-layers-without-experts"),
    ],
)
def test_granted_offload_is_what_was_planned(layers: int | None, experts: int, expected: Any) -> None:
    fit = FitPlan(context=2048, gpu_layers=layers, cpu_experts=experts)
    assert shapes.instance_plan_json(samples.plan(fit=fit))["granted"]["offload"] == expected


def test_context_left_to_the_engine_is_granted_as_null() -> None:
    assert shapes.instance_plan_json(samples.plan(context=0))["granted"]["context"] is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "auto", id="automatic"),
        pytest.param({"memory_mode": "manual"}, "auto", id="manual-without-layers"),
        pytest.param({"memory_mode": "manual", "gpu_layers": 0}, "none", id="no-layers"),
        pytest.param(
            {"memory_mode": "manual", "gpu_layers": 20, "n_cpu_moe": 3},
            {"gpu_layers": 20, "cpu_experts": 3},
            id="layers-and-experts",
        ),
    ],
)
def test_offload_is_spelled_as_the_specification_has_it(changes: dict[str, Any], expected: Any) -> None:
    document = shapes.instance_plan_json(samples.plan(samples.request(**changes)))
    assert document["asked"]["offload"] == expected


def test_secrets_never_reach_a_plan() -> None:
    document = json.dumps(shapes.instance_plan_json(samples.plan()))
    assert "hunter2" not in document
    assert document.count("<redacted>") == 2


def test_notes_of_speculation_stand_among_the_reasons() -> None:
    codes = [reason["code"] for reason in shapes.instance_plan_json(samples.plan())["reasons"]]
    assert codes == ["context_fitted", "context_lowered"]


def test_speculation_by_the_users_own_flags_was_asked_by_nobody() -> None:
    document = shapes.instance_plan_json(samples.plan(spec=SpecDecision("auto", "user")))
    assert document["speculation"]["asked"] is None


def test_refused_instance_has_the_same_keys_and_grants_nothing() -> None:
    refused = RefusedInstance(samples.request(), 1, Failure(samples.REASON))
    document = as_json(shapes.refused_plan_json(refused))
    assert document.keys() == INSTANCE_PLAN_KEYS
    assert document["granted"] is None
    assert document["fit"] is None
    assert [reason["code"] for reason in document["reasons"]] == ["context_lowered"]


def test_problem_has_the_keys_of_the_specification() -> None:
    assert shapes.problem_json(PROBLEM) == {
        "code": "bad", "severity": "error", "file": "serve.toml", "line": 3, "column": 7,
        "path": "models.x.slots", "message": "must be a number", "found": '"a"', "allowed": "1 to 64",
        "suggestion": "4",
    }  # fmt: skip


def test_check_with_warnings_alone_is_ok() -> None:
    document = shapes.check_json(Path("serve.toml"), "a", (replace(PROBLEM, severity="warning"),))
    assert document.keys() == {"ok", "manifest", "problems"}
    assert document["ok"] is True


def test_check_with_an_error_is_not_ok() -> None:
    assert shapes.check_json(Path("serve.toml"), "a", (PROBLEM,))["ok"] is False


def test_diff_names_the_values_from_and_to() -> None:
    change = FieldChange("models.chat.source", Path("/a"), Path("/b"), "restart", "another file")
    action = ModelAction("chat", 0, "replace", (change,), (samples.REASON,))
    document = as_json(shapes.diff_json(DiffAnswer((action,))))["actions"][0]
    assert document.keys() == {"kind", "model", "replica", "changes", "reasons"}
    assert document["changes"] == [
        {"field": "models.chat.source", "from": "/a", "to": "/b", "effect": "restart", "why": "another file"}
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("environment", {"HF_TOKEN": "hunter2"}, id="environment"),
        pytest.param("engine_args", ("--api-key", "hunter2"), id="arguments"),
        pytest.param("engine", EngineRef(env={"MY_SECRET": "hunter2"}), id="nested-environment"),
        pytest.param("models.chat", samples.request(env={"A_PASSWORD": "hunter2"}), id="whole-request"),
    ],
)
def test_diff_hides_secrets(field: str, value: Any) -> None:
    action = ModelAction("chat", None, "replace", (FieldChange(field, None, value, "restart", "why"),))
    assert "hunter2" not in json.dumps(as_json(shapes.diff_json(DiffAnswer((action,)))))


def test_event_has_the_keys_of_the_specification() -> None:
    event = Event(7, samples.NOON, "refused", "No.", "chat", 0, samples.REASON, {"path": Path("/a")})
    document = as_json(shapes.event_json(event))
    assert document.keys() == {"id", "at", "kind", "model", "replica", "message", "reason", "data"}
    assert document["at"] == "2026-11-29T12:00:00.250Z"
    assert document["data"] == {"path": "/a"}


def test_engine_has_the_keys_of_the_specification() -> None:
    document = as_json(shapes.engines_json([EngineAnswer(EngineRef(), samples.BINARY, samples.CAPS)]))
    assert document["engines"][0].keys() == {
        "name", "kind", "path", "origin", "version", "build", "conclusive", "capabilities", "removed",
        "reasons",
    }  # fmt: skip
    assert document["engines"][0]["capabilities"]["flags"] == ["--jinja", "--metrics"]


def test_engine_that_was_not_found_is_not_conclusive() -> None:
    document = shapes.engine_json(EngineAnswer(EngineRef(), reasons=(samples.REASON,)))
    assert (document["path"], document["conclusive"]) == (None, False)


def test_devices_stand_in_one_list() -> None:
    document = as_json(shapes.devices_json(DevicesAnswer((samples.GPU, samples.CPU))))
    assert [device["name"] for device in document["devices"]] == ["Vulkan0", "CPU"]


def test_doctor_has_the_keys_of_the_specification() -> None:
    document = as_json(shapes.doctor_json([DoctorCheck("manifest", ok=False, reason=samples.REASON)]))
    assert document == {
        "checks": [{"name": "manifest", "ok": False, "reason": as_json(shapes.reason_json(samples.REASON))}]
    }


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.builds(Path, st.text(min_size=1).filter(lambda text: "\0" not in text))
    | st.datetimes(timezones=st.just(UTC))
    | st.sampled_from(list(State))
    | st.builds(Reason, st.text(), st.text()),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner)
        | st.frozensets(st.text())
    ),
)


@settings(max_examples=50)
@given(ANYTHING)
def test_any_value_becomes_json(value: Any) -> None:
    json.dumps(shapes.plain(value))
