"""`/metrics` over a real engine, read as Prometheus does, and the dashboard made for it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import chat, engine_table, model_table
from tests.support.paddock import RunningPaddock
from tests.support.scrapes import Samples, samples, scrape

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana-dashboard.json"
METRIC = re.compile(r"\b(?:paddock_|llamacpp:|process_)[a-z0-9_]+")
PART = re.compile(r"_(?:bucket|sum|count)$")


def names(text: str) -> set[str]:
    """All metrics that a scrape knows of."""
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


def queried() -> set[str]:
    """All metrics that the dashboard asks for."""
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    targets = [target["expr"] for panel in document["panels"] for target in panel.get("targets", ())]
    variables = [one["query"]["query"] for one in document["templating"]["list"] if one["type"] == "query"]
    return {name for text in (*targets, *variables) for name in METRIC.findall(text)}


@pytest.mark.engine
def test_one_scrape_has_everything_that_the_dashboard_asks_for(
    paddock_up: StartPaddock, engine_binary: Path, smollm2: Path
) -> None:
    tables = model_table("smol", smollm2, speculation="drafts") + model_table(
        "cold", smollm2, load="on-demand"
    )
    policy = '[speculation.drafts]\nmode = "ngram"\n'
    paddock = paddock_up(engine_table(engine_binary) + policy + tables)
    paddock.wait_state("smol", "ready")
    for _ in range(2):
        assert chat(paddock, "smol", max_tokens=16).status_code == 200
    assert chat(paddock, "nobody").status_code == 404
    found: Samples = {}

    def engine_has_spoken() -> bool:
        found.clear()
        found.update(samples(scrape(paddock)))
        return "llamacpp:tokens_predicted_total" in found

    paddock.wait(engine_has_spoken, 30, "the engine's own metrics")
    known = names(scrape(paddock))
    asked = {name if name in known else PART.sub("", name) for name in queried()}
    assert asked - known == set()

    who = {"model": "smol", "replica": "0"}
    ((labels, predicted),) = found["llamacpp:tokens_predicted_total"]
    assert labels == who
    ((_, generated),) = found["paddock_generated_tokens_total"]
    # The engine counts the few tokens of its health check besides.
    assert 0 < generated <= predicted
    assert {labels["model"]: value for labels, value in found["paddock_model_up"]} == {"smol": 1, "cold": 0}
    assert ({"model": "smol", "outcome": "ready"}, 1.0) in found["paddock_loads_total"]
    assert found["paddock_first_token_seconds_count"] == [({"model": "smol"}, 2.0)]
    assert ({"model": "", "key": "", "code": "model_not_found"}, 1.0) in found["paddock_request_errors_total"]
    assert any(labels["model"] == "smol" for labels, value in found["paddock_model_allocated_bytes"] if value)
    assert any(labels["model"] == "smol" for labels, value in found["paddock_model_planned_bytes"] if value)
    assert found["paddock_speculation_requests_total"][0][1] == 2.0


PAGES = ("/", "/pools", "/speculation", "/requests", "/models/idle", "/models/cold")
HISTORIES = ("/requests", "/history", "/models/idle/history", "/models/cold/history")


def look(paddock: RunningPaddock) -> None:
    """Open every page that draws the last hour, and read the same as JSON."""
    for path in PAGES:
        assert httpx.get(paddock.base_url + path, timeout=30, trust_env=False).status_code == 200, path
    for path in HISTORIES:
        assert paddock.api("GET", path).status_code == 200, path


def test_looking_neither_loads_nor_keeps_awake(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    tables = model_table("idle", tiny_gguf, load="on-demand", unload_after="2s")
    tables += model_table("cold", tiny_gguf, load="on-demand")
    paddock = paddock_up(engine_table(fake_engine()) + tables)
    assert chat(paddock, "idle").status_code == 200

    def unloaded() -> bool:
        look(paddock)
        return {labels["model"]: value for labels, value in samples(scrape(paddock))["paddock_model_up"]} == {
            "idle": 0,
            "cold": 0,
        }

    paddock.wait(unloaded, 30, "the idle model to be unloaded although somebody looks")
    assert paddock.pids() == {}


def test_an_engine_that_does_not_answer_is_marked_and_holds_nobody_up(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine(hang=["/metrics"])) + model_table("mute", tiny_gguf))
    paddock.wait_state("mute", "ready")
    found = samples(scrape(paddock))
    assert found["paddock_engine_metrics_stale"] == [({"model": "mute", "replica": "0"}, 1.0)]
    assert "paddock_engine_metrics_age_seconds" not in found


def test_the_dashboard_is_whole() -> None:
    document: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = [panel for panel in document["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
    assert all(panel["title"] and panel["targets"] for panel in panels)
    assert {panel["fieldConfig"]["defaults"]["unit"] for panel in panels}
