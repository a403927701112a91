"""The fake engine's speculation: what each era accepts, and whether its slots can draft (15 §3)."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fake_engine.eras import Name
from tests.support.fake_children import Launch


@pytest.mark.parametrize(
    ("era", "line", "drafts"),
    [
        pytest.param("new", "", False, id="nothing"),
        pytest.param("new", "--spec-type none", False, id="none"),
        pytest.param("new", "--spec-default", True, id="default"),
        pytest.param("new", "--spec-type ngram-simple --spec-type none", True, id="types add up"),
        pytest.param("new", "--spec-type none,ngram-mod", False, id="none inside a value"),
        pytest.param("new", "--spec-type draft-mtp", True, id="head"),
        pytest.param("new", "--spec-type draft-simple -md FILE", True, id="drafter"),
        pytest.param("new", "-md FILE", False, id="a drafter alone does nothing"),
        pytest.param("new", "--spec-type draft-eagle3", False, id="silent without a drafter"),
        pytest.param("old", "-md FILE", True, id="a drafter alone drafted once"),
        pytest.param("newest", "-md FILE", True, id="and does again"),
        pytest.param("renamed", "--spec-type draft -md FILE", True, id="word of then"),
        pytest.param("fork", "--spec-type mtp:n_max=1,p_min=0.0", True, id="settings behind a type"),
    ],
)
def test_whether_slots_can_draft(launch: Launch, tiny_gguf: Path, era: Name, line: str, drafts: bool) -> None:
    child = launch(*line.replace("FILE", str(tiny_gguf)).split(), help=era)
    assert {slot["speculative"] for slot in child.get("/slots").json()} == {drafts}


@pytest.mark.parametrize(
    ("era", "line", "script", "status", "words"),
    [
        pytest.param("new", "--spec-type mtp", {}, 1, "unknown speculative type: mtp", id="unknown type"),
        pytest.param("old", "--spec-type ngram-mod,ngram-simple", {}, 1, "unknown", id="no lists yet"),
        pytest.param(
            "fork", "--nonsense", {}, 1, "error: unknown argument: --nonsense", id="words of a fork"
        ),
        pytest.param(
            "new",
            "--spec-type draft-mtp",
            {"has_head": False},
            1,
            "failed to create MTP context",
            id="no head",
        ),
        pytest.param(
            "new",
            "--spec-type draft-simple -md /nowhere.gguf",
            {},
            1,
            "failed to load draft model, '/nowhere.gguf'",
            id="no such drafter",
        ),
        pytest.param("new", "--spec-type draft-simple", {}, -signal.SIGSEGV, "", id="no drafter at all"),
    ],
)
def test_how_a_start_ends(
    launch: Launch, era: Name, line: str, script: dict[str, Any], status: int, words: str
) -> None:
    ended, errors = launch(*line.split(), healthy=False, help=era, **script).finish()
    assert ended == status
    assert words in errors


def test_drafts_are_named_in_timings_only_where_there_were_any(launch: Launch) -> None:
    child = launch("--spec-default", drafted=10, accepted=4, drafting_token_ms=2.0)
    timings = child.chat().json()["timings"]
    assert (timings["draft_n"], timings["draft_n_accepted"], timings["predicted_ms"]) == (10, 4, 16.0)
    assert "draft_n" not in launch(drafted=10).chat().json()["timings"]


@pytest.mark.parametrize(
    ("line", "status"), [("--spec-default", 7), ("--spec-type ngram-mod", 0)], ids=["meets", "avoids"]
)
def test_a_fault_depends_on_the_line(launch: Launch, line: str, status: int) -> None:
    fault = {"on": ["--spec-default"], "exit_code": 7, "stderr": ["the last words"]}
    child = launch(*line.split(), faults=[fault], healthy=status == 0)
    if status == 0:
        child.process.terminate()
    ended, errors = child.finish()
    assert (ended, "the last words" in errors) == (status, status != 0)


def test_a_fault_may_wait_for_a_request(launch: Launch) -> None:
    child = launch(faults=[{"at_request": 1, "exit_signal": "SIGABRT"}])
    with pytest.raises(Exception, match="disconnected"):
        child.chat()
    assert child.finish()[0] == -signal.SIGABRT
