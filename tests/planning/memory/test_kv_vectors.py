"""The cache by header facts alone: cells (03 §3), bytes per element (§3.1), layers and rows (§5)."""

import pytest

from framework.planning.memory.kv_cache import kv_bytes
from framework.planning.memory.kv_cells import cell_layout
from framework.planning.memory.settings import CacheSettings, bytes_per_element, padded
from framework.planning.memory.shape import ModelShape

MIB = 1 << 20
LATENT = {"n_layers": 61, "kv_lora_rank": 512}
HYBRID = {"n_layers": 64, "ssm_inner_size": 6144, "ssm_state_size": 128, "full_attention_interval": 4}
HYBRID_HEADS = {"n_kv_heads": 4, "key_length": 256, "value_length": 256}
WINDOWED = {
    "architecture": "gemma3",
    "n_layers": 12,
    "n_kv_heads": 8,
    "key_length": 256,
    "value_length": 256,
    "sliding_window": 1024,
    "swa_mask": (True, True, True, True, True, False) * 2,
}
PLAIN = {"n_layers": 32, "n_kv_heads": 8, "key_length": 128, "value_length": 128}


def settings(n_ctx: int, cache_type: str = "f16", **changes: object) -> CacheSettings:
    return CacheSettings(n_ctx, key_type=cache_type, value_type=cache_type, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n_ctx", "slots", "unified", "expected"),
    [
        (4096, 1, False, (1, 1, 4096)),
        (4096, 4, False, (4, 4, 1024)),
        (4096, 4, True, (4, 1, 4096)),
        (5000, 3, False, (3, 3, 1792)),
        (0, 4, True, (4, 1, 0)),
        (1, 0, False, (1, 1, 256)),
        (4097, 1, True, (1, 1, 4352)),
        (8192, 1, True, (1, 1, 8192)),
        (8192, 4, True, (4, 1, 8192)),
        (8192, 4, False, (4, 4, 2048)),
        (10_000, 3, True, (3, 1, 10_240)),
        (10_000, 3, False, (3, 3, 3584)),
    ],
)
def test_cells_come_in_blocks_of_256_per_stream(
    n_ctx: int, slots: int, unified: bool, expected: tuple[int, int, int]
) -> None:
    layout = cell_layout(n_ctx, slots, unified=unified)
    assert (layout.slots, layout.streams, layout.cells_per_stream) == expected


def test_cells_of_all_streams_count() -> None:
    assert cell_layout(10_000, 3, unified=False).cells == 10_752


@pytest.mark.parametrize(("tokens", "cells"), [(0, 0), (1, 256), (256, 256), (257, 512)])
def test_padding(tokens: int, cells: int) -> None:
    assert padded(tokens) == cells


@pytest.mark.parametrize(
    ("cache_type", "expected"),
    [
        ("f32", 4.0),
        ("f16", 2.0),
        ("bf16", 2.0),
        ("q8_0", 1.0625),
        (" Q8_0 ", 1.0625),
        ("q5_1", 0.75),
        ("q5_0", 0.6875),
        ("q4_1", 0.625),
        ("q4_0", 0.5625),
        ("iq4_nl", 0.5625),
        ("q9", 2.0),
        (None, 2.0),
    ],
)
def test_bytes_per_element(cache_type: str | None, expected: float) -> None:
    assert bytes_per_element(cache_type) == expected


