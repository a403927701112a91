"""Requests that can't be answered: same status, type and members."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_pair import EnginePair

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/completion", {}, id="no-prompt"),
        pytest.param("/completion", {"prompt": "a", "temperature": "hot"}, id="wrong-type"),
        pytest.param("/completion", {"prompt": "a", "n": 3}, id="more-choices-than-slots"),
        pytest.param("/completion", {"prompt": [10**9]}, id="token-outside-the-vocabulary"),
        pytest.param("/v1/chat/completions", {"messages": "hello"}, id="messages-no-list"),
        pytest.param("/v1/chat/completions", {}, id="no-messages"),
        pytest.param(
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "a"}], "top_logprobs": 3},
            id="top-logprobs-alone",
        ),
        pytest.param("/v1/responses", {"input": "a", "previous_response_id": "x"}, id="previous-response"),
        pytest.param("/v1/responses", {}, id="no-input"),
        pytest.param("/completion", {"prompt": "a", "grammar": "root ::= ("}, id="bad-grammar"),
        pytest.param("/completion", {"prompt": "a", "json_schema": {"type": "x"}}, id="bad-schema"),
        pytest.param("/completion", {"prompt": "word " * 4000}, id="too-long"),
        pytest.param("/completion", {"prompt": "word " * 4000, "stream": True}, id="too-long-streamed"),
        pytest.param("/v1/embeddings", {"input": "a"}, id="no-embeddings"),
        pytest.param("/rerank", {"query": "a", "documents": ["b"]}, id="no-reranking"),
        pytest.param("/infill", {"input_prefix": "a", "input_suffix": "b"}, id="no-infill"),
        pytest.param("/props", {}, id="props-are-fixed"),
        pytest.param("/slots/0?action=fly", {}, id="unknown-action"),
        pytest.param("/slots/abc?action=erase", {}, id="slot-no-number"),
        pytest.param("/slots/0?action=restore", {"filename": "absent.bin"}, id="no-slot-file"),
        pytest.param("/slots/0?action=save", {"filename": "../x"}, id="file-elsewhere"),
        pytest.param("/v1/chat/completions/control", {"action": "reasoning_end"}, id="control-nothing"),
        pytest.param("/nowhere", {}, id="unknown-path"),
    ],
)
def test_an_error_has_the_same_status_and_type(pair: EnginePair, path: str, body: dict[str, Any]) -> None:
    real, native = (server.post(path, body) for server in (pair.real, pair.native))
    assert native.status_code == real.status_code, (native.text, real.text)
    assert set(native.json()) == set(real.json())
    assert set(native.json()["error"]) == set(real.json()["error"])
    assert native.json()["error"]["type"] == real.json()["error"]["type"]
    assert native.json()["error"]["code"] == real.json()["error"]["code"]
