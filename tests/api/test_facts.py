"""What engines are asked on behalf of a manifest, and with which variables."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from framework.api.facts import in_pools, list_all_devices, list_engines
from framework.engines.probe import CapabilityCache
from framework.values.engine import EngineRef
from framework.values.manifest import Manifest
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
