"""What both servers are asked."""

from __future__ import annotations

from typing import Any

STORY = "Once upon a time there was a small mill by the river, and the miller"
COLOURS = [{"role": "user", "content": "Name three colours, separated by commas."}]
YES_NO = 'root ::= "yes" | "no" | "maybe"'
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


def greedy(**fields: Any) -> dict[str, Any]:
    """Always the most likely token, and nothing kept of earlier requests."""
    return {"temperature": 0, "cache_prompt": False, "seed": 1, **fields}
