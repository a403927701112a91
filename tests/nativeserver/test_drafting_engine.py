"""Drafting and the loop guard of the native engine, on a real model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine_pair import RunningServer, native_line, running_server

pytestmark = [pytest.mark.engine, pytest.mark.timeout(180)]

LIST = "".join(f"{{'name': 'item', 'price': 10, 'count': {number % 3}}},\n" for number in range(12))
PROMPT = f"A list, and then the same list once more, unchanged.\n{LIST}\nThe same list:\n{LIST[:120]}"


@pytest.fixture(scope="module")
def server(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that drafts from the text, and by the model itself where a request asks for it."""
    log = tmp_path_factory.mktemp("drafting") / "log"
    drafters = ("--spec-type", "ngram-simple,ngram-mod,draft-simple", "--spec-draft-model", str(smollm2))
    lengths = (
        "--spec-ngram-simple-size-n",
        "4",
        "--spec-ngram-simple-size-m",
        "16",
        "--spec-draft-n-max",
        "4",
    )
    arguments = ("-c", "4096", "-np", "2", "-t", "1", "--metrics", *drafters, *lengths)
    with running_server(native_line(), smollm2, log, *arguments) as running:
        yield running


def completion(server: RunningServer, **fields: Any) -> dict[str, Any]:
    """A whole answer at temperature 0, unless the fields say otherwise."""
    body = {"prompt": PROMPT, "n_predict": 96, "temperature": 0, "return_tokens": True, **fields}
    answer = server.post("/completion", body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("kind", ["ngram-simple", "draft-simple"])
@pytest.mark.parametrize("is_adaptive", [True, False], ids=["adaptive", "fixed"])
def test_the_text_is_that_of_plain_decoding(server: RunningServer, kind: str, is_adaptive: bool) -> None:
    plain = completion(server, **{"speculative.type": "none"})
    drafted = completion(server, speculative={"type": kind, "adaptive": is_adaptive})
    assert drafted["tokens"] == plain["tokens"]
    assert plain["speculation"]["drafts"] == 0
    assert drafted["speculation"]["types"] == [kind]


@pytest.mark.parametrize("kind", ["ngram-simple", "draft-simple"])
def test_drafts_are_accepted_and_told(server: RunningServer, kind: str) -> None:
    report = completion(server, speculative={"type": kind, "adaptive": False})["speculation"]
    assert report["active_type"] == kind
    assert report["accepted"] > 20
    assert report["acceptance"] == pytest.approx(report["accepted"] / report["drafted"], abs=0.001)
    assert report["drafted_by_position"][0] == report["drafts"]
    assert len(report["drafted_by_position"]) == len(report["accepted_by_position"])


def test_drafts_by_chance_keep_the_seed(server: RunningServer) -> None:
    fields = {"temperature": 0.8, "seed": 7, "speculative": {"type": "draft-simple", "adaptive": False}}
    first = completion(server, cache_prompt=False, **fields)
    second = completion(server, cache_prompt=False, **fields)
    assert first["speculation"]["verify_mode"] == "rejection"
    assert first["speculation"]["verify_counts"]["prob_accept"] > 0
    assert first["tokens"] == second["tokens"]


def test_counts_of_the_server_are_those_of_its_requests(server: RunningServer) -> None:
    def total() -> int:
        lines = server.get("/metrics").text.splitlines()
        line = next(
            line for line in lines if "spec_decode_num_draft_tokens_total " in line and line[0] != "#"
        )
        return int(float(line.split()[-1]))

    before = total()
    report = completion(server, speculative={"type": "ngram-simple", "adaptive": False})["speculation"]
    assert total() - before == report["drafted"] > 0


def test_a_loop_is_stopped_and_other_text_is_not(server: RunningServer) -> None:
    guard = {
        "mode": "stop",
        "min_reasoning_tokens": 64,
        "window_tokens": 64,
        "max_period": 16,
        "min_repeated_coverage": 48,
        "check_interval": 8,
    }
    loops = completion(
        server,
        prompt="yes, yes, yes, yes, yes, yes, yes, yes,",
        n_predict=400,
        ignore_eos=True,
        reasoning_loop_guard=guard,
    )
    assert (loops["stop_type"], loops["stop_detail"]) == ("limit", "loop_guard")
    assert loops["tokens_predicted"] < 200
    assert loops["loop_guard"]["triggered"]
    prose = completion(
        server, prompt="Once upon a time", temperature=0.9, seed=3, n_predict=150, reasoning_loop_guard=guard
    )
    assert not prose["loop_guard"]["triggered"]


def test_slots_show_what_the_controller_knows(server: RunningServer) -> None:
    completion(server, speculative={"type": "ngram-simple"})
    slots = server.get("/slots").json()
    told = [slot["speculation"] for slot in slots if slot["speculation"]["active_type"] == "ngram-simple"]
    assert told[0]["controller"] == "profit"
    assert told[0]["depth_state"] in {"on", "off", "probe", "warmup", "unset"}
    assert told[0]["depth_base"] == 16
