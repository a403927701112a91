"""The projector and the drafter of a model of a hub (02 §12.1, §12.5)."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from framework.models.hub.companion import (
    DRAFTER,
    PATIENCE_S,
    PROJECTOR,
    SHORT_PATIENCE_S,
    with_cached,
    with_companion,
    with_named_drafter,
)
from framework.models.hub.facts import ResolvedSource
from framework.models.hub.pins import FOLDER, ask_again
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
    found = await with_companion(PROJECTOR, sources, model, shown.append)
    assert found.projector == model.main.parent / "mmproj-F16.gguf"
    assert found.fetched_bytes == model.fetched_bytes + found.projector.stat().st_size
    assert shown[-1].file == "mmproj-F16.gguf"
    hub.seen.clear()
    again = await with_companion(PROJECTOR, sources, replace(model, fetched_bytes=0), ignore)
    assert (again.projector, again.fetched_bytes) == (found.projector, 0)
    assert with_cached(PROJECTOR, sources, model).projector == found.projector
    assert hub.seen == []


async def test_a_hub_that_fails_is_a_note_and_no_fault(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.faults.api_status = 503
    found = await with_companion(PROJECTOR, sources, model, ignore)
    assert found.projector is None
    (note,) = found.notes
    assert (note.code, note.severity) == ("companion_not_fetched", "warning")


async def test_a_repository_without_one_is_asked_once(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    withdraw(hub)
    assert await with_companion(PROJECTOR, sources, model, ignore) == model
    hub.seen.clear()
    assert await with_companion(PROJECTOR, sources, model, ignore) == model
    assert with_cached(PROJECTOR, sources, model) == model
    assert hub.seen == []


async def test_when_the_hub_cannot_be_asked_one_of_another_commit_serves(
    sources: HubSources, environ: dict[str, str], hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.repos[REPO].commit = "b" * 40
    old = await with_companion(PROJECTOR, sources, model, ignore)
    assert old.projector is not None
    assert old.projector.parent.name == "b" * 40
    offline = HubSources({**environ, "HF_HUB_OFFLINE": "1"})
    assert (await with_companion(PROJECTOR, offline, model, ignore)).projector == old.projector
    assert with_cached(PROJECTOR, sources, model).projector == old.projector


async def test_one_that_the_repository_no_longer_offers_belongs_to_other_weights(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.repos[REPO].commit = "b" * 40
    await with_companion(PROJECTOR, sources, model, ignore)
    withdraw(hub)
    assert (await with_companion(PROJECTOR, sources, model, ignore)).projector is None
    assert with_cached(PROJECTOR, sources, model).projector is None


async def test_a_model_of_this_machine_asks_nobody(
    sources: HubSources, hub: HubStandIn, tmp_path: Path
) -> None:
    local = ResolvedSource(ModelSource(path=tmp_path / "m.gguf"), tmp_path / "m.gguf", ())
    assert await with_companion(PROJECTOR, sources, local, ignore) == local
    assert with_cached(PROJECTOR, sources, local) == local
    assert hub.seen == []


def days_later(model: ResolvedSource, days: float = 2.0) -> None:
    """What was found out about the repository becomes that old."""
    at_s = datetime.now(UTC).timestamp() - days * 24 * 3600
    for note in model.main.parents[2].glob(f"{FOLDER}/*"):
        os.utime(note, (at_s, at_s))


@pytest.mark.parametrize("days", [2.0, -2.0], ids=["a day later", "after a clock went wrong"])
async def test_one_that_was_published_later_is_found(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource, days: float
) -> None:
    files = {name: hub.repos[REPO].files[name] for name in PROJECTORS}
    withdraw(hub)
    assert await with_companion(PROJECTOR, sources, model, ignore) == model
    hub.repos[REPO].files.update(files)
    assert (await with_companion(PROJECTOR, sources, model, ignore)).projector is None
    days_later(model, days)
    found = await with_companion(PROJECTOR, sources, model, ignore)
    assert found.projector is not None
    assert with_cached(PROJECTOR, sources, model).projector == found.projector


async def test_one_that_is_still_not_there_is_left_alone_for_another_day(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    withdraw(hub)
    await with_companion(PROJECTOR, sources, model, ignore)
    days_later(model)
    assert await with_companion(PROJECTOR, sources, model, ignore) == model
    hub.seen.clear()
    assert await with_companion(PROJECTOR, sources, model, ignore) == model
    assert hub.seen == []


async def test_when_the_hub_cannot_be_asked_again_nothing_changes_and_nothing_is_said(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.repos[REPO].commit = "b" * 40
    await with_companion(PROJECTOR, sources, model, ignore)
    withdraw(hub)
    await with_companion(PROJECTOR, sources, model, ignore)
    days_later(model)
    hub.faults.api_status = 503
    assert await with_companion(PROJECTOR, sources, model, ignore) == model
    assert with_cached(PROJECTOR, sources, model) == model


# Drafters

DRAFTER_FILE = "mtp-Tiny.gguf"


def add_drafters(hub: HubStandIn, tmp_path: Path) -> None:
    """The repository offers two, of which the one in a folder is for explicit selection."""
    for name in ("MTP/mtp-A.gguf", DRAFTER_FILE):
        hub.repos[REPO].files[name] = gguf_bytes(tmp_path, name=name)


async def test_a_drafter_is_fetched_once_and_lies_beside_the_model(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource, tmp_path: Path
) -> None:
    add_drafters(hub, tmp_path)
    found = await with_companion(DRAFTER, sources, model, ignore)
    assert found.drafter == model.main.parent / DRAFTER_FILE
    assert found.fetched_bytes == model.fetched_bytes + found.drafter.stat().st_size
    hub.seen.clear()
    assert (await with_companion(DRAFTER, sources, model, ignore)).drafter == found.drafter
    assert with_cached(DRAFTER, sources, model).drafter == found.drafter
    assert hub.seen == []


async def test_that_there_is_no_drafter_is_kept_apart_from_that_there_is_no_projector(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    assert await with_companion(DRAFTER, sources, model, ignore) == model
    hub.seen.clear()
    assert await with_companion(DRAFTER, sources, model, ignore) == model
    assert hub.seen == []
    assert (await with_companion(PROJECTOR, sources, model, ignore)).projector is not None


@pytest.mark.parametrize("is_expected", [True, False])
async def test_a_hub_that_fails_is_a_note_where_a_drafter_is_expected(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource, is_expected: bool
) -> None:
    hub.faults.api_status = 503
    found = await with_companion(DRAFTER, sources, model, ignore, is_expected=is_expected)
    codes = [note.code for note in found.drafter_notes]
    assert (found.drafter, found.notes) == (None, ())
    assert codes == (["companion_not_fetched"] if is_expected else [])


async def test_one_that_is_offered_and_cannot_be_had_is_a_note_whether_expected_or_not(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource, tmp_path: Path
) -> None:
    add_drafters(hub, tmp_path)
    hub.faults.content_status = 403
    found = await with_companion(DRAFTER, sources, model, ignore, is_expected=False)
    assert [note.code for note in found.drafter_notes] == ["companion_not_fetched"]


async def test_a_drafter_of_a_later_commit_serves_offline_too_once_it_was_found(
    sources: HubSources, environ: dict[str, str], hub: HubStandIn, model: ResolvedSource, tmp_path: Path
) -> None:
    assert await with_companion(DRAFTER, sources, model, ignore) == model
    add_drafters(hub, tmp_path)
    hub.repos[REPO].commit = "b" * 40
    ask_again(model.main)
    found = await with_companion(DRAFTER, sources, model, ignore)
    assert found.drafter is not None
    assert found.drafter.parent.name == "b" * 40
    offline = HubSources({**environ, "HF_HUB_OFFLINE": "1"})
    assert (await with_companion(DRAFTER, offline, model, ignore)).drafter == found.drafter


async def test_a_hub_that_hangs_is_not_waited_for_long(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    hub.faults.api_drip_s = 0.5
    hasty = replace(DRAFTER, patience_s=0.2)
    found = await with_companion(hasty, sources, model, ignore)
    (note,) = found.drafter_notes
    assert "did not come within" in note.message
    assert SHORT_PATIENCE_S < PATIENCE_S


async def test_offline_a_drafter_of_another_commit_serves(
    sources: HubSources, environ: dict[str, str], hub: HubStandIn, model: ResolvedSource, tmp_path: Path
) -> None:
    add_drafters(hub, tmp_path)
    hub.repos[REPO].commit = "b" * 40
    old = await with_companion(DRAFTER, sources, model, ignore)
    offline = HubSources({**environ, "HF_HUB_OFFLINE": "1"})
    found = await with_companion(DRAFTER, offline, model, ignore)
    assert found.drafter is not None
    assert found.drafter == old.drafter
    assert found.drafter_notes == ()


async def test_a_drafter_that_is_named_is_fetched_for_a_model_of_this_machine(
    sources: HubSources, hub: HubStandIn, tmp_path: Path
) -> None:
    data = gguf_bytes(tmp_path)
    hub.add("org/Small-GGUF", {"Small-Q8_0.gguf": data})
    named = variant("Q8_0", "org/Small-GGUF")
    local = ResolvedSource(ModelSource(path=tmp_path / "m.gguf"), tmp_path / "m.gguf", ())
    found = await with_named_drafter(sources, local, named, ignore)
    assert found.drafter is not None
    assert found.drafter.name == "Small-Q8_0.gguf"
    assert (found.drafter_source, found.fetched_bytes, found.from_cache) == (named, len(data), False)


async def test_a_drafter_that_is_named_and_cannot_be_had_is_a_note(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource
) -> None:
    found = await with_named_drafter(sources, model, variant("Q8_0", "org/none"), ignore)
    (note,) = found.drafter_notes
    assert (found.drafter, found.main) == (None, model.main)
    assert (note.code, note.evidence["cause"]) == ("companion_not_fetched", "model_missing")
    assert "hf:org/none:Q8_0" in note.message


async def test_a_file_in_a_folder_of_drafters_can_be_named(
    sources: HubSources, hub: HubStandIn, model: ResolvedSource, tmp_path: Path
) -> None:
    add_drafters(hub, tmp_path)
    found = await with_named_drafter(sources, model, ModelSource(repo=REPO, file="MTP/mtp-A.gguf"), ignore)
    assert found.drafter is not None
    assert found.drafter.parts[-2:] == ("MTP", "mtp-A.gguf")
