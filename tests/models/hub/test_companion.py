"""The projector of a model of a hub (02 §12.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from framework.models.hub.companion import with_cached_projector, with_projector
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.sources import HubSources
from framework.values.instance import LoadProgress
from framework.values.request import ModelSource
from tests.models.hub.conftest import REPO, gguf_bytes, variant
from tests.support.hub_stand_in import HubStandIn

PROJECTORS = ("mmproj-F16.gguf", "mmproj-BF16.gguf")


@pytest.fixture
async def model(sources: HubSources, hub: HubStandIn, tmp_path: Path) -> ResolvedSource:
    """A fetched model of a repository with projectors."""
    files = {name: gguf_bytes(tmp_path, name=name) for name in ("Tiny-Q8_0.gguf", *PROJECTORS)}
    hub.add(REPO, files)
    return await sources.resolve_source(variant("Q8_0"))


def ignore(_: object) -> None:
    pass


def withdraw(hub: HubStandIn) -> None:
    """The repository offers no projector any more."""
    for name in PROJECTORS:
        del hub.repos[REPO].files[name]


async def test_it_is_fetched_once_and_lies_beside_the_model(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    shown: list[LoadProgress] = []
    found = await with_projector(sources, model, shown.append)
    assert found.projector == model.main.parent / "mmproj-F16.gguf"
    assert found.fetched_bytes == model.fetched_bytes + found.projector.stat().st_size
    assert shown[-1].file == "mmproj-F16.gguf"
    hub.seen.clear()
    again = await with_projector(sources, replace(model, fetched_bytes=0), ignore)
    assert (again.projector, again.fetched_bytes) == (found.projector, 0)
    assert with_cached_projector(sources, model).projector == found.projector
    assert hub.seen == []


async def test_a_hub_that_fails_is_a_note_and_no_fault(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.faults.api_status = 503
    found = await with_projector(sources, model, ignore)
    assert found.projector is None
    (note,) = found.notes
    assert (note.code, note.severity) == ("companion_not_fetched", "warning")


async def test_a_repository_without_one_is_asked_once(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    withdraw(hub)
    assert await with_projector(sources, model, ignore) == model
    hub.seen.clear()
    assert await with_projector(sources, model, ignore) == model
    assert with_cached_projector(sources, model) == model
    assert hub.seen == []


async def test_when_the_hub_cannot_be_asked_one_of_another_commit_serves(
    sources: HubSources, environ: dict[str, str], hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.repos[REPO].commit = "b" * 40
    old = await with_projector(sources, model, ignore)
    assert old.projector is not None
    assert old.projector.parent.name == "b" * 40
    offline = HubSources({**environ, "HF_HUB_OFFLINE": "1"})
    assert (await with_projector(offline, model, ignore)).projector == old.projector
    assert with_cached_projector(sources, model).projector == old.projector


async def test_one_that_the_repository_no_longer_offers_belongs_to_other_weights(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.repos[REPO].commit = "b" * 40
    await with_projector(sources, model, ignore)
    withdraw(hub)
    assert (await with_projector(sources, model, ignore)).projector is None
    assert with_cached_projector(sources, model).projector is None


async def test_a_model_of_this_machine_asks_nobody(
    sources: HubSources, hub: HubStandIn, tmp_path: Path
) -> None:
    local = ResolvedSource(ModelSource(path=tmp_path / "m.gguf"), tmp_path / "m.gguf", ())
    assert await with_projector(sources, local, ignore) == local
    assert with_cached_projector(sources, local) == local
    assert hub.seen == []
