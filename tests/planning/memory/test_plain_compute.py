"""The plain formulas of 03 §7.1 and §8, which stay for models whose operations we cannot build."""

import pytest

from framework.planning.memory.plain_compute import (
    FALLBACK_BYTES,
    flat_bytes,
    growth_bytes,
    plain_compute_bytes,
)
from framework.planning.memory.settings import CacheSettings
from framework.planning.memory.shape import ModelShape


@pytest.mark.parametrize(
    ("vocabulary", "slots", "ubatch", "expected"),
    [
        (128_256, 4, None, 944_793_190),
        (151_936, 1, None, 38_587_596),
        (151_936, 2, None, 396_427_263),
        (151_936, 4, None, 1_112_106_598),
        (248_320, 1, 512, 38_587_596),
        (248_320, 2, 512, 623_430_860),
        (248_320, 4, 512, 1_793_117_388),
        (248_320, 8, 512, 4_132_490_444),
        (151_936, 1, 2048, 154_350_387),
        (151_936, 1, 0, 75_366),
    ],
)
def test_flat_part(vocabulary: int, slots: int, ubatch: int | None, expected: int) -> None:
    assert flat_bytes(ModelShape(vocab_size=vocabulary, embedding_length=4096), slots, ubatch) == expected


@pytest.mark.parametrize(
    ("shape", "n_ctx", "ubatch", "cache_type", "expected"),
    [
        (ModelShape(embedding_length=2560), 262_144, 512, "q8_0", 1_509_949_440),
        (ModelShape(embedding_length=2560), 262_144, 512, "f16", 402_653_184),
        (ModelShape(embedding_length=2560), 262_144, 2048, "f16", 1_610_612_736),
        (ModelShape(embedding_length=7168, key_length_mla=192), 131_072, 512, "q8_0", 1_174_405_120),
        (ModelShape(embedding_length=7168, key_length_mla=192), 131_072, 512, "f16", 201_326_592),
        (ModelShape("deepseek4", embedding_length=1), 16_384, 512, "f16", 3_327_131_648),
        (ModelShape("deepseek4", embedding_length=1), 16_384, 1024, "q8_0", 4_506_779_648),
        (ModelShape("deepseek4", embedding_length=1), 1_048_576, 512, None, 77_644_955_648),
        (ModelShape("inkling", embedding_length=1), 65_536, 512, "f16", 536_870_912),
        (ModelShape("inkling", embedding_length=1), 65_536, 512, "q8_0", 26_376_273_920),
        (ModelShape("inkling", embedding_length=1), 65_536, 256, "f16", 268_435_456),
        (ModelShape(), 65_536, 512, "f16", 0),
        (ModelShape(embedding_length=2560), 0, 512, "f16", 0),
    ],
)
def test_growing_part(
    shape: ModelShape, n_ctx: int, ubatch: int, cache_type: str | None, expected: int
) -> None:
    assert growth_bytes(shape, n_ctx, ubatch, cache_type) == expected


def test_nothing_known_is_much() -> None:
    assert plain_compute_bytes(ModelShape(), CacheSettings(4096)) == FALLBACK_BYTES
