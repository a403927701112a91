"""Header keys that only some architectures have."""

import pytest

from framework.models.gguf_fields import ARCHITECTURE, GgufHeader, Pairs, header_of


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
