"""What to change when a plan does not fit."""

import re

from framework.planning.memory.fit import plan_memory
from framework.planning.memory.remedies import Variant, remedies
from framework.planning.memory.settings import CacheSettings, GpuBudget, Hardware, Offload
from framework.values.plan import Remedy
from tests.support.memory_rows import MeasuredModel, measured_models

GIB = 1 << 30
LLAMA = measured_models()["llama-3.1-8b"]
GEMMA = measured_models()["gemma-3-12b"]
MIXTRAL = measured_models()["mixtral-8x7b"]


def card(gib: float) -> Hardware:
    return Hardware((GpuBudget("CUDA0", int(gib * GIB), int(gib * GIB), "cuda"),), 200 * GIB)


def found(model: MeasuredModel, settings: CacheSettings, hardware: Hardware, **more: object) -> list[Remedy]:
    return list(remedies(model.shape, model.table, settings, hardware, **more))  # type: ignore[arg-type]


def kinds(answers: list[Remedy]) -> list[str]:
    return [remedy.kind for remedy in answers]


def test_what_suffices_comes_first_by_how_little_it_is_felt() -> None:
    answers = found(LLAMA, CacheSettings(65_536, slots=4), card(8))
    assert kinds([remedy for remedy in answers if remedy.fits]) == ["cache_type", "context", "layers"]


def test_what_does_not_suffice_is_ranked_by_what_it_buys() -> None:
    answers = [r for r in found(GEMMA, CacheSettings(8192, slots=4), card(3)) if not r.fits]
    assert [r.frees_bytes for r in answers] == sorted((r.frees_bytes for r in answers), reverse=True)


def test_slots_weigh_most_where_windows_multiply() -> None:
    answers = found(GEMMA, CacheSettings(8192, 4, "q8_0", "q8_0"), card(2))
    first = next(remedy for remedy in answers if remedy.kind in ("slots", "context", "cache_type"))
    assert (first.kind, first.to) == ("slots", 1)  # FM-06


def test_a_remedy_that_fits_makes_the_plan_fit() -> None:
    settings, hardware = CacheSettings(65_536), card(8)
    context = next(r for r in found(LLAMA, settings, hardware) if r.kind == "context")
    assert isinstance(context.to, int)
    assert plan_memory(LLAMA.shape, LLAMA.table, CacheSettings(context.to), hardware).fits


def test_no_more_layers_move_than_have_to() -> None:
    settings, hardware = CacheSettings(65_536), card(8)
    layers = next(r for r in found(LLAMA, settings, hardware) if r.kind == "layers")
    assert isinstance(layers.to, int)
    one_more = plan_memory(LLAMA.shape, LLAMA.table, settings, hardware, Offload(layers.to + 1))
    assert layers.fits and not one_more.fits


def test_experts_can_move_to_host_memory() -> None:
    experts = next(r for r in found(MIXTRAL, CacheSettings(8192), card(16)) if r.kind == "experts")
    assert experts.fits
    assert "more are read there" in experts.sentence


def test_a_model_without_experts_is_not_told_to_move_any() -> None:
    assert "experts" not in kinds(found(LLAMA, CacheSettings(65_536), card(8)))


def test_the_milder_cache_type_is_enough_where_it_fits() -> None:
    answers = found(LLAMA, CacheSettings(32_768), card(8.5))
    assert [r.to for r in answers if r.kind == "cache_type"] == ["q8_0"]


def test_values_are_not_quantised_without_flash_attention() -> None:
    settings = CacheSettings(16_384, flash_attention=False)
    answers = found(LLAMA, settings, card(6))
    keys_only = next(r for r in answers if r.kind == "cache_type")
    both = next(r for r in found(LLAMA, CacheSettings(16_384), card(6)) if r.to == keys_only.to)
    assert keys_only.frees_bytes < both.frees_bytes


def test_another_variant_is_a_remedy() -> None:
    answers = found(LLAMA, CacheSettings(8192), card(4), variants=[Variant("Q2_K", 2 * GIB)])
    variant = next(r for r in answers if r.kind == "variant")
    assert (variant.to, variant.fits) == ("Q2_K", True)


def test_a_larger_variant_is_none() -> None:
    answers = found(LLAMA, CacheSettings(8192), card(4), variants=[Variant("{Q8_0}", 9 * GIB)])
    assert "variant" not in kinds(answers)


def test_every_sentence_says_what_is_changed_bought_and_paid() -> None:
    for remedy in found(MIXTRAL, CacheSettings(65_536, slots=4), card(16)):
        assert " less; " in remedy.sentence
        assert remedy.sentence.endswith(".")


def test_without_gpus_layers_stay_where_they_are() -> None:
    answers = found(LLAMA, CacheSettings(65_536, slots=2), Hardware(host_free_bytes=4 * GIB))
    assert {"experts", "layers"}.isdisjoint(kinds(answers))


TRAINED = 131_072


def test_a_context_above_what_the_slots_can_use_is_shortened_to_that() -> None:
    settings = CacheSettings(16_777_216, slots=2)
    assert LLAMA.shape.context_length == TRAINED
    (context,) = (
        r for r in found(LLAMA, settings, Hardware(host_free_bytes=400 * GIB)) if r.kind == "context"
    )
    assert (context.to, context.fits) == (2 * TRAINED, True)
    assert "to 262,144 tokens instead of 16,777,216" in context.sentence
    assert "never used" in context.sentence


def test_where_that_is_too_much_it_is_shortened_to_what_fits() -> None:
    for asked in (TRAINED, 16_777_216):
        context = next(r for r in found(LLAMA, CacheSettings(asked), card(8)) if r.kind == "context")
        assert isinstance(context.to, int)
        assert (context.to < TRAINED, context.fits) == (True, True)


def test_no_remedy_names_a_context_that_nobody_can_use() -> None:
    for gib in (1, 8, 80, 800):
        for slots in (1, 4):
            answers = found(LLAMA, CacheSettings(16_000_000, slots), Hardware(host_free_bytes=gib * GIB))
            named = [r.to for r in answers if r.kind == "context"]
            assert all(isinstance(to, int) and to <= slots * TRAINED for to in named)


def test_numbers_of_sentences_are_grouped() -> None:
    for remedy in found(MIXTRAL, CacheSettings(16_000_000, slots=4), card(16)):
        assert not re.search(r"[0-9]{4}", remedy.sentence), remedy.sentence
