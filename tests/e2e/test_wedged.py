"""PL-03 as a client and the operator see it: a healthy endpoint behind which nothing is inferred."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import CHAT, engine_table, error_of, model_table

SAID = "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory"


@pytest.mark.timeout(240)
def test_the_request_ends_with_the_reason_and_the_process_is_replaced_once(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    fault = {"stderr": (f"0.09.000.000 E {SAID}",), "at_request": 1}
    engine = fake_engine(first_token_s=600.0, faults=(fault,))
    paddock = paddock_up(engine_table(engine) + model_table("tiny", tiny_gguf))
    before = paddock.wait_state("tiny", "ready")["instances"][0]["pid"]
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}
    answer = httpx.post(paddock.base_url + CHAT, json=body, timeout=120.0, trust_env=False)
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["reason"]["code"]) == (
        503,
        "instance_restarting",
        "engine_wedged",
    )
    assert SAID in error["message"]
    assert int(answer.headers["retry-after"]) >= 1
    after = paddock.wait_state("tiny", "ready")["instances"][0]
    assert (after["pid"] != before, after["restarts"], len(engine.starts())) == (True, 1, 2)
    page = httpx.get(f"{paddock.base_url}/models/tiny", timeout=30.0, trust_env=False)
    assert SAID in page.text
