"""Tokens, templates, counters, and what the servers tell of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.nativeserver.conformance.requests import COLOURS
from tests.support.engine_pair import EnginePair

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"content": "Hällo wörld 日本"}, id="ids"),
        pytest.param({"content": "Hällo wörld 日本 \U0001f600", "with_pieces": True}, id="pieces"),
        pytest.param({"content": "<|im_start|>user"}, id="special"),
        pytest.param({"content": "<|im_start|>user", "parse_special": False}, id="special-as-text"),
        pytest.param({"content": "a", "add_special": True}, id="specials-added"),
        pytest.param({"content": ["Once", 253, " time"], "with_pieces": True}, id="mixed"),
        pytest.param({"content": ""}, id="empty"),
        pytest.param({}, id="nothing"),
    ],
)
def test_tokens_are_the_same(pair: EnginePair, body: dict[str, Any]) -> None:
    real, native = pair.post("/tokenize", body)
    assert native == real


@pytest.mark.parametrize("tokens", [[5, 9, 1000, 42], [], [1, 2, 0], list(range(300, 320))])
def test_texts_of_tokens_are_the_same(pair: EnginePair, tokens: list[int]) -> None:
    real, native = pair.post("/detokenize", {"tokens": tokens})
    assert native == real


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(COLOURS, id="one"),
        pytest.param(
            [{"role": "system", "content": "Be brief."}, *COLOURS, {"role": "assistant", "content": "Red."}],
            id="begun-reply",
        ),
        pytest.param(
            [*COLOURS, {"role": "assistant", "content": "Red."}, {"role": "user", "content": " More \n"}],
            id="several",
        ),
        pytest.param(
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
            id="parts",
        ),
    ],
)
def test_a_template_gives_the_same_prompt(pair: EnginePair, messages: list[Any]) -> None:
    real, native = pair.post("/apply-template", {"messages": messages})
    assert_same(native, real)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", {"messages": COLOURS, "system": "Be brief."}),
        ("/v1/chat/completions/input_tokens", {"messages": COLOURS}),
        ("/v1/responses/input_tokens", {"input": "Name three colours."}),
        ("/v1/chat/completions/control", {"id": "chatcmpl-unknown", "action": "reasoning_end"}),
    ],
)
def test_counters_and_control_answer_the_same(pair: EnginePair, path: str, body: dict[str, Any]) -> None:
    real, native = pair.post(path, body)
    assert_same(native, real, apart_from=["message"])


def test_the_state_of_the_server_is_the_same(pair: EnginePair) -> None:
    for path in ("/health", "/props", "/v1/models", "/models", "/lora-adapters"):
        real, native = pair.get(path)
        assert_same(native, real, apart_from=["build_info", "media_marker", "ui", "ui_settings"])


def test_the_state_of_slots_is_the_same(pair: EnginePair) -> None:
    pair.post("/completion", {"prompt": "a", "n_predict": 3, "id_slot": 0, "temperature": 0, "seed": 1})
    real, native = pair.get("/slots")
    assert_same(native[0], real[0], apart_from=["id_task", "n_prompt_tokens", "params.reasoning_format"])


def test_metrics_have_every_name_of_the_real_one(pair: EnginePair) -> None:
    real, native = (
        {line.split()[0] for line in server.get("/metrics").text.splitlines() if not line.startswith("#")}
        for server in (pair.real, pair.native)
    )
    assert real <= native
