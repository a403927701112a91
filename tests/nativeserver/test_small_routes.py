"""Health, props, models, metrics, tokens, adapters, control (12 §3.1, §8.8, §14, §16-18)."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from framework.nativeserver.metric import shown_number
from framework.nativeserver.task_shapes import long_params, short_params
from tests.nativeserver import drafting
from tests.nativeserver.generation_world import GrammarTrigger, failure, generation_params
from tests.nativeserver.small_world import TEMPLATE, done, small_world, totals

# 15 §6.
REAL_PROPS = (
    "default_generation_settings total_slots model_alias model_ftype model_path modalities media_marker"
    " endpoint_slots endpoint_props endpoint_metrics ui ui_settings chat_template chat_template_caps"
    " bos_token eos_token build_info is_sleeping cors_proxy_enabled"
)
REAL_SHORT = (
    "seed temperature dynatemp_range dynatemp_exponent top_k top_p min_p top_n_sigma xtc_probability"
    " xtc_threshold typical_p repeat_last_n repeat_penalty presence_penalty frequency_penalty dry_multiplier"
    " dry_base dry_allowed_length dry_penalty_last_n mirostat mirostat_tau mirostat_eta max_tokens n_predict"
    " n_keep n_discard ignore_eos stream n_probs min_keep chat_format reasoning_format reasoning_in_content"
    " generation_prompt samplers speculative.types timings_per_token post_sampling_probs backend_sampling"
    " lora"
)
REAL_METRICS = (
    "prompt_tokens_total prompt_seconds_total tokens_predicted_total tokens_predicted_seconds_total"
    " n_decode_total n_tokens_max prompt_tokens_seconds predicted_tokens_seconds requests_processing"
    " requests_deferred n_busy_slots_per_decode"
)


async def test_a_ready_engine_is_healthy() -> None:
    async with small_world() as world:
        for path in ("/health", "/v1/health"):
            assert (await world.get(path)).json() == {"status": "ok"}


async def test_props_have_what_the_real_server_has_and_the_engine() -> None:
    async with small_world(aliases=("small", "tiny"), request_defaults={"temperature": 0.5}) as world:
        props = (await world.get("/props")).json()
        assert set(REAL_PROPS.split()) <= set(props)
        assert props["default_generation_settings"]["n_ctx"] == 1024
        assert props["default_generation_settings"]["params"]["temperature"] == 0.5
        assert (props["model_alias"], props["model_path"]) == ("small", "/models/small.gguf")
        assert (props["total_slots"], props["is_sleeping"], props["chat_template"]) == (2, False, TEMPLATE)
        assert "chat_template_tool_use" not in props
        assert props["engine"]["state"] == "ready"
        world.core.state_ = "sleeping"
        assert (await world.get("/props")).json()["is_sleeping"] is True


async def test_a_model_without_alias_is_named_by_its_path() -> None:
    async with small_world() as world:
        assert (await world.get("/v1/models")).json()["data"][0]["id"] == "/models/small.gguf"


async def test_props_can_be_posted_with_the_switch_alone() -> None:
    async with small_world() as world:
        answer = await world.post("/props", {})
        assert (answer.status_code, "--props" in answer.json()["error"]["message"]) == (501, True)
    async with small_world(props=True) as world:
        assert (await world.client.post("/props", content=b"nonsense")).json() == {"success": True}


async def test_models_are_the_same_at_every_call() -> None:
    async with small_world(aliases=("small", "tiny"), tags=("t",)) as world:
        first, second = [(await world.get(path)).json() for path in ("/models", "/v1/models")]
        assert first == second
        (entry,) = first["data"]
        assert entry["created"] == 1_700_000_000
        assert (entry["id"], entry["aliases"], entry["tags"]) == ("small", ["small", "tiny"], ["t"])
        meta = "vocab_type n_vocab n_ctx n_ctx_train n_embd n_params size ftype"
        assert list(entry["meta"]) == meta.split()


async def test_metrics_need_the_switch() -> None:
    async with small_world() as world:
        answer = await world.get("/metrics")
        assert (answer.status_code, "--metrics" in answer.json()["error"]["message"]) == (501, True)


async def test_metrics_are_counts_in_prometheus_form() -> None:
    async with small_world(metrics=True) as world:
        world.core.speculation_ = drafting.speculation(draft_mtp="type-not-built")
        world.core.totals_ = totals(
            predicted_tokens=1_234_567,
            predicted_us=12_345_678_901,
            n_decode=3,
            busy_slots=4,
            decode_failures={-3: 2, 1: 5},
            checkpoints_restored=7,
            prompt_rate=math.inf,
        )
        answer = await world.get("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4"
        assert int(answer.headers["process-start-time-unix"]) > 1_700_000_000
        lines = answer.text.splitlines()
        for line in (
            "llamacpp:tokens_predicted_total 1234567",
            "llamacpp:tokens_predicted_seconds_total 12345.6789",
            "llamacpp:n_busy_slots_per_decode 1.33333333",
            'llamacpp:decode_failures_total{code="-3"} 2',
            'llamacpp:decode_failures_total{code="1"} 5',
            'llamacpp:checkpoints_total{event="restored"} 7',
            "llamacpp:prompt_tokens_seconds 0",
            "llamacpp:spec_decode_num_draft_tokens_total 0",
            'llamacpp:spec_fallback{type="draft-mtp",reason="type-not-built"} 1',
            "llamacpp:engine_sleeping 0",
        ):
            assert line in lines
        names = {line.split()[0].removeprefix("llamacpp:") for line in lines if not line.startswith("#")}
        assert set(REAL_METRICS.split()) <= names
        assert answer.text.endswith("\n")


@pytest.mark.parametrize(
    ("number", "text"),
    [(10**15, "1000000000000000"), (0.1, "0.1"), (1 / 3, "0.333333333"), (math.nan, "0"), (-math.inf, "0")],
)
def test_numbers_of_metrics(number: float, text: str) -> None:
    assert shown_number(number) == text


def test_parameters_have_the_order_of_the_real_server() -> None:
    shape = short_params(generation_params())
    assert [name for name in shape if not name.startswith("adaptive_")] == REAL_SHORT.split()
    assert shape["dry_penalty_last_n"] == -1


def test_the_long_form_shows_texts_and_biases() -> None:
    params = generation_params()
    params.stop, params.lora = ["x"], {1: 0.5, 0: 1.0}
    params.sampling.logit_bias = [(5, -math.inf)]
    params.sampling.grammar_triggers = [GrammarTrigger("token", "<t>", 7), GrammarTrigger("pattern", "a+")]
    shape = long_params(params, n_ctx=512)
    assert shape["stop"] == ["x"]
    assert shape["lora"] == [{"id": 0, "scale": 1.0}, {"id": 1, "scale": 0.5}]
    assert shape["logit_bias"] == [{"bias": -math.inf, "token": 5}]
    assert shape["grammar_triggers"] == [
        {"type": 0, "value": "<t>", "token": 7},
        {"type": 2, "value": "a+"},
    ]


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({}, []),
        ({"content": None}, []),
        ({"content": ""}, []),
        ({"content": "ab"}, [97, 98]),
        ({"content": "a", "add_special": True}, [1, 97]),
        ({"content": "<|im_end|>"}, [256]),
        ({"content": "<|", "parse_special": False}, [60, 124]),
        ({"content": ["a", 5, "b"], "add_special": True}, [1, 97, 5, 98]),
        ({"content": []}, []),
        ({"content": "é", "with_pieces": True}, [{"id": 195, "piece": [195]}, {"id": 169, "piece": [169]}]),
        ({"content": "a", "with_pieces": True}, [{"id": 97, "piece": "a"}]),
    ],
)
async def test_a_text_becomes_tokens(body: dict[str, Any], tokens: list[Any]) -> None:
    async with small_world() as world:
        assert (await world.post("/tokenize", body)).json() == {"tokens": tokens}


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/tokenize", {"content": 5}, "content"),
        ("/tokenize", {"content": {"a": 1}}, "content"),
        ("/tokenize", {"content": ["a", 300]}, "300"),
        ("/tokenize", {"content": ["a", True]}, "content"),
        ("/tokenize", {"content": "a", "with_pieces": "yes"}, "with_pieces"),
        ("/detokenize", {"tokens": "a"}, "tokens"),
        ("/detokenize", {"tokens": [1, "a"]}, "tokens"),
        ("/detokenize", {"tokens": [-1]}, "-1"),
        ("/detokenize", {"tokens": [300]}, "0 to 299"),
        ("/detokenize", {"tokens": [2**70]}, "tokens"),
        ("/detokenize", {"tokens": [1.5]}, "tokens"),
    ],
)
async def test_what_is_no_text_and_no_token_is_named(path: str, body: dict[str, Any], named: str) -> None:
    async with small_world() as world:
        answer = await world.post(path, body)
        assert answer.status_code == 400
        assert named in answer.json()["error"]["message"]


async def test_tokens_become_a_text() -> None:
    async with small_world() as world:
        assert (await world.post("/detokenize", {"tokens": [97, 256]})).json() == {"content": "a<|im_end|>"}
        assert (await world.post("/detokenize", {"tokens": [97, 195]})).json() == {"content": "a\ufffd"}
        assert (await world.post("/detokenize", {})).json() == {"content": ""}


def adapter(number: int, **fields: Any) -> SimpleNamespace:
    base = {"id": number, "path": f"/l/{number}.gguf", "scale": 1.0, "task_name": "", "prompt_prefix": ""}
    return SimpleNamespace(**{**base, "invocation_text": "", "invocation_tokens": [], **fields})


async def test_adapters_are_listed_in_load_order() -> None:
    async with small_world() as world:
        views = [adapter(0), adapter(1, invocation_text="<go>", invocation_tokens=[5, 6])]
        world.core.results = lambda task: [done(task, "lora", loras=views)]
        first, second = (await world.get("/lora-adapters")).json()
        assert list(first) == ["id", "path", "scale", "task_name", "prompt_prefix"]
        assert (second["alora_invocation_string"], second["alora_invocation_tokens"]) == ("<go>", [5, 6])


async def test_scales_are_handed_to_the_core() -> None:
    async with small_world() as world:
        world.core.results = lambda task: [done(task, "ok", success=True)]
        answer = await world.post("/lora-adapters", [{"id": 1, "scale": 0.25}])
        assert answer.json() == {"success": True}
        assert world.core.tasks[0].lora_scales == {1: 0.25}
        assert (await world.post("/lora-adapters", [])).json() == {"success": True}


@pytest.mark.parametrize(
    "body",
    [
        {},
        "x",
        [5],
        [{"scale": 1}],
        [{"id": "0", "scale": 1}],
        [{"id": -1, "scale": 1}],
        [{"id": 0, "scale": "a"}],
    ],
)
async def test_scales_are_a_list_of_ids_and_numbers(body: Any) -> None:
    async with small_world() as world:
        assert (await world.post("/lora-adapters", body)).status_code == 400
        assert world.core.tasks == []


async def test_an_adapter_that_does_not_exist_is_the_clients_error() -> None:
    async with small_world() as world:
        world.core.results = lambda task: [failure(task, "invalid_request", b"no adapter 7")]
        answer = await world.post("/lora-adapters", [{"id": 7, "scale": 1}])
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, "no adapter 7")


@pytest.mark.parametrize(
    ("success", "text", "shape"),
    [(True, b"", {"success": True}), (False, b"not there", {"success": False, "message": "not there"})],
)
async def test_a_control_tells_whether_it_was_done(success: bool, text: bytes, shape: Any) -> None:
    async with small_world() as world:
        world.core.results = lambda task: [done(task, "ok", success=success, text=text)]
        body = {"id": "chatcmpl-1", "action": "reasoning_end"}
        assert (await world.post("/v1/chat/completions/control", body)).json() == shape
        assert world.core.tasks[0].completion_id == "chatcmpl-1"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "reasoning_end"},
        {"id": 5, "action": "reasoning_end"},
        {"id": "x"},
        {"id": "x", "action": []},
    ],
)
async def test_a_control_needs_an_id_and_a_known_action(body: dict[str, Any]) -> None:
    async with small_world() as world:
        assert (await world.post("/v1/chat/completions/control", body)).status_code == 400


async def test_audio_is_refused() -> None:
    async with small_world() as world:
        assert (await world.post("/v1/audio/transcriptions")).status_code == 501
