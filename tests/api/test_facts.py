"""What engines are asked on behalf of a manifest, and with which variables."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.api.answers import PlanAnswer, RefusedInstance
from framework.api.facts import as_running, in_pools, list_all_devices, list_engines
from framework.engines.probe import CapabilityCache
from framework.values.engine import EngineRef
from framework.values.manifest import Manifest
from framework.values.plan import FitPlan
from framework.values.reason import Failure
from framework.values.request import PoolLimits
from tests.api import samples

SECRET = "secret-of-the-operator"


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """Where the engine of `declared` writes the variables that it is started with."""
    return tmp_path / "seen"


@pytest.fixture
def declared(tmp_path: Path, seen: Path) -> Manifest:
    """A manifest that takes a key from the environment, with an engine that tells what it was given."""
    engine = tmp_path / "llama-server"
    engine.write_text(f"#!/bin/sh\nenv >> {seen}\n")
    engine.chmod(0o755)
    engines = {"default": EngineRef(path=engine)}
    return replace(samples.manifest(), engines=engines, secret_names=("CHAT_SECRET",))


@pytest.fixture
def environ() -> dict[str, str]:
    """The manager's variables."""
    return {"PATH": os.environ["PATH"], "CHAT_SECRET": SECRET, "KEPT": "yes"}


async def test_a_probe_for_capabilities_gets_no_secret(
    declared: Manifest, environ: dict[str, str], seen: Path
) -> None:
    await list_engines(declared, environ, CapabilityCache())
    assert "KEPT=yes" in seen.read_text()
    assert SECRET not in seen.read_text()


async def test_a_probe_for_devices_gets_no_secret(
    declared: Manifest, environ: dict[str, str], seen: Path
) -> None:
    await list_all_devices(declared, environ)
    assert "KEPT=yes" in seen.read_text()
    assert SECRET not in seen.read_text()


def test_a_device_that_no_pool_takes_belongs_to_none() -> None:
    found = in_pools((samples.GPU, samples.CPU), (PoolLimits("host", ("cpu",)),))
    assert [(device.name, device.pool) for device in found] == [("Vulkan0", None), ("CPU", "host")]


STARTED_WITH = FitPlan(context=4096, budget_bytes={"CPU": 900}, fits=True)
NOW = FitPlan(context=4096, budget_bytes={"CPU": 10}, fits=False)


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        pytest.param({}, STARTED_WITH, id="runs-as-planned"),
        pytest.param({"fingerprint": "0" * 64}, NOW, id="runs-otherwise"),
        pytest.param({"pid": None}, NOW, id="does-not-run"),
    ],
)
def test_what_runs_keeps_the_memory_plan_it_was_started_with(
    instance: dict[str, Any], expected: FitPlan
) -> None:
    started = samples.plan(fit=STARTED_WITH, fingerprint=instance.pop("fingerprint", "f" * 64))
    views = [samples.model("chat", samples.instance(plan=started, **instance))]
    answer = PlanAnswer(Path("serve.toml"), "a" * 64, instances=(samples.plan(fit=NOW),))
    assert as_running(answer, views).instances == (samples.plan(fit=expected),)


def test_a_refused_plan_stays_refused_while_something_runs() -> None:
    refused = RefusedInstance(samples.request(), 0, Failure(samples.REASON))
    answer = PlanAnswer(Path("serve.toml"), "a" * 64, instances=(refused,))
    assert as_running(answer, [samples.model("chat", samples.instance())]) == answer
