"""What is kept of prompts: slot files, shifts of the context, the RAM cache; adapters, and sleep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.nativeserver.conformance.requests import STORY, greedy
from tests.support.engine_pair import EnginePair, running_pair
from tests.support.waiting import wait_until
from tests.support.working_models import write_adapter

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


APART_FROM = [
    "id_slot",
    "generation_settings.reasoning_format",
    "generation_settings.logit_bias",
]
# Most of a context of 256 tokens.
LONG = " ".join([STORY] * 12)


@pytest.mark.parametrize("is_saved_by_real", [True, False], ids=["real-to-native", "native-to-real"])
def test_a_slot_file_goes_from_one_to_the_other(pair: EnginePair, is_saved_by_real: bool) -> None:
    saver, reader = (pair.real, pair.native) if is_saved_by_real else (pair.native, pair.real)
    file = {"filename": f"slot-{is_saved_by_real}.bin"}
    body = {"prompt": STORY, "n_predict": 1, "temperature": 0, "cache_prompt": True, "id_slot": 0}
    assert saver.post("/completion", body).status_code == 200
    saved = saver.post("/slots/0?action=save", file).json()
    restored = reader.post("/slots/1?action=restore", file).json()
    assert restored["n_restored"] == saved["n_saved"] > 10
    assert restored["n_read"] == saved["n_written"]
    answer = reader.post("/completion", {**body, "id_slot": 1, "n_predict": 8}).json()
    assert answer["timings"]["cache_n"] >= saved["n_saved"] - 2
    fresh = reader.post("/completion", {**body, "cache_prompt": False, "n_predict": 8}).json()
    assert answer["content"] == fresh["content"]


def test_slot_actions_answer_the_same(pair: EnginePair) -> None:
    pair.post("/completion", greedy(prompt=STORY, n_predict=4, id_slot=0))
    for action in ("save", "restore", "erase", "save", "erase"):
        real, native = pair.post(f"/slots/0?action={action}", {"filename": "same.bin"})
        assert_same(native, real, apart_from=APART_FROM)


SHORT = ("-c", "256", "-np", "1")


@pytest.fixture(scope="module")
def shifting(
    engine_binary: Path, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EnginePair]:
    """Both with a context that ends soon, and goes on."""
    logs = tmp_path_factory.mktemp("logs")
    with running_pair(engine_binary, smollm2, logs, *SHORT, "--context-shift") as running:
        yield running


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="half-is-discarded"),
        pytest.param({"n_keep": 8}, id="the-beginning-is-kept"),
        pytest.param({"n_keep": 8, "n_discard": 32}, id="some-are-discarded"),
        pytest.param({"n_keep": -1}, id="the-prompt-is-kept"),
    ],
)
def test_a_context_is_shifted_the_same(shifting: EnginePair, fields: dict[str, Any]) -> None:
    body = greedy(prompt=LONG, n_predict=80, ignore_eos=True, return_tokens=True, **fields)
    real, native = shifting.post("/completion", body)
    assert real["truncated"]
    assert_same(native, real, apart_from=APART_FROM)


def test_a_shifted_prompt_is_used_again_the_same(shifting: EnginePair) -> None:
    for text in (LONG, LONG, LONG + " was"):
        body = greedy(prompt=text, n_predict=80, ignore_eos=True, cache_prompt=True)
        real, native = shifting.post("/completion", body)
        assert_same(native, real, apart_from=APART_FROM)


def test_a_full_context_ends_the_same(engine_binary: Path, smollm2: Path, tmp_path: Path) -> None:
    with running_pair(engine_binary, smollm2, tmp_path, *SHORT) as short:
        real, native = short.post("/completion", greedy(prompt=LONG, n_predict=-1, ignore_eos=True))
        assert (real["stop_type"], real["truncated"]) == ("limit", True)
        assert_same(native, real, apart_from=APART_FROM)


TALES = [f"{STORY} had {count} daughters. " + "They went to the market. " * 12 for count in ("two", "nine")]


@pytest.mark.parametrize("ram_mib", ["64", "0"])
def test_prompts_come_back_from_ram_the_same(
    engine_binary: Path, smollm2: Path, tmp_path: Path, ram_mib: str
) -> None:
    flags = ("-c", "512", "-np", "1", "--cache-ram", ram_mib)
    with running_pair(engine_binary, smollm2, tmp_path, *flags) as cached:
        seen = []
        for prompt in ("Unrelated: one, two, three.", TALES[0], "Unrelated: four.", TALES[0], TALES[1]):
            body = greedy(prompt=prompt, n_predict=6, cache_prompt=True, return_tokens=True)
            real, native = cached.post("/completion", body)
            assert_same(native, real, apart_from=APART_FROM)
            seen.append(native["timings"]["cache_n"])
        assert (seen[3] > 50) == (ram_mib != "0")


def test_adapters_change_answers_the_same(engine_binary: Path, smollm2: Path, tmp_path: Path) -> None:
    adapters = [write_adapter(tmp_path / f"{seed}.gguf", smollm2, seed=seed) for seed in (1, 2)]
    flags = ("-c", "512", "-np", "2", "--lora", ",".join(map(str, adapters)))
    with running_pair(engine_binary, smollm2, tmp_path, *flags) as adapted:
        texts = set()
        wishes: list[dict[str, Any]] = [
            {},
            {"lora": [{"id": 0, "scale": 1.0}]},
            {"lora": [{"id": 1, "scale": 1.0}]},
            {"lora": [{"id": 0, "scale": 0.5}, {"id": 1, "scale": 0.5}]},
            {"lora": [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 0.0}]},
        ]
        for fields in wishes:
            body = greedy(prompt=STORY, n_predict=12, return_tokens=True, **fields)
            real, native = adapted.post("/completion", body)
            assert_same(native, real, apart_from=APART_FROM)
            texts.add(native["content"])
        assert len(texts) >= 3
        real, native = adapted.get("/lora-adapters")
        assert_same(native, real, apart_from=APART_FROM)
        for scales in ([{"id": 1, "scale": 0.75}], []):
            for server in (adapted.real, adapted.native):
                assert server.post("/lora-adapters", scales).json() == {"success": True}
            real, native = adapted.get("/lora-adapters")
            assert_same(native, real, apart_from=APART_FROM)
            real, native = adapted.post("/completion", greedy(prompt=STORY, n_predict=12))
            assert_same(native, real, apart_from=APART_FROM)


def test_an_activated_adapter_is_the_same(engine_binary: Path, smollm2: Path, tmp_path: Path) -> None:
    river = gguf.GGUFReader(smollm2).fields["tokenizer.ggml.tokens"].contents().index("Ġriver")
    adapter = write_adapter(tmp_path / "activated.gguf", smollm2, invoked_by=[river])
    with running_pair(engine_binary, smollm2, tmp_path, "-c", "512", "--lora", str(adapter)) as adapted:
        for prompt in (STORY, "Nothing that calls it"):
            body = greedy(prompt=prompt, n_predict=12, return_tokens=True, cache_prompt=True)
            real, native = adapted.post("/completion", body)
            assert_same(native, real, apart_from=APART_FROM)
        real, native = adapted.get("/lora-adapters")
        assert_same(native, real, apart_from=APART_FROM)


def test_sleep_and_wake_are_the_same(engine_binary: Path, smollm2: Path, tmp_path: Path) -> None:
    flags = ("-c", "512", "-np", "1", "--sleep-idle-seconds", "1")
    with running_pair(engine_binary, smollm2, tmp_path, *flags) as sleepers:
        body = greedy(prompt=STORY, n_predict=8, return_tokens=True)
        awake = sleepers.post("/completion", body)[1]
        for server in (sleepers.real, sleepers.native):
            wait_until(lambda server=server: server.get("/props").json()["is_sleeping"])
        for path in ("/health", "/v1/models"):
            real, native = sleepers.get(path)
            assert_same(native, real, apart_from=APART_FROM)
        real, native = sleepers.post("/completion", body)
        assert_same(native, real, apart_from=APART_FROM)
        assert native["tokens"] == awake["tokens"]
        assert [
            server.get("/props").json()["is_sleeping"] for server in (sleepers.real, sleepers.native)
        ] == [False] * 2
