"""Adaptive depth of the native engine against fixed depths, on texts of several kinds, at 1, 4 and 8 slots.

Run by `make bench`. All servers of a drafter are up and take turns, so that whatever else the machine does
meets all; a figure is the median of its rounds. Depth 0 is the same server told not to draft. Tokens count
until the first of the streams has its answer: from then on fewer slots are busy. At temperature 0 each
answer is compared with the first undrafted one. Where one differs, bench.near_ties says how near the two
tokens were, and at which batch widths the model itself takes the other one without any draft; undrafted
answers that differ are counted apart. A fixed depth that is far behind in the first round is not measured
again; its one figure stands in brackets.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.near_ties import NearTie, near_tie, print_ties
from bench.truncated_model import truncate
from tests.support.engine_pair import RunningServer, native_line, running_server
from tools.fetch import GROUPS, ROOT, fetch

ROUNDS = 3
# No round makes up for so much behind the best.
HOPELESS = 0.6
DEPTHS = (1, 2, 4, 8, 16)
COMPARED = ("0", "adaptive")
# Of an answer that is asked for to have the prompt read.
READ_TOKENS = 4
# Tokens of an answer by number of slots: fewer where more are busy, so that each row takes about as long.
TOKENS: Mapping[int, int] = {1: 128, 4: 64, 8: 48}
# Of the 30 of SmolLM2: with fewer hardly a guess is right.
DRAFTER_LAYERS = 24
ARGUMENTS = ("-c", "16384", "-np", "8", "-t", "2", "--cache-ram", "0")

RECORDS = "".join(f'{{"id": {at}, "name": "bolt M{at % 7}", "stock": {at * 3 % 11}}}\n' for at in range(10))
CODE = "".join(
    f"def area_{name}(width: float, height: float) -> float:\n    return width * height * {at}\n\n"
    for at, name in enumerate(("door", "wall", "roof", "floor", "gate", "shed"))
)
WORKLOADS: Mapping[str, str] = {
    "copy and edit": f"Repeat the lines.\n{RECORDS}\nThe lines again:\n{RECORDS[:200]}",
    "code": f"{CODE}def area_window(",
    "prose": "The old mill stood by the river, and nobody in the village remembered who had built it. One",
    "extract JSON": f"{RECORDS}\nNames and stock as JSON:\n[{{",
    "hostile": " ".join(f"{at * 7919 % 997:x}{'xyzq'[at % 4]}" for at in range(60)),
}


@dataclass(frozen=True)
class Setting:
    """A way to serve: the server that does it, and what its requests say."""

    name: str
    server: RunningServer
    fields: Mapping[str, Any]


def lane_prompt(lane: int, prompt: str) -> str:
    """The prompt of a slot: each has a text of its own."""
    return f"{lane}\n{prompt}"


def answers(
    setting: Setting, prompt: str, n_streams: int, n_tokens: int | None = None
) -> tuple[float, list[list[int]]]:
    """Tokens per second of all streams together while all are answered, and the tokens of each."""
    base = {"temperature": 0, "ignore_eos": True, "return_tokens": True, "seed": 1}
    n_predict = TOKENS[n_streams] if n_tokens is None else n_tokens

    def one(lane: int) -> list[int]:
        body = {**base, "n_predict": n_predict, "prompt": lane_prompt(lane, prompt), "id_slot": lane}
        body |= setting.fields
        answer = setting.server.post("/completion", body)
        answer.raise_for_status()
        tokens: list[int] = answer.json()["tokens"]
        return tokens

    with ThreadPoolExecutor(n_streams) as pool:
        begun = time.monotonic()
        lanes = [pool.submit(one, lane) for lane in range(n_streams)]
        wait(lanes, return_when=FIRST_COMPLETED)
        # The answer waits for the end of a cycle, whose tokens count.
        slots = setting.server.get("/slots").json()
        elapsed_s = time.monotonic() - begun
        n_made = sum(n_predict if lane.done() else decoded(slots[at]) for at, lane in enumerate(lanes))
        found = [lane.result() for lane in lanes]
    return n_made / elapsed_s, found


def decoded(slot: Mapping[str, Any]) -> int:
    """Tokens that a slot has made for its request."""
    count: int = slot["next_token"][0]["n_decoded"]
    return count


@contextlib.contextmanager
def model_settings(model: Path, folder: Path) -> Iterator[list[Setting]]:
    """A drafter of the model's first layers: one server, whose requests name the depth."""
    drafter = folder / "drafter.gguf"
    truncate(model, drafter, DRAFTER_LAYERS)
    flags = ("--spec-type", "draft-simple", "--spec-draft-model", str(drafter), "--spec-draft-n-max", "16")
    with running_server(native_line(), model, folder / "draft-simple", *ARGUMENTS, *flags) as server:
        fixed = [
            Setting(str(depth), server, {"speculative": {"n_max": depth, "adaptive": False}})
            for depth in DEPTHS
        ]
        none = Setting("0", server, {"speculative": {"type": "none"}})
        yield [none, *fixed, Setting("adaptive", server, {})]


