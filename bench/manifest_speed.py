"""How long a manifest of many models takes to read, and an edit of one of them to be decided.

Run by `make bench`. Makes its manifest in a temporary folder; starts no process. 01 §2.8 asks for less than
100 ms for reading 500 models.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from framework.manifest.load import load_manifest
from framework.reconcile.compare import compare_requests
from framework.values.manifest import Manifest

MODELS = 500
REPEATS = 15
EDITED = MODELS // 2


def manifest_text(models: int) -> str:
    """A manifest as people write them: shared defaults, two policies, a few settings a model."""
    policies = '[speculation.repeats]\nmode = "ngram"\n\n[speculation.plain]\nmode = "off"\n\n'
    return policies + "[defaults]\nslots = 2\n" + "".join(model_text(number) for number in range(models))


def model_text(number: int) -> str:
    """One model table of eight settings."""
    policy = "repeats" if number % 2 else "plain"
    return f"""
[models.model-{number}]
source = "model.gguf"
aliases = ["alias-{number}"]
context = 8192
kv_cache = "q8_0"
speculation = "{policy}"
unload_after = "10m"
request = {{ defaults = {{ temperature = 0.7 }} }}
timeout = {{ load = "5m", stall = "1m" }}
"""


def read(path: Path) -> Manifest:
    """The manifest of a file that must be good."""
    loaded = load_manifest(path, {})
    if loaded.manifest is None:
        raise SystemExit("\n".join(problem.sentence for problem in loaded.problems))
    return loaded.manifest


def compare_all(old: Manifest, new: Manifest) -> int:
    """Number of models whose request differs, compared field by field."""
    return sum(bool(compare_requests(old.models[name], new.models[name], None)) for name in new.models)


def timed_ms(work: Callable[[], object]) -> list[float]:
    """Milliseconds of each repeat, after one that does not count."""
    work()
    taken = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def main() -> None:
    """Measure and print one table."""
    text = manifest_text(MODELS)
    with tempfile.TemporaryDirectory(prefix="paddock-bench-") as folder:
        path = Path(folder) / "serve.toml"
        # It exists, as on a machine that serves it: a missing file would be warned about, with its place.
        (path.parent / "model.gguf").touch()
        path.write_text(text, encoding="utf-8")
        old = read(path)
        rows = {f"read a manifest of {MODELS} models": timed_ms(lambda: read(path))}
        path.write_text(text.replace(f'"alias-{EDITED}"', '"renamed"'), encoding="utf-8")
        new = read(path)
        rows[f"compare {MODELS} requests, one changed"] = timed_ms(lambda: compare_all(old, new))
    table = Table("what", "median", "fastest", "slowest", title=f"{REPEATS} repeats, milliseconds")
    for name, taken in rows.items():
        table.add_row(name, *(f"{value:.1f}" for value in (statistics.median(taken), min(taken), max(taken))))
    Console().print(table)


if __name__ == "__main__":
    main()
