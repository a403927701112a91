"""`paddock plan --measure` of a model whose drafter is not downloaded: planned by its header (13 §3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Paddock
from tests.support.hub_stand_in import HubStandIn

MIB = 2**20
REPO, FILE = "org/Draft-GGUF", "Draft-Q4_1.gguf"
SOURCE = f"hf:{REPO}:Q4_1"


@pytest.fixture
def hub(smollm2: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A stand-in with a small model, which is mostly a hole, and empty caches."""
    with smollm2.open("rb") as file:
        head = file.read(4 * MIB)
    with HubStandIn() as stand_in:
        stand_in.add(REPO, {FILE: head}, holes={FILE: smollm2.stat().st_size - len(head)})
        monkeypatch.setenv("HF_ENDPOINT", stand_in.url)
        monkeypatch.setenv("HF_HOME", str(place / "hf"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(place / "xdg"))
        yield stand_in


def declare(place: Path, engine: Path, source: str) -> None:
    """A model that drafts with the stand-in's."""
    (place / "serve.toml").write_text(
        f'[engines.default]\nbinary = "{engine}"\n'
        f'[speculation.s]\nmode = "draft"\ndraft = "{SOURCE}"\n'
        f'[models.m]\nsource = "{source}"\ncontext = 4096\nspeculation = "s"\n'
    )


def reasons(instance: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [reason for reason in instance["reasons"] if reason["code"] == code]


@pytest.mark.engine
def test_a_drafter_is_planned_by_its_header_and_named_where_it_will_lie(
    paddock: Paddock, hub: HubStandIn, place: Path, engine_binary: Path, smollm2: Path
) -> None:
    declare(place, engine_binary, str(smollm2))
    (instance,) = paddock("plan", "--measure", "--json").json["instances"]
    (reason,) = reasons(instance, "headers_only")
    assert SOURCE in reason["message"]
    assert "the drafter has" in reason["message"]
    assert (reason["evidence"]["drafts"], reason["evidence"]["total_bytes"]) == (
        True,
        smollm2.stat().st_size,
    )
    future = place / "hf" / "hub" / "models--org--Draft-GGUF" / "snapshots" / ("a" * 40) / FILE
    assert instance["argv"][instance["argv"].index("--model-draft") + 1] == str(future)
    assert "drafter_weights" in {line["label"] for line in instance["fit"]["lines"]}
    assert not (place / "hf").exists()


@pytest.mark.engine
def test_a_model_that_drafts_for_itself_is_named_as_both(
    paddock: Paddock, hub: HubStandIn, place: Path, engine_binary: Path
) -> None:
    declare(place, engine_binary, SOURCE)
    refused = paddock("plan", "--json").json["instances"][0]["reasons"][0]
    assert refused["message"] == f"{SOURCE} is not downloaded yet."
    (instance,) = paddock("plan", "--measure", "--json").json["instances"]
    assert [reason["evidence"]["drafts"] for reason in reasons(instance, "headers_only")] == [False, True]


@pytest.mark.engine
def test_a_drafter_whose_header_cannot_be_had_is_left_out_with_the_reason(
    paddock: Paddock, hub: HubStandIn, place: Path, engine_binary: Path, smollm2: Path
) -> None:
    hub.repos.clear()
    declare(place, engine_binary, str(smollm2))
    (instance,) = paddock("plan", "--measure", "--json").json["instances"]
    assert "--model-draft" not in instance["argv"]
    assert "companion_not_fetched" in str(instance)