@contextlib.contextmanager
def text_settings(model: Path, folder: Path) -> Iterator[list[Setting]]:
    """Look-up in the text itself: its depth is a flag, so that each takes a server."""
    with contextlib.ExitStack() as stack:

        def server(depth: int, adaptive: str) -> RunningServer:
            lengths = ("--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", str(depth))
            flags = ("--spec-type", "ngram-simple", *lengths, "--spec-dm-adaptive", adaptive)
            log = folder / f"text-{depth}-{adaptive}"
            return stack.enter_context(running_server(native_line(), model, log, *ARGUMENTS, *flags))

        adaptive = server(max(DEPTHS), "on")
        fixed = [Setting(str(depth), server(depth, "off"), {}) for depth in DEPTHS]
        yield [
            Setting("0", adaptive, {"speculative": {"type": "none"}}),
            *fixed,
            Setting("adaptive", adaptive, {}),
        ]


def row(settings: Sequence[Setting], prompt: str, n_streams: int, ties: list[NearTie]) -> list[str]:
    """Speeds of each setting, ratios of the adaptive one, and answers that differ from the undrafted ones.

    The first answer of each slot that differs is looked into, and added to `ties`.
    """
    speeds: dict[str, list[float]] = {setting.name: [] for setting in settings}
    plain: list[list[int]] = []
    n_other, n_other_undrafted = 0, 0
    looked_at: set[int] = set()
    for setting in settings:
        answers(setting, prompt, n_streams, n_tokens=READ_TOKENS)
    first = {setting.name: answers(setting, prompt, n_streams)[0] for setting in settings}
    least = HOPELESS * max(first.values())
    measured = [s for s in settings if s.name in COMPARED or first[s.name] >= least]
    for _ in range(ROUNDS):
        for setting in measured:
            speed, tokens = answers(setting, prompt, n_streams)
            speeds[setting.name].append(speed)
            plain = plain or tokens
            for lane, (found, wanted) in enumerate(zip(tokens, plain, strict=True)):
                if found != wanted and setting.name == "0":
                    n_other_undrafted += 1
                elif found != wanted:
                    n_other += 1
                    if lane not in looked_at:
                        looked_at.add(lane)
                        ties.append(near_tie(setting.server, lane_prompt(lane, prompt), wanted, found))
    medians = {name: statistics.median(values) for name, values in speeds.items() if values}
    adaptive = medians["adaptive"]
    best = max(speed for name, speed in medians.items() if name != "adaptive")
    ratios = [f"{adaptive / best:.2f}", f"{adaptive / medians['0']:.2f}"]
    shown = [f"{medians[name]:.0f}" if name in medians else f"({first[name]:.0f})" for name in speeds]
    return [*shown, *ratios, f"{n_other}, {n_other_undrafted}"]


def main(kinds: Sequence[str]) -> None:
    """Print a table for each drafter."""
    console = Console(width=150)
    fetch(GROUPS["model"])
    model = ROOT / GROUPS["model"][0].target
    for kind, makers in {"text": text_settings, "model": model_settings}.items():
        if kinds and kind not in kinds:
            continue
        table = Table(title=f"drafts by {kind}: tokens/s by depth", title_justify="left")
        columns = (
            "text",
            "slots",
            "0",
            *map(str, DEPTHS),
            "adaptive",
            "of best",
            "of depth 0",
            "other texts, undrafted",
        )
        for column in columns:
            table.add_column(column, justify="left" if column == "text" else "right")
        ties: list[NearTie] = []
        with tempfile.TemporaryDirectory() as folder, makers(model, Path(folder)) as settings:
            for name, prompt in WORKLOADS.items():
                for n_streams in TOKENS:
                    found = row(settings, prompt, n_streams, ties)
                    console.print(kind, name, n_streams, *found, style="dim")
                    table.add_row(name, str(n_streams), *found)
        console.print(table)
        print_ties(console, ties)


if __name__ == "__main__":
    main(sys.argv[1:])
