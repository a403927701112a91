"""The projector of a model of a hub (02 §12.1)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from framework.models.companions import choose_projector
from framework.models.hub.companion import Companion, resolve_companion
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.sources import HubSources
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


async def projector(sources: HubSources, model: ResolvedSource) -> Companion:
    return await resolve_companion(sources, model, choose_projector, ignore)


async def test_it_is_fetched_once_and_lies_beside_the_model(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    found = await projector(sources, model)
    assert found.path == model.main.parent / "mmproj-F16.gguf"
    hub.seen.clear()
    assert await projector(sources, model) == found
    assert hub.seen == []


async def test_a_hub_that_fails_is_a_reason_and_no_fault(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.faults.api_status = 503
    found = await projector(sources, model)
    assert found.path is None
    assert found.reason is not None
    assert (found.reason.code, found.reason.severity) == ("companion_not_fetched", "warning")


async def test_a_repository_without_one_has_none(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    for name in PROJECTORS:
        del hub.repos[REPO].files[name]
    assert await projector(sources, model) == Companion()


async def test_a_model_of_this_machine_asks_nobody(sources: HubSources, tmp_path: Path) -> None:
    local = ResolvedSource(ModelSource(path=tmp_path / "m.gguf"), tmp_path / "m.gguf", ())

    def unused(paths: Iterable[str]) -> str | None:
        raise AssertionError(paths)

    assert await resolve_companion(sources, local, unused, ignore) == Companion()
