"""Models that share a Vulkan device in software, on which several engines run at once (04 §16, GP-08)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import StartPaddock
from tests.e2e.clients import model_table
from tests.support.paddock import RunningPaddock
from tests.support.traffic import ANSWER_S

pytestmark = pytest.mark.engine

MIB = 2**20
# Any two of them fit into the budget, and never all three.
CONTEXTS = {"a": 1024, "b": 2048, "c": 4096}
# Each takes 320 MiB for the driver besides what the engine says it allocates.
BUDGET_MIB = 1100
SPLIT_MIB = 430
# Devices in software are not listed unless they are asked for.
ONE, TWO = {"GGML_VK_VISIBLE_DEVICES": "0"}, {"GGML_VK_VISIBLE_DEVICES": "0,0"}


def pool_table(*devices: str, budget_mib: int) -> str:
    named = ", ".join(f'"{device}"' for device in devices)
    return f'[pools.soft]\ndevices = [{named}]\nbudget = "{budget_mib}MiB"\noffload = "forbid"\n'


def soft_model(name: str, model: Path, **lines: Any) -> str:
    settings = {"load": "on-demand", "slots": 1, "context": CONTEXTS.get(name, 1024), **lines}
    return model_table(name, model, **settings)


def ask(paddock: RunningPaddock, model: str) -> int:
    """The shortest request there is, for shaders in software take their time; the status of the answer."""
    body = {"model": model, "prompt": "Hello", "max_tokens": 1}
    return httpx.post(
        f"{paddock.base_url}/v1/completions", json=body, timeout=ANSWER_S, trust_env=False
    ).status_code


def devices_of(paddock: RunningPaddock) -> list[dict[str, Any]]:
    devices: list[dict[str, Any]] = paddock.status()["pools"][0]["devices"]
    return devices


def test_two_of_three_models_share_a_device(paddock_up: StartPaddock, smollm2: Path) -> None:
    tables = pool_table("Vulkan0", budget_mib=BUDGET_MIB)
    tables += "".join(soft_model(name, smollm2) for name in CONTEXTS)
    paddock = paddock_up(tables, environment=ONE)
    assert [ask(paddock, name) for name in "aba"] == [200, 200, 200]
    assert paddock.events(kind="evicted") == []
    first = paddock.pids()
    assert ask(paddock, "c") == 200
    (eviction,) = paddock.events(kind="evicted")
    assert (eviction["model"], eviction["data"]["leases"]) == ("b", 0)
    assert paddock.pids()["a"] == first["a"]
    (device,) = devices_of(paddock)
    assert 0 < device["planned_bytes"] <= BUDGET_MIB * MIB
    assert 2 * 92 * MIB < device["measured_bytes"] <= device["planned_bytes"]


def test_a_model_is_split_over_two_devices_as_planned(paddock_up: StartPaddock, smollm2: Path) -> None:
    """Neither can hold it alone."""
    tables = pool_table("Vulkan0", "Vulkan1", budget_mib=SPLIT_MIB) + soft_model("a", smollm2)
    paddock = paddock_up(tables, environment=TWO)
    assert ask(paddock, "a") == 200
    lines = paddock.model("a")["instances"][0]["plan"]["fit"]["lines"]
    for device in devices_of(paddock):
        on_it = [line for line in lines if line["device"] == device["name"]]
        expected = sum(line["bytes"] for line in on_it if line["label"] != "runtime")
        assert 42 * MIB < expected < 100 * MIB
        assert abs(device["measured_bytes"] - expected) < 8 * MIB
        assert device["planned_bytes"] <= SPLIT_MIB * MIB
