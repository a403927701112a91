"""How long the facts of a model file take: read for the first time, from the cache on disk, from memory.

Run by `make bench`. Writes headers as large as they come, with a hole for the weights; starts no process.
Asked for are less than 50 ms for the first reading of 262,144 tokens, and less than 1 ms from the cache.
"""

from __future__ import annotations

import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from framework.models.facts import FactsReader
from framework.models.gguf_header import read_header
from framework.models.header_cache import HeaderCache

REPEATS = 9
TOKENS = 262_144
MERGES = 514_906
LAYERS = 48
WIDTH = 3840
ALIGNMENT = 32
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9
TENSORS_OF_A_LAYER = (
    *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_q_norm", "attn_k_norm", "attn_output"),
    *("post_attention_norm", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down", "post_ffw_norm"),
)


def text(value: str) -> bytes:
    """A length and the bytes."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def texts(key: str, values: Iterable[str], count: int) -> bytes:
    """A pair that holds a list of texts."""
    return text(key) + struct.pack("<IIQ", ARRAY, STRING, count) + b"".join(map(text, values))


def number(key: str, value: int) -> bytes:
    """A pair that holds a number."""
    return text(key) + struct.pack("<II", UINT32, value)


def tokens() -> Iterator[str]:
    """Tokens with the lengths that they have in real vocabularies."""
    return (f"{'▁' if n % 3 else ''}{'token'[: n % 6]}{n % 1000}" for n in range(TOKENS))


def header(*, merges: int) -> bytes:
    """A header with the largest vocabulary that models have; the merges are those of byte-pair encodings."""
    pairs = [
        text("general.architecture") + struct.pack("<I", STRING) + text("gemma3"),
        number("gemma3.block_count", LAYERS),
        number("gemma3.embedding_length", WIDTH),
        number("gemma3.attention.sliding_window", 1024),
        texts("tokenizer.ggml.tokens", tokens(), TOKENS),
        text("tokenizer.ggml.scores") + struct.pack("<IIQ", ARRAY, FLOAT32, TOKENS) + bytes(4 * TOKENS),
        text("tokenizer.ggml.token_type") + struct.pack("<IIQ", ARRAY, UINT32, TOKENS) + bytes(4 * TOKENS),
    ]
    if merges:
        pairs.append(
            texts("tokenizer.ggml.merges", (f"ab{n % 500} c{n % 90}" for n in range(merges)), merges)
        )
    names = [f"blk.{layer}.{part}.weight" for layer in range(LAYERS) for part in TENSORS_OF_A_LAYER]
    size = 4 * WIDTH * WIDTH
    tensors = [
        text(name) + struct.pack("<IQQIQ", 2, WIDTH, WIDTH, 0, index * size)
        for index, name in enumerate(names)
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join([*pairs, *tensors])
    return head + bytes(-len(head) % ALIGNMENT)


def write_model(path: Path, *, merges: int) -> Path:
    """The header, and a hole where the weights would be."""
    with path.open("wb") as file:
        file.write(header(merges=merges))
        file.truncate(file.tell() + LAYERS * len(TENSORS_OF_A_LAYER) * 4 * WIDTH * WIDTH)
    return path


def timed_ms(work: Callable[[], object]) -> list[float]:
    """Milliseconds of each repeat."""
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def measure(path: Path, kept: Path) -> dict[str, list[float]]:
    """Each way to come by the facts of one file."""
    known = FactsReader(HeaderCache(kept))
    known.read(path)
    return {
        "header only": timed_ms(lambda: read_header(path)),
        "all facts, first time": timed_ms(lambda: FactsReader(HeaderCache()).read(path)),
        "all facts, cache on disk": timed_ms(lambda: FactsReader(HeaderCache(kept)).read(path)),
        "all facts, memory": timed_ms(lambda: known.read(path)),
    }


def main() -> None:
    """Measure and print one table."""
    table = Table("file", "what", "median", "fastest", "slowest", title=f"{REPEATS} repeats, milliseconds")
    with tempfile.TemporaryDirectory(prefix="paddock-bench-") as folder:
        for name, merges in (("262k tokens", 0), ("262k tokens, 515k merges", MERGES)):
            path = write_model(Path(folder) / f"m{merges}.gguf", merges=merges)
            rows = measure(path, Path(folder) / "cache")
            for what, taken in rows.items():
                figures = (statistics.median(taken), min(taken), max(taken))
                table.add_row(name, what, *(f"{figure:.2f}" for figure in figures))
    Console().print(table)


if __name__ == "__main__":
    main()
