"""Requests of every shape at once, many of them cut off. Used by tests and by `bench.native_storm`."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import httpx

AT_ONCE = 16


def shape(dice: random.Random) -> dict[str, Any]:
    """A body that a client might send, or should not."""
    text = "".join(dice.choice("abc \n<>{}\u00e9\u65e5") for _ in range(dice.choice((0, 1, 20, 300, 3000))))
    body: dict[str, Any] = {"prompt": text, "n_predict": dice.choice((0, 1, 8, 40, -1))}
    extras: tuple[dict[str, Any], ...] = (
        {},
        {"stream": True},
        {"n_probs": 3},
        {"stop": ["a", "zz", "\u65e5"]},
        {"grammar": 'root ::= "a"+'},
        {"json_schema": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}},
        {"temperature": 2.0, "top_k": 0, "seed": 3},
        {"id_slot": dice.randrange(6)},
        {"n": 2},
        {"cache_prompt": False, "n_cache_reuse": 8},
        {"logit_bias": [[5, False]], "ignore_eos": True, "n_predict": 30},
        {"stop": ["x" * 1000] * 100},
        {"t_max_predict_ms": 5, "n_indent": 2},
        {"top_k": "many"},
    )
    return {**body, **dice.choice(extras), **dice.choice(extras)}


async def send(client: httpx.AsyncClient, dice: random.Random, seen: Counter[int]) -> None:
    """One request; every fourth client goes away before its answer."""
    patience_s = dice.uniform(0.001, 0.05) if dice.random() < 0.25 else 60.0
    body = shape(dice)
    if body["n_predict"] == -1:
        patience_s = 0.05
    try:
        answer = await asyncio.wait_for(client.post("/completion", json=body), patience_s)
    except TimeoutError:
        return
    seen[answer.status_code] += 1


async def storm(url: str, n_requests: int, seed: int) -> Counter[int]:
    """Statuses of a bounded number of requests, so many at once."""
    seen: Counter[int] = Counter()
    dice = random.Random(seed)
    left = asyncio.Semaphore(AT_ONCE)

    async def one(client: httpx.AsyncClient) -> None:
        async with left:
            await send(client, dice, seen)

    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=url, timeout=60.0, limits=limits) as client:
        await asyncio.gather(*(one(client) for _ in range(n_requests)))
    return seen
