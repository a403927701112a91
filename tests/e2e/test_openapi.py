"""The description at `/openapi.json` against the running server: schemathesis asks what it says one may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import CHECKS, load_all_checks

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import engine_table, model_table
from tests.support.paddock import RunningPaddock

EXAMPLES = 6
# Some ask an engine, which takes as long as the machine is busy.
ANSWER_S = 90
# They go on for ever; tests of their own read them.
ENDLESS = {"/api/v1/events/stream"}
load_all_checks()
CHECKED = CHECKS.get_by_names(
    [
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    ]
)


@pytest.fixture(scope="module")
def quick() -> settings:
    return settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


def test_every_operation_answers_as_it_is_described(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, quick: settings
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("chat", tiny_gguf))
    paddock.wait_state("chat", "ready")
    described = description(paddock)
    schema = schemathesis.openapi.from_dict(described)
    schema.config.update(base_url=paddock.base_url, request_timeout=ANSWER_S)
    headers = {"Authorization": f"Bearer {paddock.token}"}
    asked = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in ENDLESS:
            continue
        asked.add(operation.path)
        probe(
            operation, headers if operation.path.startswith(("/api", "/metrics", "/openapi")) else {}, quick
        )
    assert asked | ENDLESS == set(described["paths"])
    assert paddock.process.poll() is None


def description(paddock: RunningPaddock) -> dict[str, Any]:
    """The description that the server gives."""
    headers = {"Authorization": f"Bearer {paddock.token}"}
    answer = httpx.get(f"{paddock.base_url}/openapi.json", headers=headers, trust_env=False)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def probe(operation: Any, headers: dict[str, str], quick: settings) -> None:
    """Ask one operation a few times, with any name and with that of the model."""

    @quick
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        for name in (None, "chat"):
            if name is not None and "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = name
            if isinstance(case.query, dict):
                case.query.pop("follow", None)
            answer = case.call(headers=headers)
            case.validate_response(answer, checks=CHECKED)
            # 501 and 503 are answers; 500 would be a fault of ours.
            assert answer.status_code != 500, answer.text

    ask()