@pytest.mark.parametrize(
    ("facts", "cache_type", "expected"),
    [
        pytest.param({"key_length": 576, "n_kv_heads": 1}, "f16", 287_834_112, id="key of 576"),
        pytest.param({"key_length": 576, "n_kv_heads": 1}, "q8_0", 152_911_872, id="quantised"),
        pytest.param({}, "f16", 287_834_112, id="rank and the usual rope width"),
        pytest.param({"key_length_mla": 192, "rope_dimension_count": 64}, "f16", 287_834_112, id="rope 64"),
        pytest.param({"key_length_mla": 192}, "f16", 287_834_112, id="rope unset"),
        pytest.param({"key_length_mla": 192, "rope_dimension_count": 32}, "f16", 271_843_328, id="rope 32"),
        pytest.param(
            {"n_kv_heads": 128, "key_length": 192, "value_length": 128},
            "f16",
            20_468_203_520,
            id="converted before latent attention was known",
        ),
    ],
)
def test_latent_attention_stores_one_row(facts: dict[str, int], cache_type: str, expected: int) -> None:
    assert kv_bytes(ModelShape(**LATENT, **facts), settings(4096, cache_type)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "changes", "expected"),
    [
        pytest.param({}, {}, 2_147_483_648, id="f16"),
        pytest.param({}, {"cache_type": "q8_0"}, 1_140_850_688, id="q8_0"),
        pytest.param(
            {}, {"cache_type": "q8_0", "flash_attention": False}, 1_644_167_168, id="no flash attention"
        ),
        pytest.param({"shared_kv_layers": 32}, {}, 1_073_741_824, id="half of the layers share"),
        pytest.param(
            {"n_layers": 8, "n_kv_heads_by_layer": (0, 0, 0, 4, 0, 0, 0, 2)}, {}, 201_326_592, id="listed"
        ),
        pytest.param({"n_layers": 65}, {}, 2_147_483_648, id="65 layers hold 16 whole intervals"),
        pytest.param(
            {"n_layers": 65, "nextn_layers": 1, "architecture": "qwen35"},
            {},
            2_147_483_648,
            id="the prediction layer's cache is in the draft context",
        ),
    ],
)
def test_hybrids_store_attention_layers_only(
    facts: dict[str, object], changes: dict[str, object], expected: int
) -> None:
    shape = ModelShape(**{**HYBRID, **HYBRID_HEADS, **facts})  # type: ignore[arg-type]
    assert kv_bytes(shape, settings(32_768, **changes)) == expected  # type: ignore[arg-type]


def test_hybrids_without_lengths_use_the_head_width() -> None:
    shape = ModelShape(**HYBRID, n_kv_heads=4, embedding_length=5120, n_heads=24)  # type: ignore[arg-type]
    assert kv_bytes(shape, settings(32_768)) == 1_786_773_504


@pytest.mark.parametrize(
    ("facts", "changes", "expected"),
    [
        pytest.param({}, {}, 662_700_032, id="base"),
        pytest.param({}, {"swa_full": True}, 3_221_225_472, id="full-size"),
        pytest.param({}, {"slots": 4}, 914_358_272, id="4 slots unified"),
        pytest.param({}, {"slots": 4, "unified": False}, 1_040_187_392, id="4 slots apart"),
        pytest.param({}, {"ubatch": 2048}, 788_529_152, id="micro-batch 2048"),
        pytest.param({}, {"cache_type": "q8_0"}, 352_059_392, id="q8_0"),
        pytest.param({}, {"cache_type": "q8_0", "flash_attention": False}, 507_379_712, id="q8_0, no flash"),
        pytest.param({}, {"n_ctx": 1000}, 100_663_296, id="context 1000"),
        pytest.param({"shared_kv_layers": 6}, {}, 331_350_016, id="6 shared layers"),
        pytest.param(
            {"key_length": 512, "value_length": 512, "key_length_swa": 256, "value_length_swa": 256},
            {},
            1_199_570_944,
            id="other lengths in the window",
        ),
        pytest.param(
            {"key_length": 512, "value_length": 512, "key_length_swa": 256, "value_length_swa": 256},
            {"flash_attention": False},
            1_262_485_504,
            id="without flash attention every layer pays the widest row",
        ),
    ],
)
def test_windowed_layers(facts: dict[str, object], changes: dict[str, object], expected: int) -> None:
    shape = ModelShape(**{**WINDOWED, **facts})  # type: ignore[arg-type]
    asked = {"n_ctx": 32_768, **changes}
    assert kv_bytes(shape, settings(**asked)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "changes", "expected"),
    [
        pytest.param({}, {}, 1_073_741_824, id="f16"),
        pytest.param({}, {"cache_type": "q8_0"}, 570_425_344, id="q8_0"),
        pytest.param({}, {"cache_type": "q8_0", "flash_attention": False}, 822_083_584, id="q8_0, no flash"),
        pytest.param({}, {"n_ctx": 10_000, "slots": 3}, 1_342_177_280, id="3 slots unified"),
        pytest.param({}, {"n_ctx": 10_000, "slots": 3, "unified": False}, 1_409_286_144, id="3 slots apart"),
        pytest.param({}, {"n_ctx": 100}, 33_554_432, id="context 100"),
        pytest.param({"shared_kv_layers": 40}, {}, 33_554_432, id="one layer is left at least"),
        pytest.param(
            {"n_layers": 4, "n_kv_heads_by_layer": (8, 4, 0, 8)}, {}, 83_886_080, id="an empty layer"
        ),
        pytest.param(
            {"n_layers": 4, "n_kv_heads_by_layer": (8, 4, 0, 8)},
            {"flash_attention": False},
            109_051_904,
            id="an empty layer pays for values without flash attention",
        ),
    ],
)
def test_plain_attention(facts: dict[str, object], changes: dict[str, object], expected: int) -> None:
    shape = ModelShape(**{**PLAIN, **facts})  # type: ignore[arg-type]
    asked = {"n_ctx": 8192, **changes}
    assert kv_bytes(shape, settings(**asked)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (ModelShape(n_layers=32, n_heads=32, embedding_length=4096), 1_073_741_824),
        (ModelShape(n_layers=32, n_kv_heads=8, embedding_length=4096), 268_435_456),
        (ModelShape(n_heads=32, embedding_length=4096), 0),
        (ModelShape(n_layers=32, embedding_length=4096), 0),
    ],
    ids=["width by division", "usual width", "no layers", "no heads"],
)
def test_head_width_alone(shape: ModelShape, expected: int) -> None:
    assert kv_bytes(shape, settings(2048)) == expected


