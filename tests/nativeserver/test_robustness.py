"""Requests of every shape at once, many of them cut off: no slot stays busy, no memory grows (12 §2.8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from tests.support.engine_pair import RunningServer, native_line, running_server
from tests.support.request_storm import storm
from tests.support.waiting import wait_until
from tests.support.working_models import write_working_model

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

REQUESTS, WARM = 300, 100
MOST_GROWTH_BYTES = 64 * 1024 * 1024
GOOD_OR_REFUSED = {200, 400, 501}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A small model, so that thousands of requests take seconds."""
    folder = tmp_path_factory.mktemp("robustness")
    model = folder / "small.gguf"
    write_working_model(model)
    arguments = ("-c", "1024", "-np", "4", "-t", "1", "--cache-ram", "8", "--metrics")
    with running_server(native_line(), model, folder / "log", *arguments) as running:
        yield running


def idle(server: RunningServer) -> bool:
    return not any(slot["is_processing"] for slot in server.get("/slots").json())


async def test_a_storm_of_requests_leaves_nothing_behind(server: RunningServer) -> None:
    process = psutil.Process(server.process.pid)
    await storm(server.url, WARM, 1)
    await asyncio.to_thread(wait_until, lambda: idle(server), 30.0, "idle slots")
    before_bytes = process.memory_info().rss
    seen = await storm(server.url, REQUESTS, 2)
    await asyncio.to_thread(wait_until, lambda: idle(server), 30.0, "idle slots")
    assert set(seen) <= GOOD_OR_REFUSED
    assert seen[200] > REQUESTS // 5
    assert process.memory_info().rss - before_bytes < MOST_GROWTH_BYTES
    assert "requests_deferred 0" in server.get("/metrics").text
    assert server.post("/completion", {"prompt": "a", "n_predict": 4}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"prompt": "", "n_predict": 5}, id="empty"),
        pytest.param({"prompt": [], "n_predict": 5}, id="no-tokens"),
        pytest.param({"prompt": "\ud800"}, id="lone-surrogate"),
        pytest.param({"prompt": "a", "n_predict": 1, "stop": ["y" * 1024] * 1000}, id="a-megabyte-of-stops"),
        pytest.param({"prompt": "a", "grammar": 'root ::= ("a"){3,2}'}, id="grammar-that-hangs-parsers"),
        pytest.param({"prompt": [[1, 2], "b", {"prompt_string": "c"}], "n_predict": 1}, id="mixed"),
    ],
)
def test_odd_requests_have_an_answer(server: RunningServer, body: dict[str, Any]) -> None:
    content = json.dumps(body)
    answer = httpx.post(f"{server.url}/completion", content=content, timeout=60)
    assert answer.status_code in {200, 400}
    assert server.get("/health").status_code == 200
