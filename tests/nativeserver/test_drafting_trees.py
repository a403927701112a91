"""Drafts with side chains, on a real model with its own first layers as a drafter."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bench.truncated_model import truncate
from tests.support.engine_pair import RunningServer, native_line, running_server

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]

DRAFTER_LAYERS = 18
SLOTS = 2


def repetition(rows: str, begun: int) -> str:
    """A prompt whose answer is sure at every token, by 2.7 in logarithm: with another prompt beside it in the
    batch llama-server and this engine move logits by up to 0.3."""
    return f"A list, and then the same list once more, unchanged.\n{rows}\nThe same list:\n{rows[:begun]}"


PROMPTS = (
    repetition("".join(f"{number} apples cost {number} coins.\n" for number in range(2, 14)), 60),
    repetition(
        "".join(f"Step {number}: open door {number}, then close door {number}.\n" for number in range(1, 12)),
        120,
    ),
)


@pytest.fixture(scope="module")
def drafter(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drafter that is often right, and often not."""
    path = tmp_path_factory.mktemp("drafter") / "drafter.gguf"
    truncate(smollm2, path, DRAFTER_LAYERS)
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def flags(drafter: Path) -> tuple[str, ...]:
    return (
        *("-c", "4096", "-np", str(SLOTS), "-t", "1", "--metrics", "--kv-unified"),
        *("--spec-type", "draft-simple", "--spec-draft-model", str(drafter), "--spec-draft-n-max", "4"),
        *("--spec-dm-adaptive", "off"),
    )


@pytest.fixture(scope="module")
def flat(smollm2: Path, drafter: Path, logs: Path) -> Iterator[RunningServer]:
    """A server whose drafts have no side chains."""
    with running_server(native_line(), smollm2, logs / "flat", *flags(drafter)) as running:
        yield running


@pytest.fixture(scope="module")
def branching(smollm2: Path, drafter: Path, logs: Path) -> Iterator[RunningServer]:
    """The same server with side chains."""
    trees = ("--spec-branch-budget", "8", "--spec-draft-topk", "10", "--spec-draft-p-split", "0")
    with running_server(native_line(), smollm2, logs / "branching", *flags(drafter), *trees) as running:
        yield running


def completion(server: RunningServer, prompt: str, **fields: Any) -> dict[str, Any]:
    body = {"prompt": prompt, "n_predict": 48, "temperature": 0, "return_tokens": True, **fields}
    answer = server.post("/completion", body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("prompt", PROMPTS, ids=["prices", "steps"])
def test_the_text_is_that_of_plain_decoding_in_fewer_decodes(
    flat: RunningServer, branching: RunningServer, prompt: str
) -> None:
    plain = completion(flat, prompt, **{"speculative.type": "none"})
    shallow = {"speculative.n_max": 1}
    single, wide = (completion(server, prompt, **shallow) for server in (flat, branching))
    deep = completion(branching, prompt)
    assert deep["tokens"] == wide["tokens"] == single["tokens"] == plain["tokens"]
    assert deep["speculation"]["tree_drafts"] > 0
    assert single["speculation"]["tree_drafts"] == 0
    # Both would do the same unless a token of a side chain was accepted.
    assert wide["speculation"]["accepted"] > single["speculation"]["accepted"]
    assert wide["speculation"]["drafts"] < single["speculation"]["drafts"]
    assert wide["speculation"]["rollbacks"]["refill"] == 0


def test_several_slots_have_trees_at_once(flat: RunningServer, branching: RunningServer) -> None:
    plain = [completion(flat, prompt, **{"speculative.type": "none"}) for prompt in PROMPTS]
    with ThreadPoolExecutor(SLOTS) as pool:
        found = list(pool.map(lambda prompt: completion(branching, prompt, cache_prompt=False), PROMPTS))
    assert [answer["tokens"] for answer in found] == [answer["tokens"] for answer in plain]
    assert all(answer["speculation"]["tree_drafts"] > 0 for answer in found)


def test_chosen_tokens_are_a_continuation_for_the_next_request(branching: RunningServer) -> None:
    first = completion(branching, PROMPTS[0], id_slot=0)
    longer = branching.post("/tokenize", {"content": PROMPTS[0]}).json()["tokens"] + first["tokens"]
    body = {"prompt": longer, "n_predict": 8, "temperature": 0, "return_tokens": True, "id_slot": 0}
    cached = branching.post("/completion", body).json()
    fresh = branching.post("/completion", {**body, "cache_prompt": False}).json()
    assert cached["timings"]["cache_n"] == len(longer) - 1
    assert cached["tokens"] == fresh["tokens"]


def test_slots_and_memory_are_as_without_side_chains(flat: RunningServer, branching: RunningServer) -> None:
    shown = [server.get("/props").json() for server in (flat, branching)]
    assert [props["total_slots"] for props in shown] == [SLOTS, SLOTS]
    assert [props["speculation"]["tree"] for props in shown] == [
        {"enabled": False, "reason": "none-requested"},
        {"enabled": True, "reason": ""},
    ]
    sizes = [[slot["n_ctx"] for slot in server.get("/slots").json()] for server in (flat, branching)]
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) == SLOTS


def test_trees_are_counted(branching: RunningServer) -> None:
    completion(branching, PROMPTS[1])
    lines = branching.get("/metrics").text.splitlines()
    (line,) = [line for line in lines if line.startswith("llamacpp:spec_tree_drafts_total ")]
    assert float(line.split()[-1]) > 0


def test_memory_of_each_slot_s_own_leaves_drafts_flat(smollm2: Path, drafter: Path, logs: Path) -> None:
    arguments = [flag for flag in flags(drafter) if flag != "--kv-unified"]
    with running_server(
        native_line(), smollm2, logs / "own", *arguments, "--no-kv-unified", "--spec-branch-budget", "8"
    ) as server:
        report = completion(server, PROMPTS[1])["speculation"]
        assert (report["tree_drafts"], report["tree_reason"]) == (0, "tree-needs-unified-kv")
        assert report["drafts"] > 0
        tree = server.get("/props").json()["speculation"]["tree"]
    assert tree == {"enabled": False, "reason": "tree-needs-unified-kv"}
