"""Launch plans for tests of what is done with one, without the facts that a planner needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from framework.values.engine import Capabilities, EngineBinary
from framework.values.plan import LaunchPlan, Section, SpecDecision
from framework.values.request import ModelRequest, ModelSource


def a_plan(
    binary: EngineBinary,
    *sections: Section,
    model: Path = Path("/models/demo.gguf"),
    caps: Capabilities | None = None,
    **fields: Any,
) -> LaunchPlan:
    """A plan of one slot and 4096 tokens; `sections` follow the usual first ones."""
    known = frozenset({"--fit", "--log-verbosity", "--offline"})
    values: dict[str, Any] = {
        "request": ModelRequest(id="demo", source=ModelSource(path=model)),
        "replica": 0,
        "main_gguf": model,
        "file_bytes": 0,
        "engine": binary,
        "caps": caps or Capabilities(conclusive=True, version="b1", flags=known, trace_level=4),
        "spec": SpecDecision("off", "off"),
        "sections": (
            Section("model", (str(binary.entry), "-m", str(model))),
            Section("listen", ("--host", "127.0.0.1", "--port", "{port}")),
            *sections,
        ),
        "env": {},
        "context": 4096,
        "slots": 1,
        "unified": False,
        "cache_types": (None, None),
        "fingerprint": "0" * 64,
    }
    return LaunchPlan(**{**values, **fields})
