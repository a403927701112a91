"""Reduced verification of the native engine on a real model: the same text as by whole rows (11 §11)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine_pair import RunningServer, native_line, running_server

pytestmark = [pytest.mark.engine, pytest.mark.timeout(180)]

LIST = "".join(f"{{'name': 'item', 'price': 10, 'count': {number % 3}}},\n" for number in range(12))
PROMPT = f"A list, and then the same list once more, unchanged.\n{LIST}\nThe same list:\n{LIST[:120]}"
LENGTHS = ("--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8")
DRAFTING = ("--spec-type", "ngram-simple", "--spec-dm-adaptive", "off", *LENGTHS)


@pytest.fixture(scope="module")
def servers(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningServer]]:
    """By the value of --spec-reduced."""
    folder = tmp_path_factory.mktemp("reduced")
    with ExitStack() as stack:
        yield {
            path: stack.enter_context(
                running_server(
                    *(native_line(), smollm2, folder / f"{path}.log", "-c", "2048", "-np", "1", "-t", "1"),
                    *("--metrics", "--spec-reduced", path, *DRAFTING),
                )
            )
            for path in ("off", "host", "device")
        }


def completion(server: RunningServer, **fields: Any) -> dict[str, Any]:
    body = {"prompt": PROMPT, "n_predict": 96, "return_tokens": True, "cache_prompt": False, **fields}
    answer = server.post("/completion", body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("fields", "reason", "k"),
    [
        ({"temperature": 0}, "greedy", 1),
        ({"temperature": 0.9, "seed": 11, "top_k": 40}, "top-k", 40),
        ({"temperature": 1.4, "seed": 3, "top_k": 12, "top_p": 0.8, "min_p": 0.01}, "top-k", 12),
    ],
    ids=["greedy", "top-40", "top-12"],
)
def test_the_text_is_that_of_whole_rows(
    servers: dict[str, RunningServer], fields: dict[str, Any], reason: str, k: int
) -> None:
    whole, reduced = (completion(servers[path], **fields) for path in ("off", "host"))
    assert reduced["tokens"] == whole["tokens"]
    assert reduced["speculation"]["drafts"] == whole["speculation"]["drafts"] > 2
    assert whole["speculation"]["reduced"] == {
        "path": "off",
        "reason": "disabled",
        "view_reason": "",
        "k": 1,
    }
    assert reduced["speculation"]["reduced"] == {
        "path": "host",
        "reason": reason,
        "view_reason": "eligible",
        "k": k,
    }


@pytest.mark.parametrize(
    ("fields", "reason", "view_reason"),
    [
        ({"temperature": 0, "repeat_penalty": 1.01}, "penalties", ""),
        ({"temperature": 0, "n_probs": 2}, "prob-reporting", ""),
        ({"temperature": 0.5, "seed": 1, "top_k": 0}, "unbounded-top-k", ""),
        ({"temperature": 0, "typical_p": 0.5}, "greedy", "sampler"),
    ],
    ids=["penalties", "probabilities", "all", "typical"],
)
def test_what_needs_the_whole_row_says_so_and_has_the_same_text(
    servers: dict[str, RunningServer], fields: dict[str, Any], reason: str, view_reason: str
) -> None:
    whole, reduced = (completion(servers[path], **fields) for path in ("off", "host"))
    assert reduced["tokens"] == whole["tokens"]
    told = reduced["speculation"]["reduced"]
    assert (told["reason"], told["view_reason"]) == (reason, view_reason)


def test_a_device_that_can_not_is_told(servers: dict[str, RunningServer]) -> None:
    told = servers["device"].get("/props").json()["speculation"]
    assert told["reduced_path"] == "host"
    assert told["reduced_reason"] in set(told["capabilities"].values()) - {True}
    assert completion(servers["device"], temperature=0)["speculation"]["reduced"]["path"] == "host"


def test_verifications_are_counted_by_their_reason(servers: dict[str, RunningServer]) -> None:
    drafts = completion(servers["off"], temperature=0)["speculation"]["drafts"]
    lines = servers["off"].get("/metrics").text.splitlines()
    counts = [line for line in lines if line.startswith("llamacpp:spec_reduced_total")]
    assert [line.split()[0] for line in counts] == ['llamacpp:spec_reduced_total{reason="disabled"}']
    assert float(counts[0].split()[1]) >= drafts
