"""A long conversation goes on over an unload and over the end of the manager, for a real client (07 §11)."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import StartPaddock
from tests.e2e.clients import chat, model_table
from tests.support.paddock import RunningPaddock

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]

STORY = "Once upon a time there was a horse that lived by the sea. " * 25
NEW_TOKENS = 60


def read(paddock: RunningPaddock, *questions: str) -> tuple[int, int]:
    """Ask about the story; tokens that were known of the prompt, and those that were not."""
    messages = [{"role": "user", "content": STORY}]
    for question in questions:
        messages += [{"role": "assistant", "content": "I see."}, {"role": "user", "content": question}]
    answer = chat(paddock, "m", messages=messages, temperature=0)
    assert answer.status_code == httpx.codes.OK, answer.text
    usage: dict[str, Any] = answer.json()["usage"]
    known = usage["prompt_tokens_details"]["cached_tokens"]
    return known, usage["prompt_tokens"] - known


def test_a_conversation_outlives_its_process_and_its_manager(paddock_up: StartPaddock, smollm2: Path) -> None:
    paddock = paddock_up(model_table("m", smollm2, context=2048))
    paddock.wait_state("m", "ready")
    _, length = read(paddock)
    assert length > 5 * NEW_TOKENS

    paddock.command("reload", "m")
    paddock.wait(lambda: paddock.events(kind="slots_restored"), 60.0, "the slots to be restored")
    paddock.wait_state("m", "ready")
    known, new = read(paddock, "And then?")
    assert known > length - NEW_TOKENS
    assert new < NEW_TOKENS

    folder = paddock.state_dir / "slots" / "m.0"
    assert list(folder.iterdir()) == []
    paddock.stop()
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "resume-ffffffff-slot9.bin").write_text("half of a conversation")
    paddock.restart()
    paddock.wait_state("m", "ready")
    known, new = read(paddock, "And then?", "And after that?")
    assert known > length - NEW_TOKENS
    assert new < 2 * NEW_TOKENS
    assert list(folder.iterdir()) == []


def test_nothing_is_left_of_a_model_that_was_unloaded_and_taken_out(
    paddock_up: StartPaddock, smollm2: Path
) -> None:
    paddock = paddock_up(model_table("m", smollm2, context=2048))
    paddock.wait_state("m", "ready")
    read(paddock)
    paddock.command("unload", "m")
    paddock.wait_state("m", "stopped")
    folder = paddock.state_dir / "slots" / "m.0"
    assert (folder / "resume.json").exists()
    text = paddock.manifest.read_text(encoding="utf-8")
    paddock.write(text.replace("[models.m]", "[models.n]"))
    paddock.wait(lambda: not folder.exists(), 30.0, "the conversations of the model to be deleted")
