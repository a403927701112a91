"""Drafts on a model with a running state: by copies of the state, and by decoding what stands again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.engine_pair import RunningServer, native_line, running_server
from tests.support.recurrent_models import write_hybrid_model
from tests.support.working_models import write_working_model

pytestmark = [pytest.mark.engine, pytest.mark.timeout(180)]

N_PREDICT = 120
LONGEST_FROM_TEXT = 8
DRAFTED_BY_MODEL = 3
LEAST_VARIED = 8
"""Tokens that a text has at least, so that a wrong state would show."""


@pytest.fixture(scope="module", params=["auto", "0", str(LONGEST_FROM_TEXT)])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server of the hybrid model, for each number of copies."""
    folder = tmp_path_factory.mktemp("recurrent")
    model, drafter = write_hybrid_model(folder / "hybrid.gguf"), write_working_model(folder / "drafter.gguf")
    arguments = [
        *("-c", "2048", "-np", "2", "-t", "1", "--spec-rs-snapshots", request.param),
        *("--spec-type", "draft-simple,ngram-simple", "--spec-draft-model", str(drafter)),
        *("--spec-ngram-simple-size-n", "2", "--spec-ngram-simple-size-m", str(LONGEST_FROM_TEXT)),
    ]
    with running_server(native_line(), model, folder / "log", *arguments) as running:
        yield running


@pytest.fixture
def copies(server: RunningServer) -> int:
    """Copies of the state that the server of this test keeps."""
    asked: str | int = server.get("/props").json()["speculation"]["defaults"]["rs_snapshots"]
    return DRAFTED_BY_MODEL if asked == "auto" else int(asked)


def answer(server: RunningServer, kind: str, start: int = 0, temperature: float = 0.0) -> dict[str, Any]:
    prompt = [10 + (start + 7 * number) % 200 for number in range(40)]
    body = {
        "prompt": prompt,
        "n_predict": N_PREDICT,
        "temperature": temperature,
        "seed": 5,
        "ignore_eos": True,
        "return_tokens": True,
        "cache_prompt": False,
        "speculative": {"type": kind, "adaptive": False},
    }
    found = server.post("/completion", body)
    assert found.status_code == 200, found.text
    result: dict[str, Any] = found.json()
    return result


def test_the_server_says_how_its_state_goes_back(server: RunningServer, copies: int) -> None:
    told = server.get("/props").json()["speculation"]["capabilities"]
    way = True if copies else "redecode"
    assert told == {"trim": True if copies else "no-rollback", "rs-snapshots": way}


@pytest.mark.parametrize("kind", ["draft-simple", "ngram-simple"])
def test_the_text_is_that_of_plain_decoding(server: RunningServer, copies: int, kind: str) -> None:
    ways = {"snapshot": 0, "redecode": 0}
    for start in range(4):
        plain, drafted = answer(server, "none", start), answer(server, kind, start)
        assert drafted["tokens"] == plain["tokens"]
        assert len(set(plain["tokens"])) > LEAST_VARIED
        rollbacks = drafted["speculation"]["rollbacks"]
        assert rollbacks["trim"] == rollbacks["refill"] == 0
        ways = {way: count + rollbacks[way] for way, count in ways.items()}
    longest = DRAFTED_BY_MODEL if kind == "draft-simple" else LONGEST_FROM_TEXT
    way, other = ("snapshot", "redecode") if longest <= copies else ("redecode", "snapshot")
    assert ways[way] > 0
    assert ways[other] == 0 or kind == "ngram-simple"


def test_slots_that_draft_side_by_side_do_not_disturb_each_other(server: RunningServer) -> None:
    """One drafts up to eight tokens a cycle, the other one three."""
    jobs = [("ngram-simple", 1), ("draft-simple", 2), ("draft-simple", 3), ("ngram-simple", 4)]
    wanted = [answer(server, "none", start)["tokens"] for _, start in jobs]
    with ThreadPoolExecutor(2) as pool:
        found = [one["tokens"] for one in pool.map(lambda job: answer(server, *job), jobs)]
    assert found == wanted


def test_drafts_by_chance_are_taken_back_as_well(server: RunningServer) -> None:
    report = answer(server, "draft-simple", temperature=0.9)["speculation"]
    assert report["verify_mode"] == "rejection"
    assert report["drafts"] > 20
    assert report["rollbacks"]["refill"] == 0
