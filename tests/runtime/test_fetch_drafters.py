"""Which drafter a request gets: named, of its repository, or none, and what is said of it (05 §5.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from framework.models.hub.sources import HubSources
from framework.models.hub.wire import Patience
from framework.runtime.fetching import fetch_files, hub_sources, local_files
from framework.values.reason import Refused
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from tests.support.hub_stand_in import HubStandIn
from tests.support.model_files import write_tiny_gguf

REPO, GEMMA, DRAFTS = "org/Tiny-GGUF", "org/gemma-4-E2B-GGUF", "org/Draft-GGUF"
NAMED = ModelSource(repo=DRAFTS, variant="Q4_0")
DRAFTER_FILE = "mtp-Tiny.gguf"
HUB_MODEL = ModelRequest("m", ModelSource(repo=REPO, variant="Q8_0"))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubStandIn]:
    """A stand-in with two models that have a drafter beside them, and one that drafts for others."""
    data = write_tiny_gguf(tmp_path / "made.gguf").read_bytes()
    with HubStandIn() as stand_in:
        for repo in (REPO, GEMMA):
            stand_in.add(repo, {"Tiny-Q8_0.gguf": data, DRAFTER_FILE: data})
        stand_in.add(DRAFTS, {"Draft-Q4_0.gguf": data})
        yield stand_in


@pytest.fixture
def sources(hub: HubStandIn, tmp_path: Path) -> HubSources:
    """Sources with an empty cache and no patience."""
    environ = {"PATH": "/usr/bin", "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url, "NO_PROXY": "*"}
    return HubSources(environ, patience=Patience(retry_waits_s=()))


def ignore(_: object) -> None:
    pass


def asking(request: ModelRequest, mode: str, *args: str, drafter: ModelSource | None = None) -> ModelRequest:
    return replace(request, spec=SpecPolicy(mode, drafter=drafter), extra_args=args)


def local(tmp_path: Path) -> ModelRequest:
    return ModelRequest("m", ModelSource(path=write_tiny_gguf(tmp_path / "m.gguf")))


@pytest.mark.parametrize("mode", ["auto", "mtp", "mtp+ngram"])
async def test_a_head_mode_takes_the_drafter_of_the_repository(
    sources: HubSources, hub: HubStandIn, mode: str
) -> None:
    request = asking(HUB_MODEL, mode)
    found = await fetch_files(sources, request, ignore)
    assert found.drafter == found.main.with_name(DRAFTER_FILE)
    hub.seen.clear()
    assert local_files(sources, request).drafter == found.drafter
    assert hub.seen == []


@pytest.mark.parametrize(
    ("mode", "args"),
    [
        ("off", ()),
        ("ngram", ()),
        ("ngram-simple", ()),
        ("draft", ()),
        ("eagle3", ()),
        ("auto", ("--spec-type", "ngram-mod")),
        ("mtp", ("--spec-default",)),
    ],
)
async def test_other_modes_and_users_who_drive_it_themselves_ask_nobody(
    sources: HubSources, hub: HubStandIn, mode: str, args: tuple[str, ...]
) -> None:
    await sources.resolve_source(HUB_MODEL.source)
    hub.seen.clear()
    found = await fetch_files(sources, asking(HUB_MODEL, mode, *args), ignore)
    assert (found.drafter, found.drafter_notes, hub.seen) == (None, (), [])


async def test_a_local_model_has_only_the_drafter_that_is_named(
    sources: HubSources, hub: HubStandIn, tmp_path: Path
) -> None:
    request = local(tmp_path)
    write_tiny_gguf(tmp_path / DRAFTER_FILE)
    assert (await fetch_files(sources, request, ignore)).drafter is None
    found = await fetch_files(sources, asking(request, "draft", drafter=NAMED), ignore)
    assert found.drafter is not None
    assert found.drafter.name == "Draft-Q4_0.gguf"


async def test_a_named_drafter_keeps_the_repository_from_being_asked(
    sources: HubSources, hub: HubStandIn
) -> None:
    found = await fetch_files(sources, asking(HUB_MODEL, "auto", drafter=NAMED), ignore)
    assert found.drafter is not None
    assert found.drafter.name == "Draft-Q4_0.gguf"
    assert found.drafter_source == NAMED


async def test_a_user_who_drives_it_himself_gets_no_named_drafter_either(
    sources: HubSources, hub: HubStandIn, tmp_path: Path
) -> None:
    request = asking(local(tmp_path), "draft", "--spec-type", "draft-simple", drafter=NAMED)
    assert hub_sources(request) == ()
    assert (await fetch_files(sources, request, ignore)).drafter is None
    assert hub.seen == []


def test_what_has_to_be_fetched_is_the_model_and_the_drafter(tmp_path: Path) -> None:
    of_hub = asking(HUB_MODEL, "draft", drafter=NAMED)
    of_paths = asking(local(tmp_path), "draft", drafter=ModelSource(path=tmp_path / "d.gguf"))
    assert hub_sources(of_hub) == (HUB_MODEL.source, NAMED)
    assert hub_sources(asking(local(tmp_path), "draft", drafter=NAMED)) == (NAMED,)
    assert hub_sources(of_paths) == ()


async def test_a_plan_says_that_a_named_drafter_is_not_here_and_how_it_comes(
    sources: HubSources, hub: HubStandIn, tmp_path: Path
) -> None:
    request = asking(local(tmp_path), "draft", drafter=NAMED)
    found = local_files(sources, request)
    (note,) = found.drafter_notes
    assert (found.drafter, note.code, hub.seen) == (None, "drafter_not_downloaded", [])
    assert f"hf:{DRAFTS}:Q4_0" in note.message
    assert "paddock pull m" in note.remedy
    await fetch_files(sources, request, ignore)
    again = local_files(sources, request)
    assert again.drafter is not None
    assert again.drafter_notes == ()


def test_a_refusal_names_everything_that_would_be_fetched(sources: HubSources) -> None:
    with pytest.raises(Refused) as caught:
        local_files(sources, asking(HUB_MODEL, "draft", drafter=NAMED))
    reason = caught.value.failure.reason
    assert reason.code == "model_missing"
    assert f"hf:{REPO}:Q8_0 and hf:{DRAFTS}:Q4_0 are not downloaded yet" in reason.message


@pytest.mark.parametrize(
    ("repo", "mode", "codes"),
    [
        (GEMMA, "auto", ["drafter_not_downloaded"]),
        (REPO, "mtp", ["drafter_not_downloaded"]),
        (REPO, "auto", []),
    ],
)
async def test_a_plan_promises_a_look_only_where_a_drafter_is_expected(
    sources: HubSources, repo: str, mode: str, codes: list[str]
) -> None:
    request = asking(replace(HUB_MODEL, source=ModelSource(repo=repo, variant="Q8_0")), mode)
    await sources.resolve_source(request.source)
    assert [note.code for note in local_files(sources, request).drafter_notes] == codes


async def test_a_repository_that_has_none_is_not_promised_again(sources: HubSources, hub: HubStandIn) -> None:
    request = asking(HUB_MODEL, "mtp")
    del hub.repos[REPO].files[DRAFTER_FILE]
    assert (await fetch_files(sources, request, ignore)).drafter is None
    assert local_files(sources, request).drafter_notes == ()


@pytest.mark.parametrize(("by_command", "name"), [(False, None), (True, DRAFTER_FILE)])
async def test_one_that_was_published_since_is_asked_for_when_a_person_wants_the_files(
    sources: HubSources, hub: HubStandIn, by_command: bool, name: str | None
) -> None:
    request = asking(HUB_MODEL, "mtp")
    published = hub.repos[REPO].files.pop(DRAFTER_FILE)
    await fetch_files(sources, request, ignore)
    hub.repos[REPO].files[DRAFTER_FILE] = published
    found = await fetch_files(sources, request, ignore, by_command=by_command)
    assert (None if found.drafter is None else found.drafter.name) == name
