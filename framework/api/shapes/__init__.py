"""Values as the JSON of 13: one function per shape, pure. Used by the API, `--json` and the dashboard."""

from framework.api.shapes.answers import (
    check_json,
    devices_json,
    diff_json,
    doctor_json,
    engine_json,
    engines_json,
)
from framework.api.shapes.basic import (
    at,
    device_json,
    event_json,
    optional_reason_json,
    plain,
    reason_json,
)
from framework.api.shapes.files import files_json
from framework.api.shapes.history import device_histories_json, model_history_json
from framework.api.shapes.inspect import inspect_json
from framework.api.shapes.instance import (
    attempt_json,
    exit_json,
    instance_json,
    progress_json,
    slot_json,
    started_argv,
)
from framework.api.shapes.plan import instance_plan_json, plan_json, refused_plan_json
from framework.api.shapes.pools import pool_json
from framework.api.shapes.requests import kept_request_json, running_request_json
from framework.api.shapes.speculation import speculation_json, yield_json
from framework.api.shapes.status import model_json, queue_json, status_json
from framework.values.problem import as_json as problem_json

__all__ = [
    "at",
    "attempt_json",
    "check_json",
    "device_histories_json",
    "device_json",
    "devices_json",
    "diff_json",
    "doctor_json",
    "engine_json",
    "engines_json",
    "event_json",
    "exit_json",
    "files_json",
    "inspect_json",
    "instance_json",
    "instance_plan_json",
    "kept_request_json",
    "model_history_json",
    "model_json",
    "optional_reason_json",
    "plain",
    "plan_json",
    "pool_json",
    "problem_json",
    "progress_json",
    "queue_json",
    "reason_json",
    "refused_plan_json",
    "running_request_json",
    "slot_json",
    "speculation_json",
    "started_argv",
    "status_json",
    "yield_json",
]
