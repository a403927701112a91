"""What a plan takes from files: its projector, its drafter, and how its template is told to reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.engines.probe import CapabilityCache
from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.runtime.identity import files_identity
from framework.runtime.planner import FactPlanner
from framework.values.plan import LaunchPlan
from framework.values.reason import Refused
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from tests.conftest import MakeFake
from tests.models.gguf_bytes import STRING, llama, pair
from tests.runtime.conftest import changed, request_for
from tests.support.model_files import write_tiny_gguf


@pytest.fixture
def thinker(tmp_path: Path) -> Path:
    """A model whose template has a switch for reasoning."""
    path = tmp_path / "models" / "thinker-8b.gguf"
    path.parent.mkdir()
    path.write_bytes(llama(pair("tokenizer.chat_template", STRING, "{{ enable_thinking }}")))
    return path


@pytest.fixture
def asked(fake_engine: MakeFake, thinker: Path) -> ModelRequest:
    """The model, with nothing special asked for."""
    return request_for(fake_engine(), thinker)


async def plan(request: ModelRequest, tmp_path: Path) -> LaunchPlan:
    reader = FactsReader(HeaderCache())
    planner = FactPlanner(CapabilityCache(), {"PATH": "/usr/bin:/bin"}, base_dir=tmp_path, reader=reader)
    return await planner.plan(request, 0)


def arguments(made: LaunchPlan) -> object:
    argv = made.argv
    flag = "--chat-template-kwargs"
    return json.loads(argv[argv.index(flag) + 1]) if flag in argv else None


@pytest.mark.parametrize(("wish", "thinks"), [("auto", True), ("on", True), ("off", False)])
async def test_reasoning_becomes_an_argument_of_the_template(
    asked: ModelRequest, tmp_path: Path, wish: str, thinks: bool
) -> None:
    made = await plan(changed(asked, reasoning=wish), tmp_path)
    assert arguments(made) == {"enable_thinking": thinks}


async def test_arguments_of_the_manifest_win(asked: ModelRequest, tmp_path: Path) -> None:
    made = await plan(changed(asked, template_kwargs={"enable_thinking": False, "x": 1}), tmp_path)
    assert arguments(made) == {"enable_thinking": False, "x": 1}


async def test_the_template_that_is_in_force_counts(asked: ModelRequest, tmp_path: Path) -> None:
    made = await plan(changed(asked, template="{{ messages }}", reasoning="on"), tmp_path)
    assert arguments(made) is None
    assert "reasoning_not_granted" in [reason.code for reason in made.reasons]


async def test_a_projector_that_is_found_is_launched_and_watched(asked: ModelRequest, tmp_path: Path) -> None:
    request = changed(asked, projector="auto")
    without = await plan(request, tmp_path)
    assert (without.projector, "--mmproj" in without.argv) == (None, False)
    assert asked.source.path is not None
    path = write_tiny_gguf(asked.source.path.with_name("mmproj-thinker.gguf"), architecture="clip")
    made = await plan(request, tmp_path)
    assert made.projector == path
    assert made.argv[made.argv.index("--mmproj") + 1] == str(path)
    assert made.fingerprint != without.fingerprint
    assert path in [file.path for file in files_identity(request, made) if file]


async def test_a_drafter_that_is_named_is_launched_and_watched(asked: ModelRequest, tmp_path: Path) -> None:
    path = tmp_path / "drafts" / "d.gguf"
    request = changed(asked, spec=SpecPolicy("draft", drafter=ModelSource(path=path)))
    without = await plan(request, tmp_path)
    assert without.spec.drafter is None
    assert without.spec.reason is not None
    assert (without.spec.reason.code, without.spec.notes) == ("drafter_not_found", ())
    assert without.spec.reason.evidence["because"] == ["drafter_missing"]
    assert "Correct `draft`" in without.spec.reason.remedy
    write_tiny_gguf(path)
    made = await plan(request, tmp_path)
    assert made.spec.drafter == str(path)
    assert made.argv[made.argv.index("--model-draft") + 1] == str(path)
    assert made.fingerprint != without.fingerprint
    assert path in [file.path for file in files_identity(request, made) if file]


async def test_a_projector_that_is_not_asked_for_is_not_launched(asked: ModelRequest, tmp_path: Path) -> None:
    assert asked.source.path is not None
    write_tiny_gguf(asked.source.path.with_name("mmproj-thinker.gguf"), architecture="clip")
    assert (await plan(asked, tmp_path)).projector is None


async def test_a_named_projector_that_is_a_text_model_is_refused(asked: ModelRequest, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no projector"):
        await plan(changed(asked, projector=asked.source.path), tmp_path)
