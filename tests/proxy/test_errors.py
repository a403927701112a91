"""The one error envelope (08 §26, 13 §7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from framework.proxy.errors import (
    STATUS,
    TYPES,
    ProxyError,
    envelope,
    internal_error,
    refused_lease,
    revoked_lease,
)
from framework.proxy.public_reason import without_paths
from framework.runtime.lease import LeaseRefused, RefusalCode, RevokeCode
from framework.values.instance import LoadProgress
from framework.values.reason import Reason


def test_every_code_has_a_status_with_a_type() -> None:
    assert set(STATUS.values()) <= set(TYPES)


def test_the_envelope_has_the_fields_of_the_contract() -> None:
    error = ProxyError("model_not_found", "There is none.", param="model")
    assert json.loads(envelope(error, "req-1")) == {
        "error": {
            "message": "There is none.",
            "type": "not_found_error",
            "param": "model",
            "code": "model_not_found",
            "request_id": "req-1",
        }
    }


def test_reason_and_progress_are_shown_where_they_exist() -> None:
    refused = LeaseRefused(
        "model_load_failed",
        "It did not start.",
        reason=Reason("model_missing", "No file.", evidence={"exit_code": 1}),
        progress=LoadProgress("mapping", 1, 4, 0.25, "a.gguf", 3.0),
    )
    body = json.loads(envelope(refused_lease(refused), "req-1"))["error"]
    assert body["reason"] == {
        "code": "model_missing",
        "message": "No file.",
        "remedy": "",
        "severity": "info",
        "evidence": {},
    }
    assert body["progress"] == {
        "phase": "mapping",
        "loaded_bytes": 1,
        "total_bytes": 4,
        "fraction": 0.25,
        "file": "a.gguf",
        "eta_s": 3.0,
    }


def test_no_path_of_this_machine_reaches_a_client() -> None:
    model, engine = Path("/home/op/my models/a.gguf"), "/opt/llama.cpp/bin/llama-server"
    reason = Reason(
        "model_missing",
        f"The file {model} does not exist; {engine} said so.",
        "Correct source in /etc/paddock/serve.toml.",
        "error",
        {"path": model},
    )
    text = f"Model 'm' failed to load: {reason.message}"
    body = envelope(refused_lease(LeaseRefused("model_load_failed", text, reason=reason)), "r").decode()
    for secret in ("home", "my models", "/opt", "/etc"):
        assert secret not in body
    error = json.loads(body)["error"]
    assert error["message"] == (
        "Model 'm' failed to load: The file a.gguf does not exist; llama-server said so."
    )
    assert error["reason"]["remedy"] == "Correct source in serve.toml."


@pytest.mark.parametrize(
    "text",
    ["12 tokens/s of 3/4", "see http://127.0.0.1:8080/v1/models", "engines/x.binary", "and/or"],
    ids=["units", "address", "key", "words"],
)
def test_what_is_no_path_stays(text: str) -> None:
    assert without_paths(text) == text


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (code, 500 if code == "model_load_failed" else 404 if code == "model_not_found" else 503)
        for code in get_args(RefusalCode)
    ],
)
def test_every_refusal_of_a_lease_has_its_status(code: RefusalCode, status: int) -> None:
    assert refused_lease(LeaseRefused(code, "no")).status == status


@pytest.mark.parametrize("code", get_args(RevokeCode))
def test_every_revocation_is_unavailable(code: RevokeCode) -> None:
    error = revoked_lease(code)
    assert (error.code, error.status, error.type) == (code, 503, "unavailable_error")
    assert error.headers == {"retry-after": "5"}


@pytest.mark.parametrize(("seconds", "header"), [(0.0, "1"), (0.2, "1"), (1.0, "1"), (4.1, "5")], ids=str)
def test_retry_after_is_whole_seconds(seconds: float, header: str) -> None:
    assert ProxyError("queue_full", "x", retry_after_s=seconds).headers == {"retry-after": header}


def test_no_retry_after_where_waiting_does_not_help() -> None:
    assert ProxyError("model_not_loaded", "x").headers == {}


def test_a_fault_of_ours_shows_nothing_but_the_id() -> None:
    body = json.loads(envelope(internal_error("req-1"), "req-1"))["error"]
    assert (body["code"], body["type"]) == ("internal_error", "server_error")
    assert "req-1" in body["message"]


def test_an_error_about_a_file_of_any_name_can_be_sent() -> None:
    error = ProxyError("model_not_found", "There is no a\udcff.gguf.")
    assert "a\\xff.gguf" in json.loads(envelope(error, "req-1"))["error"]["message"]
