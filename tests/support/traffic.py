"""Clients that ask several models in turns, each waiting for its answer before it asks again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx

from tests.support.paddock import RunningPaddock

ANSWER_S = 300.0
SAMPLE_S = 0.02
OK = 200


@dataclass(frozen=True)
class Answer:
    """What came of one request. Times are seconds of a monotonic clock."""

    model: str
    status: int
    text: str
    """The answer, or what was said instead."""
    tokens: int
    sent_s: float
    done_s: float

    @property
    def is_whole(self) -> bool:
        """Whether it was answered to the end."""
        return self.status == OK and self.tokens > 0

    @property
    def seconds(self) -> float:
        """From the request to the end of the answer."""
        return self.done_s - self.sent_s


def mixed_requests(
    models: Sequence[str], *, requests: int, clients: int, stay: float, seed: int
) -> list[list[str]]:
    """Which model each client asks for, in order: the same as before with probability `stay`."""
    draw = random.Random(seed)
    sequences = []
    for client in range(clients):
        count = requests // clients + (client < requests % clients)
        asked = [draw.choice(models)]
        while len(asked) < count:
            others = [model for model in models if model != asked[-1]]
            asked.append(asked[-1] if draw.random() < stay else draw.choice(others))
        sequences.append(asked[:count])
    return sequences


def run_clients(paddock: RunningPaddock, sequences: Sequence[Sequence[str]], tokens: int) -> list[Answer]:
    """All clients at once, each with a connection of its own; returns when the last one is done."""

    def client(sequence: Sequence[str]) -> list[Answer]:
        with httpx.Client(base_url=paddock.base_url, timeout=ANSWER_S, trust_env=False) as http:
            return [_ask(http, model, tokens) for model in sequence]

    with ThreadPoolExecutor(len(sequences)) as pool:
        return [answer for answers in pool.map(client, sequences) for answer in answers]


class Peak:
    """The largest value that something had while the block ran, looked at all the time."""

    def __init__(self, value: Callable[[], int]) -> None:
        self.most = 0
        self._value = value
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            self.most = max(self.most, self._value())


def _ask(http: httpx.Client, model: str, tokens: int) -> Answer:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": tokens,
        "ignore_eos": True,
    }
    sent = time.monotonic()
    try:
        answer = http.post("/v1/chat/completions", json=body)
    except httpx.HTTPError as error:
        return Answer(model, 0, repr(error), 0, sent, time.monotonic())
    done = time.monotonic()
    if answer.status_code != OK:
        return Answer(model, answer.status_code, answer.text, 0, sent, done)
    whole = answer.json()
    text = whole["choices"][0]["message"]["content"] or ""
    return Answer(model, OK, text, whole["usage"]["completion_tokens"], sent, done)
