"""What engines are asked on behalf of a manifest, and with which variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.api.answers import PlanAnswer, RefusedInstance
from framework.api.facts import as_running, list_all_devices, list_engines
from framework.engines.probe import CapabilityCache
from framework.hardware.devices import DeviceList
from framework.values.device import Device
from framework.values.engine import EngineBinary, EngineRef
from framework.values.manifest import Manifest
from framework.values.plan import FitPlan
from framework.values.reason import Failure, Reason
from framework.values.request import PoolLimits
from tests.api import samples

SECRET = "secret-of-the-operator"
REMOTE = Device("RPC0", "rpc", 9, 9, endpoint="b:1")
AWAY = Reason("rpc_unreachable", "away", evidence={"endpoint": "a:1"})


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


STARTED_WITH = FitPlan(context=4096, budget_bytes={"CPU": 900}, fits=True)
NOW = FitPlan(context=4096, budget_bytes={"CPU": 10}, fits=False)


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        pytest.param({}, STARTED_WITH, id="runs-as-planned"),
        pytest.param({"asked": samples.request(n_ctx=512)}, NOW, id="runs-otherwise"),
        pytest.param({"pid": None}, NOW, id="does-not-run"),
    ],
)
def test_what_runs_keeps_the_memory_plan_it_was_started_with(
    instance: dict[str, Any], expected: FitPlan
) -> None:
    started = samples.plan(instance.pop("asked", None), fit=STARTED_WITH)
    views = [samples.model("chat", samples.instance(plan=started, **instance))]
    answer = PlanAnswer(Path("serve.toml"), "a" * 64, instances=(samples.plan(fit=NOW),))
    assert as_running(answer, views).instances == (samples.plan(fit=expected),)


def test_what_could_not_start_now_still_runs() -> None:
    refused = RefusedInstance(samples.request(), 0, Failure(samples.REASON))
    answer = PlanAnswer(Path("serve.toml"), "a" * 64, instances=(refused,))
    running = [samples.model("chat", samples.instance())]
    assert as_running(answer, running).instances == (samples.plan(),)
    assert as_running(answer, []) == answer


async def test_the_servers_of_all_pools_are_asked_in_the_order_of_the_manifest(declared: Manifest) -> None:
    asked: list[tuple[str, ...]] = []

    async def ask(
        _binary: EngineBinary, _environ: Mapping[str, str], /, *, rpc: Sequence[str] = ()
    ) -> DeviceList:
        asked.append(tuple(rpc))
        return DeviceList((REMOTE, samples.CPU), (AWAY,))

    pools = {
        name: PoolLimits(name, devices) for name, devices in (("b", ("rpc://b:1",)), ("a", ("rpc://a:1",)))
    }
    answer = await list_all_devices(replace(declared, pools=pools), {}, ask)
    assert asked == [("b:1", "a:1")]
    assert [(device.name, device.pool) for device in answer.devices] == [("RPC0", "b"), ("CPU", None)]
    assert answer.reasons == (AWAY,)
