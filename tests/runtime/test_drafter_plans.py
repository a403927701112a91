"""Plans with a drafter that is read from its file, and measured by the engine (05 §10.3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.engines.probe import CapabilityCache
from framework.runtime.planner import FactPlanner
from framework.values.engine import EngineRef
from framework.values.plan import LaunchPlan
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import changed, request_for
from tests.support.model_files import write_tiny_gguf

CARD = "CUDA0: a card (24000 MiB, 20000 MiB free)"


@pytest.fixture
def asked(fake_engine: MakeFake, tiny_gguf: Path) -> ModelRequest:
    """A model on a fake card."""
    return request_for(fake_engine(devices=[CARD]), tiny_gguf, n_ctx=1024)


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A smaller model beside it."""
    return write_tiny_gguf(tmp_path / "drafters" / "small.gguf")


async def plan(request: ModelRequest, folder: Path) -> LaunchPlan:
    return await FactPlanner(CapabilityCache(), dict(os.environ), base_dir=folder).plan(request, 0)


def own(file: Path | str) -> tuple[str, ...]:
    """Arguments of a user who drives speculation himself."""
    return ("--spec-type", "draft-simple", "-md", str(file))


def drafter_labels(found: LaunchPlan) -> set[str]:
    return {line.label for line in found.fit.lines if line.label.startswith("drafter_")}


async def test_a_drafter_of_the_users_arguments_is_read(
    asked: ModelRequest, drafter: Path, tmp_path: Path
) -> None:
    found = await plan(changed(asked, extra_args=own(drafter)), tmp_path)
    assert drafter_labels(found) == {"drafter_weights", "drafter_kv", "drafter_compute"}
    assert (found.spec.resolved, found.spec.drafter, found.fit.fits) == ("user", str(drafter), True)


async def test_a_drafter_of_the_policy_is_read(asked: ModelRequest, drafter: Path, tmp_path: Path) -> None:
    policy = SpecPolicy("draft", drafter=ModelSource(path=drafter))
    found = await plan(changed(asked, spec=policy), tmp_path)
    assert drafter_labels(found) == {"drafter_weights", "drafter_kv", "drafter_compute"}
    assert (found.spec.resolved, found.spec.drafter) == ("draft-simple", str(drafter))


@pytest.mark.parametrize(
    "named", ["small.gguf", "/no/such/drafter.gguf", "{broken}"], ids=["relative", "missing", "broken"]
)
async def test_a_drafter_that_cannot_be_read_leaves_memory_to_the_engine(
    asked: ModelRequest, tmp_path: Path, named: str
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and nothing behind it")
    text = named.replace("{broken}", str(broken))
    found = await plan(changed(asked, extra_args=own(text)), tmp_path)
    (fault,) = [reason for reason in found.reasons if reason.code == "planning_fault"]
    assert f"the drafter of -md {text} takes memory of its own, and its file cannot be read" in fault.message
    assert found.placement.is_delegated


@pytest.mark.parametrize("by", ["flag", "variable", "alone"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
async def test_a_drafter_that_would_hold_up_the_engine_never_reaches_it(
    asked: ModelRequest, tmp_path: Path, kind: str, by: str
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "d.gguf"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    variable = "LLAMA_ARG_SPEC_DRAFT_MODEL"
    if by == "variable":
        request = changed(asked, extra_args=own(path)[:2], env={variable: str(path)})
    else:
        request = changed(asked, extra_args=own(path)[2 if by == "alone" else 0 :])
    found = await plan(request, tmp_path)
    assert str(path) not in (*found.argv, *found.env.values())
    assert "--spec-type" not in found.argv
    reason = found.spec.reason
    assert reason is not None
    assert (reason.code, reason.severity) == ("drafter_missing", "warning")
    assert f"{variable if by == 'variable' else '-md'} names" in reason.message


async def test_a_drafter_that_the_engine_gets_from_a_hub_cannot_be_sized(
    asked: ModelRequest, tmp_path: Path
) -> None:
    arguments = ("--spec-type", "draft-simple", "-hfd", "org/small-GGUF")
    found = await plan(changed(asked, extra_args=arguments), tmp_path)
    (fault,) = [reason for reason in found.reasons if reason.code == "planning_fault"]
    assert "the drafter of -hfd org/small-GGUF" in fault.message
    assert "the engine gets it from a hub" in fault.message


@pytest.mark.engine
async def test_the_engine_measures_a_drafter_as_it_was_planned(
    engine_binary: Path, smollm2: Path, tmp_path: Path
) -> None:
    asked = ModelRequest(
        id="m",
        source=ModelSource(path=smollm2),
        engine=EngineRef(path=engine_binary),
        n_ctx=2048,
        slots=2,
        extra_args=own(smollm2),
    )
    planner = FactPlanner(CapabilityCache(), dict(os.environ), base_dir=tmp_path)
    planned, measured = await planner.plan(asked, 0), await planner.measure(asked, 0)

    def sizes(found: LaunchPlan) -> dict[str, int]:
        return {line.label: line.bytes for line in found.fit.lines if line.label.startswith("drafter_")}

    assert sizes(measured) == sizes(planned)
    assert {one.basis for one in measured.fit.lines if one.label in sizes(measured)} == {"measured"}
