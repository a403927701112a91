"""Header keys that only some architectures have."""

import pytest

from framework.models.gguf_fields import (
    ARCHITECTURE,
    ORIGIN_KEYS,
    TEMPLATE,
    TEXT_FIELDS,
    TEXT_LIMIT,
    GgufHeader,
    Pairs,
    header_of,
)


def header(architecture: str, **numbers: int) -> GgufHeader:
    pairs = Pairs(texts={ARCHITECTURE: architecture})
    pairs.numbers |= {f"{architecture}.{key.replace('__', '.')}": value for key, value in numbers.items()}
    return header_of(pairs)


@pytest.mark.parametrize(
    ("architecture", "full"),
    [pytest.param("gemma3", [3], id="last of a period"), pytest.param("cohere2moe", [0, 4], id="first")],
)
def test_the_layer_of_a_period_that_sees_everything(architecture: str, full: list[int]) -> None:
    facts = header(architecture, block_count=6, attention__sliding_window_pattern=4)
    assert [layer for layer, windowed in enumerate(facts.swa_mask or ()) if not windowed] == full


def test_layers_that_take_in_features_of_a_picture() -> None:
    assert header("qwen3vl", n_deepstack_layers=3).deepstack_layers == 3


def test_whether_attention_and_feed_forward_part_read_the_same() -> None:
    pairs = Pairs(texts={ARCHITECTURE: "gptneox"}, flags={"gptneox.use_parallel_residual": True})
    assert header_of(pairs).has_parallel_residual is True


LONG = "x" * 3_000_000


@pytest.mark.parametrize("field", TEXT_FIELDS)
def test_a_text_for_people_has_a_limit(field: str) -> None:
    found = getattr(header_of(Pairs(texts={TEXT_FIELDS[field]: LONG})), field)
    assert (found[:-1], found[-1]) == ("x" * TEXT_LIMIT, "\u2026")


@pytest.mark.parametrize("field", TEXT_FIELDS)
def test_a_text_within_the_limit_is_kept(field: str) -> None:
    assert getattr(header_of(Pairs(texts={TEXT_FIELDS[field]: "x" * TEXT_LIMIT})), field) == "x" * TEXT_LIMIT


def test_an_endless_architecture_is_cut_off_and_still_names_its_keys() -> None:
    found = header_of(Pairs(texts={ARCHITECTURE: LONG}, numbers={f"{LONG}.block_count": 4}))
    assert (len(found.architecture or ""), found.n_layers) == (TEXT_LIMIT + 1, 4)


@pytest.mark.parametrize("field", ORIGIN_KEYS)
def test_an_endless_origin_is_none(field: str) -> None:
    assert getattr(header_of(Pairs(texts={ORIGIN_KEYS[field]: LONG})).origin, field) is None


def test_a_template_is_kept_whole() -> None:
    assert header_of(Pairs(texts={TEMPLATE: LONG})).chat_template == LONG
