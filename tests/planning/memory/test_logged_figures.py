"""Figures that servers of other people logged: caches of many builds, and the floor of compute buffers."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from framework.planning.memory.fit import plan_memory
from framework.planning.memory.kv_cache import kv_bytes
from framework.planning.memory.settings import CacheSettings, Hardware, Offload
from framework.planning.memory.shape import ModelShape
from tests.support.memory_rows import measured_models

MIB = 1 << 20
# Logs round to two decimals.
ROUNDING_MIB = 0.015
CACHES = Path(__file__).parents[2] / "data" / "memory" / "logged_caches.csv"


def logged_caches() -> list[dict[str, str]]:
    with CACHES.open(newline="", encoding="utf-8") as rows:
        return list(csv.DictReader(rows))


@pytest.mark.parametrize("row", logged_caches(), ids=lambda row: f"{row['id']} {row['model']}")
def test_a_cache_takes_what_was_logged(row: dict[str, str]) -> None:
    streams = int(row["streams"])
    values = int(row["value_row"])
    shape = ModelShape(
        architecture="any",
        n_layers=int(row["layers"]),
        n_kv_heads=1,
        key_length=int(row["key_row"]),
        value_length=values,
        kv_lora_rank=None if values else int(row["key_row"]),
    )
    asked = CacheSettings(
        int(row["cells"]) * streams,
        slots=streams,
        unified=streams == 1,
        key_type=row["key_type"],
        value_type=row["value_type"],
    )
    assert kv_bytes(shape, asked) / MIB == pytest.approx(float(row["logged_mib"]), abs=ROUNDING_MIB)


@pytest.mark.parametrize(
    ("model", "context", "heads", "least_mib"),
    [
        pytest.param("llama-3.1-8b", 4096, 32, 256, id="X09"),
        pytest.param("qwen3-30b-a3b", 16384, 32, 1024, id="X11"),
        pytest.param("gemma-3-27b", 131072, 32, 8192, id="X12"),
        pytest.param("llama-3.3-70b-12-layers", 4096, 64, 512, id="X13"),
        pytest.param("gpt-oss-20b", 4096, 64, 512, id="X15"),
    ],
)
def test_without_flash_attention_all_scores_of_a_micro_batch_are_in_memory(
    model: str, context: int, heads: int, least_mib: int
) -> None:
    measured = measured_models()[model]
    asked = CacheSettings(context, flash_attention=False)
    plan = plan_memory(measured.shape, measured.table, asked, Hardware(), Offload(0))
    assert measured.shape.n_heads == heads
    assert sum(line.bytes for line in plan.lines if line.label == "compute") >= least_mib * MIB


def test_the_micro_batch_is_part_of_the_plan() -> None:
    """FM-12: an encoder of 12 heads whose micro-batch is its whole context, without flash attention."""
    measured = measured_models()["nomic-embed-like"]
    asked = CacheSettings(8192, batch=8192, ubatch=8192, flash_attention=False, embeddings=True)
    compute = {}
    for tokens in (4096, 8192):
        plan = plan_memory(
            measured.shape, measured.table, replace(asked, ubatch=tokens), Hardware(), Offload(0)
        )
        compute[tokens] = sum(line.bytes for line in plan.lines if line.label == "compute")
    assert (measured.shape.n_heads, measured.shape.layers) == (12, 12)
    assert compute[8192] >= 3072 * MIB
    # An encoder has no cache: every token of the micro-batch looks at all others.
    assert compute[8192] / compute[4096] == pytest.approx(4, rel=0.1)
