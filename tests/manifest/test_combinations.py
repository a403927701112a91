"""Keys that are fine alone and not with each other, in a model and in what it inherits."""

from __future__ import annotations

import pytest

from tests.manifest.reading import MODEL, read, read_model

TWO_MODELS = '[models.a]\nsource = "a"\n[models.b]\nsource = "b"\n'


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ('kv_cache = "q8_0"\nflash_attention = "off"', "kv_cache"),
        ('kv_cache = { v = "Q4_0" }\nflash_attention = "off"', "kv_cache"),
        ('kv_cache = "q8_0"\nengine_args = ["-fa", "off"]', "kv_cache"),
        ('kv_cache = "q8_0"\nengine_args = ["--flash_attn=0"]', "kv_cache"),
        ('engine_args = ["-ctv", "q8_0"]\nflash_attention = "off"', "engine_args"),
        ('environment = { LLAMA_ARG_CACHE_TYPE_V = "q8_0" }\nflash_attention = "off"', "environment"),
    ],
)
def test_a_quantised_value_cache_without_flash_attention_is_refused(keys: str, path: str) -> None:
    problem = read_model(keys).only
    assert (problem.code, problem.path) == ("quantised_v_cache", f"models.m.{path}")
    assert "flash_attention" in problem.message


@pytest.mark.parametrize(
    "keys",
    [
        'kv_cache = { k = "q8_0" }\nflash_attention = "off"',
        'kv_cache = { k = "q8_0", v = "f16" }\nflash_attention = "off"',
        'kv_cache = "bf16"\nflash_attention = "off"',
        'kv_cache = "q8_0"\nflash_attention = "auto"',
        'kv_cache = "q8_0"',
        'kv_cache = "q8_0"\nflash_attention = "off"\nengine_args = ["-fa", "on"]',
        'kv_cache = "q8_0"\nflash_attention = "off"\nengine_args = ["-ctv", "f16"]',
    ],
)
def test_other_caches_are_fine(keys: str) -> None:
    assert read_model(keys).errors == []


def test_a_conflict_within_the_defaults_is_reported_once_at_its_place() -> None:
    defaults = '[defaults]\nkv_cache = "q8_0"\nflash_attention = "off"\n'
    assert read(defaults + TWO_MODELS).paths == ["defaults.kv_cache"]


def test_a_conflict_with_the_defaults_is_reported_at_the_model() -> None:
    text = f'[defaults]\nkv_cache = "q8_0"\n{TWO_MODELS}flash_attention = "off"\n'
    assert read(text).paths == ["models.b.flash_attention"]


def test_a_conflict_that_the_model_resolves_is_none() -> None:
    text = f'[defaults]\nkv_cache = "q8_0"\nflash_attention = "off"\n{MODEL}flash_attention = "on"\n'
    assert read(text).errors == []


@pytest.mark.parametrize(
    ("keys", "path"),
    [("batch = { logical = 256 }", "logical"), ("batch = { physical = 4096 }", "physical")]
    + [("batch = { logical = 8, physical = 9 }", "physical")],
)
def test_a_physical_batch_fits_into_the_logical_one(keys: str, path: str) -> None:
    problem = read_model(keys).only
    assert (problem.code, problem.path) == ("batch_sizes", f"models.m.batch.{path}")


@pytest.mark.parametrize("key", ["gpu_layers = 5", "cpu_experts = 5", "tensor_split = [1, 2]"])
@pytest.mark.parametrize("mode", ["", 'mode = "auto"\n'])
def test_numbers_of_a_placement_need_manual_mode(key: str, mode: str) -> None:
    problem = read(f"{MODEL}[models.m.placement]\n{mode}{key}").only
    assert (problem.code, problem.path) == ("manual_only", f"models.m.placement.{key.partition(' ')[0]}")


def test_numbers_of_a_placement_are_fine_in_manual_mode() -> None:
    placement = '[models.m.placement]\nmode = "manual"\ngpu_layers = 5\ntensor_split = [3, 1]\n'
    request = read(MODEL + placement).request()
    assert (request.memory_mode, request.gpu_layers, request.tensor_split) == ("manual", 5, (3.0, 1.0))


def test_numbers_may_complete_an_inherited_manual_mode() -> None:
    text = f'[defaults.placement]\nmode = "manual"\n{MODEL}placement = {{ gpu_layers = 5 }}\n'
    assert read(text).request().gpu_layers == 5


def test_a_model_may_go_back_to_automatic_placement() -> None:
    defaults = '[defaults.placement]\nmode = "manual"\ngpu_layers = 5\n'
    assert read(f'{defaults}{MODEL}placement = {{ mode = "auto" }}\n').request().memory_mode == "auto"


def test_numbers_in_the_defaults_without_manual_mode_are_reported_once() -> None:
    assert read(f"[defaults.placement]\ngpu_layers = 5\n{TWO_MODELS}").paths == [
        "defaults.placement.gpu_layers"
    ]
