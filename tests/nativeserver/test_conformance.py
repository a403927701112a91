"""The same requests to the wheel's llama-server and to the native engine give the same answers (10, 12, 15).

Same libllama, same threads, same model, temperature 0. What differs on purpose is listed in docs/native.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.engine_pair import RunningServer, llama_server_line, native_line, running_server

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

ARGUMENTS = ("-c", "2048", "-np", "2", "-t", "1", "--no-warmup")
STORY = "Once upon a time there was a small mill by the river, and the miller"
CHAT = [{"role": "user", "content": "Name three colours, separated by commas."}]
GRAMMAR = 'root ::= "yes" | "no" | "maybe"'
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
Pair = tuple[RunningServer, RunningServer]


@pytest.fixture(scope="module")
def slots_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where both servers save their slots."""
    return tmp_path_factory.mktemp("slots")


@pytest.fixture(scope="module")
def pair(
    engine_binary: Path, smollm2: Path, slots_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """The real one, and ours."""
    logs = tmp_path_factory.mktemp("logs")
    arguments = (*ARGUMENTS, "--slot-save-path", str(slots_folder), "--metrics")
    with (
        running_server(llama_server_line(engine_binary), smollm2, logs / "real", *arguments) as real,
        running_server(native_line(), smollm2, logs / "native", *arguments) as native,
    ):
        yield real, native


def both(pair: Pair, path: str, body: dict[str, Any]) -> tuple[Any, Any]:
    """The two answers to one request; both good."""
    answers = [server.post(path, body) for server in pair]
    assert [answer.status_code for answer in answers] == [200, 200], [answer.text for answer in answers]
    return answers[0].json(), answers[1].json()


def greedy(**fields: Any) -> dict[str, Any]:
    return {"temperature": 0, "cache_prompt": False, "seed": 1, **fields}


COMPLETIONS = {
    "plain": {"n_predict": 24, "return_tokens": True},
    "to-the-end": {"n_predict": 200, "prompt": "The capital of France is", "return_tokens": True},
    "stop-string": {"n_predict": 60, "stop": [" and", "mill"]},
    "grammar": {"n_predict": 8, "grammar": GRAMMAR},
    "schema": {"n_predict": 60, "json_schema": SCHEMA},
    "penalties": {"n_predict": 24, "repeat_penalty": 1.3, "return_tokens": True},
    "bias": {"n_predict": 12, "logit_bias": [[28, False], [30, -5.0]], "return_tokens": True},
    "ignore-eos": {"n_predict": 40, "ignore_eos": True, "return_tokens": True},
    "tokens-as-prompt": {"n_predict": 8, "prompt": [5, 9, 1000, 42], "return_tokens": True},
}


@pytest.mark.parametrize("name", COMPLETIONS)
def test_a_completion_is_the_same(pair: Pair, name: str) -> None:
    real, native = both(pair, "/completion", greedy(**{"prompt": STORY, **COMPLETIONS[name]}))
    keys = ["content", "tokens", "stop_type", "stopping_word", "tokens_predicted", "tokens_evaluated"]
    keys += ["truncated", "has_new_line", "prompt", "model"]
    assert {key: native[key] for key in keys} == {key: real[key] for key in keys}


def test_a_completion_has_every_field_of_the_real_one(pair: Pair) -> None:
    real, native = both(pair, "/completion", greedy(prompt=STORY, n_predict=4))
    assert set(real) <= set(native)
    assert set(real["timings"]) <= set(native["timings"])
    assert set(real["generation_settings"]) <= set(native["generation_settings"])


def test_probabilities_are_the_same(pair: Pair) -> None:
    real, native = both(pair, "/completion", greedy(prompt=STORY, n_predict=6, n_probs=4))
    for ours, theirs in zip(
        native["completion_probabilities"], real["completion_probabilities"], strict=True
    ):
        assert set(ours) == set(theirs)
        assert [entry["id"] for entry in ours["top_logprobs"]] == [
            entry["id"] for entry in theirs["top_logprobs"]
        ]
        for mine, other in zip(ours["top_logprobs"], theirs["top_logprobs"], strict=True):
            assert mine["logprob"] == pytest.approx(other["logprob"], abs=2e-3)
            assert (mine["token"], mine["bytes"]) == (other["token"], other["bytes"])


CHATS = {
    "plain": {},
    "stop-string": {"stop": ","},
    "logprobs": {"logprobs": True, "top_logprobs": 3},
    "schema": {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_the_same(pair: Pair, name: str) -> None:
    body = greedy(messages=CHAT, max_tokens=40, **CHATS[name])
    real, native = both(pair, "/v1/chat/completions", body)
    ours, theirs = native["choices"][0], real["choices"][0]
    assert (ours["message"], ours["finish_reason"]) == (theirs["message"], theirs["finish_reason"])
    assert {key: native["usage"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
        key: real["usage"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")
    }
    assert set(real) <= set(native)
    assert set(theirs) <= set(ours)


def test_text_completions_are_the_same(pair: Pair) -> None:
    real, native = both(pair, "/v1/completions", greedy(prompt=STORY, max_tokens=20))
    assert native["choices"][0]["text"] == real["choices"][0]["text"]
    assert native["choices"][0]["finish_reason"] == real["choices"][0]["finish_reason"]
    assert set(real) <= set(native)


def streamed(server: RunningServer, path: str, body: dict[str, Any]) -> tuple[list[Any], bool]:
    """Data of the events of a stream, and whether it ended with `[DONE]`."""
    events, is_done = [], False
    with httpx.stream("POST", f"{server.url}{path}", json={**body, "stream": True}, timeout=110) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line == "data: [DONE]":
                is_done = True
            elif line.startswith("data: "):
                events.append(json.loads(line[6:]))
    return events, is_done


def test_a_streamed_chat_is_the_same(pair: Pair) -> None:
    body = greedy(messages=CHAT, max_tokens=30, stream_options={"include_usage": True})
    (real, real_done), (native, native_done) = (
        streamed(server, "/v1/chat/completions", body) for server in pair
    )

    def text(events: list[Any]) -> str:
        return "".join(
            choice["delta"].get("content") or "" for event in events for choice in event["choices"]
        )

    assert text(native) == text(real)
    assert (native_done, real_done) == (True, True)
    assert native[0]["choices"][0]["delta"] == real[0]["choices"][0]["delta"]
    assert native[-2]["choices"][0]["finish_reason"] == real[-2]["choices"][0]["finish_reason"]
    assert native[-1]["usage"]["completion_tokens"] == real[-1]["usage"]["completion_tokens"]
    assert [set(event) for event in native] == [set(event) for event in real]


def test_a_streamed_completion_is_the_same(pair: Pair) -> None:
    body = greedy(prompt=STORY, n_predict=20)
    (real, real_done), (native, native_done) = (streamed(server, "/completion", body) for server in pair)
    assert "".join(event["content"] for event in native) == "".join(event["content"] for event in real)
    assert (native_done, real_done) == (False, False)
    assert set(real[0]) <= set(native[0])
    assert set(real[-1]) <= set(native[-1])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/completion", {}, id="no-prompt"),
        pytest.param("/completion", {"prompt": "a", "temperature": "hot"}, id="wrong-type"),
        pytest.param("/v1/chat/completions", {"messages": "hello"}, id="messages-no-list"),
        pytest.param("/completion", {"prompt": "a", "grammar": "root ::= ("}, id="bad-grammar"),
        pytest.param("/completion", {"prompt": "word " * 4000}, id="too-long"),
        pytest.param("/completion", {"prompt": "word " * 4000, "stream": True}, id="too-long-streamed"),
        pytest.param("/v1/embeddings", {"input": "a"}, id="no-embeddings"),
        pytest.param("/rerank", {"query": "a", "documents": ["b"]}, id="no-reranking"),
        pytest.param("/infill", {"input_prefix": "a", "input_suffix": "b"}, id="no-infill"),
        pytest.param("/nowhere", {}, id="unknown-path"),
    ],
)
def test_an_error_has_the_same_status_and_type(pair: Pair, path: str, body: dict[str, Any]) -> None:
    real, native = (server.post(path, body) for server in pair)
    assert native.status_code == real.status_code
    assert set(native.json()["error"]) == set(real.json()["error"])
    assert native.json()["error"]["type"] == real.json()["error"]["type"]


def test_tokens_are_the_same(pair: Pair) -> None:
    for body in (
        {"content": "Hällo wörld 日本", "with_pieces": True},
        {"content": "<|im_start|>user", "parse_special": False},
        {"content": "a", "add_special": True},
    ):
        real, native = both(pair, "/tokenize", body)
        assert native == real
    real, native = both(pair, "/detokenize", {"tokens": [5, 9, 1000, 42]})
    assert native == real


def test_a_template_gives_the_same_prompt(pair: Pair) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *CHAT, {"role": "assistant", "content": "Red."}]
    real, native = both(pair, "/apply-template", {"messages": [*messages, *CHAT]})
    assert native == real


@pytest.mark.parametrize(("saver", "reader"), [(0, 1), (1, 0)], ids=["real-to-native", "native-to-real"])
def test_a_slot_file_goes_from_one_to_the_other(pair: Pair, saver: int, reader: int) -> None:
    body = {"prompt": STORY, "n_predict": 1, "temperature": 0, "cache_prompt": True, "id_slot": 0}
    assert pair[saver].post("/completion", body).status_code == 200
    saved = pair[saver].post("/slots/0?action=save", {"filename": f"slot-{saver}.bin"}).json()
    restored = pair[reader].post("/slots/1?action=restore", {"filename": f"slot-{saver}.bin"}).json()
    assert restored["n_restored"] == saved["n_saved"] > 10
    answer = pair[reader].post("/completion", {**body, "id_slot": 1, "n_predict": 8}).json()
    assert answer["timings"]["cache_n"] >= saved["n_saved"] - 2
    fresh = pair[reader].post("/completion", {**body, "cache_prompt": False, "n_predict": 8}).json()
    assert answer["content"] == fresh["content"]


def test_the_state_of_slots_and_server_has_every_field(pair: Pair) -> None:
    for path in ("/props", "/v1/models", "/health"):
        real, native = (server.get(path).json() for server in pair)
        assert set(real) <= set(native), path
    for server in pair:
        server.post("/completion", {"prompt": "a", "n_predict": 1, "id_slot": 0})
    real, native = (server.get("/slots").json()[0] for server in pair)
    assert set(real) <= set(native)
    assert set(real["params"]) <= set(native["params"])


def test_metrics_have_every_name_of_the_real_one(pair: Pair) -> None:
    names = [
        {line.split()[0] for line in server.get("/metrics").text.splitlines() if not line.startswith("#")}
        for server in pair
    ]
    assert names[0] <= names[1]


@pytest.fixture(scope="module")
def embedding_pair(
    engine_binary: Path, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Both, with embeddings."""
    logs = tmp_path_factory.mktemp("embedding-logs")
    arguments = (*ARGUMENTS, "--embeddings", "--pooling", "mean")
    with (
        running_server(llama_server_line(engine_binary), smollm2, logs / "real", *arguments) as real,
        running_server(native_line(), smollm2, logs / "native", *arguments) as native,
    ):
        yield real, native


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


def test_embeddings_are_the_same(embedding_pair: Pair) -> None:
    real, native = both(embedding_pair, "/v1/embeddings", {"input": [STORY, "short", "日本"], "model": "m"})
    assert native["usage"] == real["usage"]
    for ours, theirs in zip(native["data"], real["data"], strict=True):
        assert set(theirs) <= set(ours)
        assert cosine(ours["embedding"], theirs["embedding"]) > 0.9999
        assert math.hypot(*ours["embedding"]) == pytest.approx(1.0, abs=1e-4)
