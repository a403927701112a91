"""What n-gram drafting brings by the text that is written, and what the yield watch makes of it.

Run by `make bench`. The demo model answers on the CPU, by a real llama-server: without drafting, with the
lengths of mode `ngram`, and with short ones. It is made to write text that repeats, and digits in random
order, in which short n-grams match all the time and are nearly always wrong. Sums and comparison are those of
the product (05 §11.7).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from bench.engine_plan import find_engine
from framework.planning.speculation.profit import DEFAULT_LIMITS, Tally, is_slower
from framework.runtime.speed_meter import answer_speed
from framework.values.spec_yield import PLAIN, AnswerSpeed, Drafting
from tests.support.waiting import unused_port
from tools.fetch import GROUPS, ROOT, fetch

ANSWERS = 5
# The watch wants more of each side, which would take an hour on a small machine.
LIMITS = replace(DEFAULT_LIMITS, min_requests=ANSWERS)
TOKENS = 100
START_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 300.0
POLL_S = 0.1

POLICIES: Mapping[str, Sequence[int]] = {
    "none": (),
    "24/48/64": (24, 48, 64),
    "4/2/16": (4, 2, 16),
    "1/1/16": (1, 1, 16),
}
DIGITS = [[digit, 100] for digit in "01234567"]
TEXTS: Mapping[str, Mapping[str, Any]] = {
    "repeats": {"grammar": 'root ::= ("the cat sat on the mat and looked at the dog. ")+', "temperature": 0},
    "prose": {"temperature": 0.8},
    "random digits": {"logit_bias": DIGITS, "temperature": 20.0, "top_k": 8, "min_p": 0},
}


@contextmanager
def running_engine(engine: Path, lengths: Sequence[int]) -> Iterator[str]:
    """A server with these n-gram lengths (match, least, most), without any for none; its address."""
    names = ("--spec-ngram-mod-n-match", "--spec-ngram-mod-n-min", "--spec-ngram-mod-n-max")
    spec = [part for pair in zip(names, map(str, lengths), strict=False) for part in pair]
    if spec:
        spec = ["--spec-type", "ngram-mod", *spec]
    port, model = unused_port(), ROOT / GROUPS["model"][0].target
    line = [str(engine), "-m", str(model), "--port", str(port), "-np", "1", "-c", "2048", "-t", "1"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(engine.parent)}
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [*line, "--device", "none", *spec], env=environment, stdout=log, stderr=log
        ) as process,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(url)
            yield url
        finally:
            process.kill()


def _wait(url: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/health", timeout=1).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(POLL_S)
    raise TimeoutError("llama-server did not start")


def timed(url: str, number: int, fields: Mapping[str, Any]) -> AnswerSpeed:
    """One answer."""
    body = {
        "messages": [{"role": "user", "content": f"Write something, number {number}."}],
        "max_tokens": TOKENS,
        "ignore_eos": True,
        "cache_prompt": False,
        "seed": number,
        **fields,
    }
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=ANSWER_TIMEOUT_S).json()
    speed = answer_speed(answer["timings"], Drafting("", PLAIN), 1, 0.0)
    assert speed is not None
    return speed


def measure(urls: Mapping[str, str]) -> dict[str, dict[str, Tally]]:
    """Sums by policy and text. Policies take turns, so that whatever else the machine does meets them all."""
    found = {policy: {text: Tally() for text in TEXTS} for policy in urls}
    for text, fields in TEXTS.items():
        for number in range(ANSWERS):
            for policy, url in urls.items():
                speed = timed(url, number, fields)
                found[policy][text] = found[policy][text].plus(speed, LIMITS.window_requests)
    return found


def show(console: Console, found: Mapping[str, Mapping[str, Tally]]) -> None:
    """A row for each text and way of drafting."""
    table = Table(title=f"{ANSWERS} answers of {TOKENS} tokens each, one at a time", title_justify="left")
    for column in ("text", "lengths"):
        table.add_column(column)
    for column in ("tokens/s", "speed-up", "accepted", "the watch"):
        table.add_column(column, justify="right")
    for text in TEXTS:
        plain = found["none"][text]
        for policy, sums in found.items():
            table.add_row(text, policy, *_cells(sums[text], plain, is_plain=policy == "none"))
    console.print(table)


def _cells(sums: Tally, plain: Tally, *, is_plain: bool) -> Iterator[str]:
    speed, baseline = sums.tokens_per_s or 0.0, plain.tokens_per_s or 0.0
    yield f"{speed:.1f}"
    yield "" if is_plain else f"{speed / baseline:.2f}"
    yield "" if sums.acceptance is None else f"{sums.acceptance:.0%}"
    if is_plain:
        yield ""
    elif sums.acceptance is None:
        yield "no drafts"
    else:
        yield "switches off" if is_slower(sums, plain, LIMITS) else "keeps"


def main() -> None:
    """Print speeds and verdicts."""
    console = Console()
    engine = find_engine()
    if engine is None:
        console.print("speculation_yield: no llama-server on this machine")
        return
    fetch(GROUPS["model"])
    with ExitStack() as engines:
        urls = {
            policy: engines.enter_context(running_engine(engine, lengths))
            for policy, lengths in POLICIES.items()
        }
        show(console, measure(urls))


if __name__ == "__main__":
    main()