def test_head_width_is_the_embedding_over_the_heads() -> None:
    assert ModelShape(n_heads=24, embedding_length=5120).key_width == 213


def test_the_widest_row_counts_windowed_layers_at_their_own_width() -> None:
    shape = ModelShape(
        n_layers=4,
        n_kv_heads_by_layer=(2, 8, 2, 8),
        swa_mask=(True, False, True, False),
        sliding_window=1,
        value_length=512,
        value_length_swa=256,
    )
    assert shape.widest_value_row == 4096


GPT_OSS = ModelShape(
    "gpt-oss",
    n_layers=24,
    n_kv_heads=8,
    key_length=64,
    value_length=64,
    sliding_window=128,
    swa_mask=(True, False) * 12,
)
GEMMA_4_12B = ModelShape(
    "gemma4",
    n_layers=48,
    n_kv_heads_by_layer=(8, 8, 8, 8, 8, 1) * 8,
    key_length=512,
    value_length=512,
    key_length_swa=256,
    value_length_swa=256,
    sliding_window=1024,
    swa_mask=(True, True, True, True, True, False) * 8,
)
QWEN35_35B = ModelShape(
    "qwen35moe",
    n_layers=40,
    n_heads=16,
    n_kv_heads=2,
    key_length=256,
    value_length=256,
    full_attention_interval=4,
    ssm_conv_kernel=4,
    ssm_state_size=128,
    ssm_group_count=16,
    ssm_inner_size=4096,
)
QWEN3_MOE = ModelShape(
    "qwen3moe",
    n_layers=48,
    embedding_length=2048,
    n_heads=32,
    n_kv_heads=4,
    key_length=128,
    value_length=128,
)


@pytest.mark.parametrize(
    ("shape", "asked", "expected_mib"),
    [
        pytest.param(GPT_OSS, settings(131_072, slots=4), 3072 + 24, id="FM-03"),
        pytest.param(QWEN3_MOE, settings(32_768), 3072, id="FM-04"),
        pytest.param(QWEN35_35B, settings(65_536, slots=4), 1280, id="FM-01"),
        pytest.param(GEMMA_4_12B, settings(8192, "q8_0", slots=4), 68 + 765, id="FM-06 4 slots"),
        pytest.param(GEMMA_4_12B, settings(8192, "q8_0"), 68 + 255, id="FM-06 1 slot"),
        pytest.param(GEMMA_4_12B, settings(4096, "q8_0"), 34 + 255, id="FM-06 half the context"),
        pytest.param(GEMMA_4_12B, settings(16_384, "q8_0"), 136 + 255, id="FM-06 twice the context"),
        pytest.param(GEMMA_4_12B, settings(8192), 128 + 480, id="FM-06 f16"),
        pytest.param(GEMMA_4_12B, settings(8192, "q4_0"), 36 + 135, id="FM-06 q4_0"),
    ],
)
def test_what_real_servers_logged(shape: ModelShape, asked: CacheSettings, expected_mib: float) -> None:
    assert kv_bytes(shape, asked) == expected_mib * MIB


def test_a_window_without_a_known_pattern_is_planned_in_full() -> None:
    unknown = ModelShape("new-model", **PLAIN, sliding_window=128)  # type: ignore[arg-type]
    assert kv_bytes(unknown, settings(8192)) == 1_073_741_824
