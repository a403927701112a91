"""Model requests and capabilities for tests of the command line and the environment."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from framework.engines.help_text import parse_help
from framework.values.engine import Capabilities
from framework.values.request import ModelRequest, ModelSource

HELP = Path(__file__).parents[1] / "data/llama-server-help-b10068.txt"


@cache
def real_caps() -> Capabilities:
    """What build b10068 can do, from its help text."""
    return parse_help(HELP.read_text("utf-8"), exit_code=0, version_text="version: 1 (571d0d5)")


def caps_with(*flags: str, **fields: Any) -> Capabilities:
    """A conclusive probe that found exactly these flags."""
    return Capabilities(conclusive=True, flags=frozenset(flags), **fields)


def a_request(**fields: Any) -> ModelRequest:
    """A request for one model; everything not named is the default."""
    return ModelRequest(id="demo", source=ModelSource(path=Path("/models/demo.gguf")), **fields)
