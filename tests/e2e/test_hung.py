"""Both real engines, stopped while they serve: noticed with the limits of the product, and replaced."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.conftest import StartPaddock
from tests.e2e.clients import CHAT, Stream, chat, engine_table, model_table
from tests.support.paddock import RunningPaddock

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

OWN = '[engines.own]\nkind = "native"\n'
# A silent engine gets its first probe within 5 s, and is ended 30 s after that was not answered.
NOTICED_S = 90.0
LONG_TEXT = "The horse went over the hill and saw another horse. " * 120


def ask(paddock: RunningPaddock, model: str) -> httpx.Response:
    """A chat that is patient enough for an engine to be replaced."""
    body = {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8}
    return httpx.post(paddock.base_url + CHAT, json=body, timeout=200.0, trust_env=False)


def test_a_stopped_engine_is_replaced_and_its_request_answered(
    paddock_up: StartPaddock, engine_binary: Path, smollm2: Path
) -> None:
    tables = (
        engine_table(engine_binary)
        + OWN
        + model_table("a", smollm2)
        + model_table("b", smollm2, engine="own")
    )
    paddock = paddock_up(tables)
    before = {}
    for model in ("a", "b"):
        paddock.wait_state(model, "ready", NOTICED_S)
        before[model] = paddock.pids()[model][0]
    for pid in before.values():
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda model: ask(paddock, model), before))
    assert [answer.status_code for answer in answers] == [200, 200], [answer.text for answer in answers]
    for model, pid in before.items():
        reasons = [event["reason"] for event in paddock.events(model=model, kind="exited")]
        assert [reason["code"] for reason in reasons] == ["engine_hung"]
        assert "is stopped (SIGSTOP or a debugger)" in reasons[0]["message"]
        assert paddock.pids()[model] != [pid]
        assert paddock.model(model)["instances"][0]["restarts"] == 1


def test_reading_a_long_prompt_is_not_silence(
    paddock_up: StartPaddock, engine_binary: Path, smollm2: Path
) -> None:
    """One batch for all of it, and more requests than the engine has slots."""
    model = model_table("a", smollm2, context=4096, slots=1, batch={"logical": 4096, "physical": 512})
    paddock = paddock_up(engine_table(engine_binary) + model)
    paddock.wait_state("a", "ready", NOTICED_S)
    fields = {"messages": [{"role": "user", "content": LONG_TEXT}], "max_tokens": 4}
    streams = [Stream(paddock, "a", fields) for _ in range(3)]
    for stream in streams:
        assert b"[DONE]" in stream.join()
    assert paddock.events(model="a", kind="health") == []
    assert paddock.events(model="a", kind="exited") == []
    assert chat(paddock, "a").status_code == httpx.codes.OK
