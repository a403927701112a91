"""Refusals of an instance as the client sees them (08 §26.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framework.proxy.engine_errors import engine_refusal, event_status
from framework.proxy.errors import ProxyError
from tests.proxy.world import model

SMOL = model("smol")


def refused(status: int, message: str = "no", **fields: Any) -> ProxyError:
    body = json.dumps({"error": {"code": status, "message": message, **fields}}).encode()
    return engine_refusal(status, body, model=SMOL)


@pytest.mark.parametrize(
    ("status", "expected", "code"),
    [
        (400, 400, "invalid_body"),
        (404, 404, "route_not_found"),
        (413, 413, "body_too_large"),
        (422, 422, "invalid_body"),
        (429, 429, "rate_limited"),
        (501, 501, "not_supported"),
        (503, 503, "upstream_error"),
        (401, 502, "upstream_error"),
        (403, 502, "upstream_error"),
        (500, 502, "upstream_error"),
        (599, 502, "upstream_error"),
        (302, 502, "upstream_error"),
    ],
)
def test_statuses(status: int, expected: int, code: str) -> None:
    error = refused(status)
    assert (error.status, error.code) == (expected, code)
    assert error.extra["upstream_status"] == status
    assert "no" in error.message


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (400, "invalid_request_error", "invalid_request_error"),
        (500, "server_error", "server_error"),
        (500, "strange_error", "upstream_error"),
        (401, "authentication_error", "upstream_error"),
        (400, None, "invalid_request_error"),
    ],
)
def test_types_of_the_engine_are_kept(status: int, kind: str | None, expected: str) -> None:
    assert refused(status, type=kind).type == expected


def test_a_prompt_that_is_too_long_keeps_both_numbers() -> None:
    error = refused(400, type="exceed_context_size_error", n_prompt_tokens=3031, n_ctx=512)
    assert (error.code, error.status, error.type) == (
        "context_length_exceeded",
        400,
        "exceed_context_size_error",
    )
    assert (error.extra["n_prompt_tokens"], error.extra["n_ctx"]) == (3031, 512)
    assert "3031" in error.message
    assert "512" in error.message
    assert "models.smol.context" in error.message


def test_a_flag_that_the_engine_was_started_without_is_told_in_words_of_the_manifest() -> None:
    error = refused(501, "This server does not support embeddings. Start it with `--embeddings`")
    assert error.code == "not_supported"
    assert error.message.endswith(
        'Here that is engine_args = ["--embeddings"] of models.smol in the manifest.'
    )


def test_a_route_that_the_engine_lacks_is_not_supported() -> None:
    error = refused(404, "File Not Found", type="not_found_error")
    assert (error.code, error.status) == ("not_supported", 501)


def test_an_engine_that_still_loads_says_so() -> None:
    error = refused(503, "Loading model", type="unavailable_error")
    assert (error.code, error.status) == ("model_loading", 503)
    assert error.headers["retry-after"] == "1"


def test_a_body_that_is_no_json_is_quoted_in_part() -> None:
    error = engine_refusal(500, b"<html>" + b"x" * 5000, model=SMOL)
    assert error.message == "<html>" + "x" * 1994


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"error": null}', b"\xff"], ids=repr)
def test_strange_bodies_are_no_fault(body: bytes) -> None:
    assert engine_refusal(500, body, model=SMOL).status == 502


def test_a_plain_text_error_is_its_own_message() -> None:
    assert engine_refusal(400, b'{"error": "bad"}', model=SMOL).message == "bad"


def test_our_own_key_never_comes_back() -> None:
    body = b'{"error": {"message": "Bearer abc123 is wrong: abc123"}}'
    error = engine_refusal(401, body, model=SMOL, headers={"Authorization": "Bearer abc123"})
    assert "abc123" not in error.message


@pytest.mark.parametrize(
    ("error", "status"),
    [({"code": 400}, 400), ({"code": "x"}, 500), ({"code": 200}, 500), ({}, 500), ("text", 500), (None, 500)],
    ids=str,
)
def test_the_status_inside_an_error_event(error: Any, status: int) -> None:
    assert event_status(error) == status
