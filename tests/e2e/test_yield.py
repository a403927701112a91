"""What drafting brings, seen from outside: timed on purpose, then shown by the running server (05 §11.7)."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import chat, engine_table, model_table

# Tokens of 10 ms without drafting, of 4 ms with it.
GAINS = {"tokens": 32, "token_ms": 10.0, "drafting_token_ms": 4.0, "drafted": 20, "accepted": 19}
POLICY = '[speculation.repeats]\nmode = "ngram"\n'
BENCH = ("bench", "m", "--requests", "1", "--tokens", "32")


def test_a_bench_gives_the_baseline_that_the_server_compares_with(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    model = model_table("m", tiny_gguf, speculation="repeats")
    paddock = paddock_up(POLICY + engine_table(fake_engine(**GAINS)) + model)
    refused = paddock.command(*BENCH)
    assert refused.returncode == 1
    assert "already runs this manifest" in refused.stderr

    paddock.stop()
    assert paddock.command(*BENCH).returncode == 0
    paddock.restart()
    paddock.wait_state("m", "ready")
    assert chat(paddock, "m", max_tokens=32).status_code == 200

    told = paddock.model("m")["instances"][0]["speculation"]
    assert (told["running"], told["speedup"], told["baseline_tokens_per_s"]) == ("ngram-mod", 2.5, 100.0)
    headers = {"Authorization": f"Bearer {paddock.token}"}
    metrics = httpx.get(f"{paddock.base_url}/metrics", headers=headers, trust_env=False).text
    where = 'model="m",running="ngram-mod",busy_slots="1"'
    assert f"paddock_speculation_speedup_ratio{{{where}}} 2.5\n" in metrics
    assert 'paddock_speculation_drafted_tokens_total{model="m",replica="0"} 20\n' in metrics
