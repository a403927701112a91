"""How soon the adaptive depth of the native engine is right again after the text has changed its kind.

Run by `make bench`. One answer has three parts: lines that the prompt holds as well, words that nobody can
guess, and the lines again. A grammar makes the model write them, so that every server writes the same tokens
(bench.forced_text). Servers of some fixed depths and the adaptive one take turns; the times at which tokens
arrive tell the speed at every place. Settled after n tokens: the first n from which on the rest of the part
is as fast as SETTLED of the best fixed depth on that same rest. Figures are medians of the rounds.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from bench.forced_text import only, records, scattered_words
from tests.support.engine_pair import ANSWER_TIMEOUT_S, RunningServer, native_line, running_server
from tools.fetch import GROUPS, ROOT, fetch

ROUNDS = 2
# Short, middle and long drafts; with none at all they bracket what may be best.
DEPTHS = (2, 6, 16)
SLOTS = (1, 4)
ARGUMENTS = ("-c", "16384", "-np", "4", "-t", "2", "--cache-ram", "0")
# Of the best fixed depth: the goal of `native_speculation.py`, less what rounds scatter by.
SETTLED = 0.93
STEP = 25
# The rest of a part that is still looked at: fewer tokens are a matter of single steps.
LEAST_REST = 75
PARTS = ("copy", "words", "copy again")


@dataclass(frozen=True)
class Written:
    """What one stream saw. `ends`: token counts at which the parts end; `times_s`: arrival of each token."""

    ends: tuple[int, ...]
    times_s: tuple[float, ...]

    def seconds(self, first: int, last: int) -> float:
        """From the arrival of token `first` to that of token `last`."""
        return self.times_s[last] - self.times_s[first]


def parts_of(lane: int) -> tuple[str, str, str]:
    """The parts of a slot's answer; each slot has a text of its own."""
    lines = records(16, seed=lane + 1)
    return lines, scattered_words(90, seed=lane), lines


def write(server: RunningServer, lane: int, fields: Mapping[str, Any]) -> Written:
    """Have one slot write its parts."""
    parts = parts_of(lane)
    body = {
        "prompt": f"The list:\n{parts[0]}\nOnce more:\n",
        "grammar": only("".join(parts)),
        "n_predict": 2000,
        "temperature": 0,
        "id_slot": lane,
        "return_tokens": True,
        "stream": True,
        **fields,
    }
    limits = list(itertools.accumulate(len(part) for part in parts))
    lengths: list[int] = []
    times_s: list[float] = []
    length = 0
    with httpx.stream("POST", f"{server.url}/completion", json=body, timeout=ANSWER_TIMEOUT_S) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line[6:])
            length += len(event["content"])
            for _ in event["tokens"]:
                lengths.append(length)
                times_s.append(time.monotonic())
    if length != limits[-1]:
        raise RuntimeError(f"the answer has {length} characters, its grammar {limits[-1]}")
    ends = tuple(bisect.bisect_left(lengths, limit) for limit in limits)
    return Written(ends, tuple(times_s))


def all_slots(server: RunningServer, n_slots: int, fields: Mapping[str, Any]) -> list[Written]:
    """All slots at once."""
    with ThreadPoolExecutor(n_slots) as pool:
        return list(pool.map(lambda lane: write(server, lane, fields), range(n_slots)))


def spans(written: Written) -> list[tuple[int, int]]:
    """First and last token of each part."""
    return list(zip((0, *written.ends[:-1]), written.ends, strict=True))


def rest_seconds(rounds: Sequence[Sequence[Written]], part: int, skipped: int) -> float:
    """Seconds of the part without its first `skipped` tokens: mean of the slots, median of the rounds."""

    def of(written: Written) -> float:
        first, last = spans(written)[part]
        return written.seconds(first + skipped, last)

    return statistics.median(statistics.mean(of(one) for one in slots) for slots in rounds)


def settled_after(found: Mapping[str, list[list[Written]]], part: int) -> tuple[int | None, float]:
    """Tokens until the adaptive depth keeps up, None if it never does; its ratio after 200 tokens at most."""
    length = min(last - first for first, last in (spans(one)[part] for one in found["adaptive"][0]))
    ratios = {}
    for skipped in range(0, length - LEAST_REST, STEP):
        best = min(rest_seconds(found[name], part, skipped) for name in found if name != "adaptive")
        ratios[skipped] = best / rest_seconds(found["adaptive"], part, skipped)
    settled = next((skipped for skipped, ratio in ratios.items() if ratio >= SETTLED), None)
    return settled, ratios[max(skipped for skipped in ratios if skipped <= 200)]


@contextlib.contextmanager
def servers(model: Path, folder: Path) -> Iterator[dict[str, tuple[RunningServer, dict[str, Any]]]]:
    """The server of each setting by its name, and what its requests say."""
    with contextlib.ExitStack() as stack:

        def server(depth: int, adaptive: str) -> RunningServer:
            lengths = ("--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", str(depth))
            flags = ("--spec-type", "ngram-simple", *lengths, "--spec-dm-adaptive", adaptive)
            log = folder / f"{depth}-{adaptive}"
            return stack.enter_context(running_server(native_line(), model, log, *ARGUMENTS, *flags))

        adaptive = server(max(DEPTHS), "on")
        found: dict[str, tuple[RunningServer, dict[str, Any]]] = {
            "0": (adaptive, {"speculative": {"type": "none"}})
        }
        found |= {str(depth): (server(depth, "off"), {}) for depth in DEPTHS}
        yield {**found, "adaptive": (adaptive, {})}


def main() -> None:
    """Print the table."""
    console = Console(width=120)
    fetch(GROUPS["model"])
    model = ROOT / GROUPS["model"][0].target
    table = Table(title="tokens until settled after a change of text", title_justify="left")
    for column in (
        "slots",
        "part",
        "tokens",
        "0",
        *map(str, DEPTHS),
        "adaptive",
        "settled after",
        "then, of best",
    ):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder, servers(model, Path(folder)) as settings:
        for n_slots in SLOTS:
            found: dict[str, list[list[Written]]] = {name: [] for name in settings}
            for at in range(ROUNDS + 1):
                for name, (server, fields) in settings.items():
                    slots = all_slots(server, n_slots, fields)
                    # The first round reads the prompts and warms up what remembers.
                    if at > 0:
                        found[name].append(slots)
            for part, title in enumerate(PARTS):
                first, last = spans(found["adaptive"][0][0])[part]
                speeds = [f"{(last - first) / rest_seconds(found[name], part, 0):.0f}" for name in settings]
                after, ratio = settled_after(found, part)
                told = "never" if after is None else f"{after}"
                row = (str(n_slots), title, str(last - first), *speeds, told, f"{ratio:.2f}")
                console.print(*row, style="dim")
                table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
