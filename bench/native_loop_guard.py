"""The loop guard of the native engine: how soon it ends what repeats itself, and if it leaves the rest alone.

Run by `make bench`. Loops are the model's own: SmolLM2 at temperature 0, told to go on. Each prompt is
answered without the guard first, which shows from which token on the answer repeats itself, then with it.
Texts that do not loop are those of this repository and lists as programs write them; a grammar makes the
model write each (bench.forced_text), and the guard must let it come to its end. Both use its defaults.
"""

from __future__ import annotations

import csv
import io
import itertools
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from bench.forced_text import only, records, scattered_words
from tests.support.engine_pair import RunningServer, native_line, running_server
from tools.fetch import GROUPS, ROOT, fetch

N_SLOTS = 4
ANSWER_TIMEOUT_S = 600.0
ARGUMENTS = ("-c", "16384", "-np", str(N_SLOTS), "-t", "2", "--cache-ram", "0")
# Of a looping answer.
N_TOKENS = 1000
# Characters of a text: forced, some 1.3 make a token, so that it is longer than what the guard looks at.
N_CHARACTERS = 1500
# As docs/native.md: the longest stretch that counts as one repetition, tokens that must be repetition,
# tokens before it looks, tokens it looks at, and tokens between two looks.
MAX_PERIOD, COVERAGE, MIN_TOKENS, WINDOW, INTERVAL = 96, 192, 512, 384, 32
GUARD: Mapping[str, Any] = {"reasoning_loop_guard": {"mode": "stop"}}
PROMPTS = (
    "The old mill stood by the river, and nobody in the village remembered who had built it. One",
    "Once upon a time there was",
    "Q: What is the capital of France?\nA:",
    "def fibonacci(n):\n",
    "Shopping list:\n- milk\n- bread\n-",
    "1, 2, 3, 4,",
    "Dear Sir or Madam,\n",
    "The theory of relativity says that",
)
OWN_TEXTS = (
    "README.md",
    "CHANGELOG.md",
    "docs/*.md",
    "framework/*/*.py",
    "native/src/core/*.cpp",
    "static/*.*s",
)
EACH_OWN = 2
VERSE = """The {} came {} at {},
and no one asked it why.
O turn the lamp, O turn the lamp,
the night is passing by.
"""
REFRAIN = "\n".join(
    VERSE.format(*words)
    for words in itertools.product(
        ("miller", "fox", "rain", "ferry", "tailor"), ("uphill", "slowly"), ("one", "dawn", "noon", "eight")
    )
)


def table_of_numbers() -> str:
    """Comma separated, as an export."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("day", "hour", "requests", "errors"))
    for at in range(240):
        writer.writerow((f"2024-03-{at // 24 + 1:02}", at % 24, at * 37 % 211, at % 5))
    return text.getvalue()


def corpus() -> dict[str, str]:
    """Texts that do not loop by their names, each long enough for the guard to look at it."""
    found = {
        "records": records(120, seed=3),
        "words": scattered_words(400, seed=5),
        "refrain": REFRAIN,
        "numbers": table_of_numbers(),
        "squares": "".join(f"{at} times {at} is {at * at}.\n" for at in range(1, 200)),
    }
    for pattern in OWN_TEXTS:
        fitting = [path for path in sorted(ROOT.glob(pattern)) if path.stat().st_size >= N_CHARACTERS]
        for path in fitting[:: max(1, len(fitting) // EACH_OWN)][:EACH_OWN]:
            found[str(path.relative_to(ROOT))] = path.read_text()
    return {name: text[:N_CHARACTERS] for name, text in found.items()}


def loop_start(tokens: Sequence[int]) -> int | None:
    """The first token from which on the rest repeats itself, None if that is less than the guard asks for."""
    starts = []
    for period in range(1, MAX_PERIOD + 1):
        at = len(tokens) - period
        while at > 0 and tokens[at - 1] == tokens[at - 1 + period]:
            at -= 1
        if len(tokens) - at - period >= COVERAGE:
            starts.append(at)
    return min(starts, default=None)


def answered(server: RunningServer, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of `/completion` at temperature 0."""
    whole = {"temperature": 0, "return_tokens": True, **body}
    answer = httpx.post(f"{server.url}/completion", json=whole, timeout=ANSWER_TIMEOUT_S)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def print_loops(console: Console, server: RunningServer, pool: ThreadPoolExecutor) -> None:
    """The table of the model's own loops."""
    bodies = [{"prompt": prompt, "n_predict": N_TOKENS, "ignore_eos": True} for prompt in PROMPTS]
    free = list(pool.map(lambda body: answered(server, body), bodies))
    guarded = list(pool.map(lambda body: answered(server, {**body, **GUARD}), bodies))
    table = Table(title="loops, in tokens", title_justify="left")
    for column in ("prompt", "repeats from", "ended at", "allowed until", "within"):
        table.add_column(column, justify="left" if column == "prompt" else "right")
    for prompt, without, with_it in zip(PROMPTS, free, guarded, strict=True):
        start, ended = loop_start(without["tokens"]), len(with_it["tokens"])
        allowed = N_TOKENS if start is None else max(MIN_TOKENS, start + WINDOW) + INTERVAL
        is_right = ended == N_TOKENS if start is None else ended <= allowed
        from_token = "never" if start is None else f"{start}"
        table.add_row(repr(prompt[:40]), from_token, f"{ended}", f"{allowed}", "yes" if is_right else "NO")
    console.print(table)


def print_corpus(console: Console, server: RunningServer, pool: ThreadPoolExecutor) -> None:
    """What became of the texts that do not loop."""
    texts = corpus()

    def write(text: str) -> dict[str, Any]:
        body = {"prompt": "Text:\n", "n_predict": 4 * N_CHARACTERS, "grammar": only(text)}
        return answered(server, {**body, **GUARD})

    n_tokens, cut = 0, []
    for (name, text), one in zip(texts.items(), pool.map(write, texts.values()), strict=True):
        n_tokens += len(one["tokens"])
        is_whole = one["content"] == text
        console.print(f"{name}: {len(one['tokens'])} tokens, {'whole' if is_whole else 'CUT'}", style="dim")
        cut += [] if is_whole else [name]
    told = f": {', '.join(cut)}" if cut else ""
    console.print(f"{len(texts)} texts that do not loop, {n_tokens} tokens: {len(cut)} cut short{told}")


def main() -> None:
    """Print a table of loops, and what became of the corpus."""
    console = Console(width=120)
    fetch(GROUPS["model"])
    model = ROOT / GROUPS["model"][0].target
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(native_line(), model, Path(folder) / "log", *ARGUMENTS) as server,
        ThreadPoolExecutor(N_SLOTS) as pool,
    ):
        print_loops(console, server, pool)
        print_corpus(console, server, pool)


if __name__ == "__main__":
    main()
