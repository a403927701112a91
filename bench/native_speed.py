"""The native engine against the wheel's llama-server: same libllama, same model, same threads, one run.

Run by `make bench`. Both servers are up and take turns, so that what the machine does else meets both; they
start in turns at the end. A figure is the median of its rounds. A ratio above 1 says that the native
engine is faster.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from bench.engine_plan import find_engine
from tests.support.engine_pair import RunningServer, llama_server_line, native_line, running_server
from tools.fetch import GROUPS, ROOT, fetch

ROUNDS = 5
STREAMS = 8
TOKENS = 64
PROMPT_WORDS = 200
ARGUMENTS = ("-c", "8192", "-np", str(STREAMS), "-t", "2")
STORY = "Write a long story about a mill by the river. "
Line = tuple[list[str], dict[str, str]]
"""Arguments and environment of a server."""
Measure = Callable[[RunningServer, int], float]


def completion(server: RunningServer, **fields: Any) -> dict[str, Any]:
    """A whole answer."""
    answer = server.post("/completion", {"temperature": 0, "ignore_eos": True, "seed": 1, **fields})
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def decode_alone(server: RunningServer, number: int) -> float:
    """Tokens per second of one stream, as its own timings say."""
    answer = completion(server, prompt=f"{STORY} {number}", n_predict=TOKENS, cache_prompt=False)
    return float(answer["timings"]["predicted_per_second"])


def decode_together(server: RunningServer, number: int) -> float:
    """Tokens per second of eight requests at once, from the first byte sent to the last one received."""
    with ThreadPoolExecutor(STREAMS) as pool:
        begun = time.monotonic()
        answers = list(
            pool.map(
                lambda lane: completion(
                    server, prompt=f"{lane} {number}", n_predict=TOKENS, cache_prompt=False
                ),
                range(STREAMS),
            )
        )
        elapsed_s = time.monotonic() - begun
    n_tokens = sum(int(answer["tokens_predicted"]) for answer in answers)
    return n_tokens / elapsed_s


def long_prompt(number: int) -> str:
    """Words that no other round has in this order."""
    return " ".join(f"word{(number * 7 + at) % 97}" for at in range(PROMPT_WORDS))


def prompt_speed(server: RunningServer, number: int) -> float:
    """Prompt tokens per second, as the timings say."""
    answer = completion(server, prompt=long_prompt(number), n_predict=1, cache_prompt=False)
    return float(answer["timings"]["prompt_per_second"])


def first_token(server: RunningServer, prompt: str) -> float:
    """One over the seconds until the first event of a stream."""
    body = {
        "prompt": prompt,
        "n_predict": 2,
        "temperature": 0,
        "stream": True,
        "ignore_eos": True,
        "id_slot": 0,
    }
    begun = time.monotonic()
    with httpx.stream("POST", f"{server.url}/completion", json=body, timeout=110) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: ") and json.loads(line[6:])["content"]:
                break
        elapsed_s: float = time.monotonic() - begun
    return 1.0 / elapsed_s


def first_token_fresh(server: RunningServer, number: int) -> float:
    """A prompt that was never seen."""
    return first_token(server, f"{number} {long_prompt(number + 1000)}")


def first_token_cached(server: RunningServer, number: int) -> float:
    """The same prompt once more, with another end."""
    prompt = f"{number} {long_prompt(number + 2000)}"
    first_token(server, prompt)
    return first_token(server, f"{prompt} and then")


MEASURES: Mapping[str, tuple[Measure, str]] = {
    "decode, 1 stream": (decode_alone, "tokens/s"),
    f"decode, {STREAMS} streams": (decode_together, "tokens/s"),
    "prompt": (prompt_speed, "tokens/s"),
    "first token, fresh prompt": (first_token_fresh, "1/s"),
    "first token, cached prefix": (first_token_cached, "1/s"),
}


def measure(real: RunningServer, native: RunningServer) -> dict[str, tuple[float, float]]:
    """Medians of llama-server and of the native engine."""
    found = {}
    for name, (function, _) in MEASURES.items():
        for server in (real, native):
            function(server, 99)
        rounds = [(function(real, number), function(native, number)) for number in range(ROUNDS)]
        theirs, ours = zip(*rounds, strict=True)
        found[name] = (statistics.median(theirs), statistics.median(ours))
    return found


def starts(model: Path, lines: Sequence[Line], logs: Path) -> list[float]:
    """Seconds from spawn to ready of each, medians."""
    found: list[list[float]] = [[] for _ in lines]
    for _ in range(ROUNDS):
        for line, seconds in zip(lines, found, strict=True):
            with running_server(line, model, logs / "start", *ARGUMENTS) as server:
                seconds.append(server.started_s)
    return [statistics.median(seconds) for seconds in found]


def main() -> None:
    """Print a table of both."""
    console = Console()
    engine = find_engine()
    if engine is None:
        console.print("native_speed: no llama-server on this machine")
        return
    fetch(GROUPS["model"])
    model = ROOT / GROUPS["model"][0].target
    table = Table(title=f"medians of {ROUNDS} rounds in turns, 2 threads", title_justify="left")
    for column in ("measure", "unit", "llama-server", "native", "ratio"):
        table.add_column(column, justify="left" if column in {"measure", "unit"} else "right")
    lines = llama_server_line(engine), native_line()
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        with (
            running_server(lines[0], model, logs / "real", *ARGUMENTS) as real,
            running_server(lines[1], model, logs / "native", *ARGUMENTS) as native,
        ):
            for name, (theirs, ours) in measure(real, native).items():
                table.add_row(name, MEASURES[name][1], f"{theirs:.1f}", f"{ours:.1f}", f"{ours / theirs:.2f}")
        theirs_s, ours_s = starts(model, lines, logs)
        row = (f"{1 / theirs_s:.2f}", f"{1 / ours_s:.2f}", f"{theirs_s / ours_s:.2f}")
        table.add_row("start to ready", "1/s", *row)
    console.print(table)


if __name__ == "__main__":
    main()
