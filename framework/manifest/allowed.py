"""What a key takes, as the end of a sentence ("a whole number from 1 to 256"), read off its JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framework.manifest.json_schema import resolved

TYPES = {"string": "text in quotes", "boolean": "true or false", "object": "a table", "array": "a list"}


def allowed_text(node: dict[str, Any]) -> str:
    """For a node of the schema; empty for an empty node."""
    node = resolved(node)
    if "anyOf" in node:
        return _joined(list(dict.fromkeys(filter(None, map(allowed_text, node["anyOf"])))))
    if "enum" in node:
        return _joined([f'"{word}"' for word in node["enum"]])
    if "const" in node:
        return f'"{node["const"]}"'
    kind = node.get("type", "")
    if kind in ("integer", "number"):
        return _number(node, "a whole number" if kind == "integer" else "a number")
    if kind == "array":
        return _list(node)
    return str(node.get("x-form", TYPES.get(kind, "")))


def words_of(node: dict[str, Any]) -> list[str]:
    """The fixed words that a node takes, for suggestions."""
    node = resolved(node)
    words = [str(word) for variant in node.get("anyOf", []) for word in words_of(variant)]
    return words + [str(word) for word in node.get("enum", [node["const"]] if "const" in node else [])]


def _number(node: dict[str, Any], noun: str) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if low is None or high is None:
        return noun
    if isinstance(low, float):
        return f"{noun} from {low:g} to {high:g}"
    return f"{noun} from {low:,} to {high:,}"


def _list(node: dict[str, Any]) -> str:
    of = resolved(node.get("items", {}))
    entries = {"string": "texts", "object": "tables", "number": "numbers"}.get(of.get("type", ""), "values")
    return f"a list of {entries}" + (" with at least one entry" if node.get("minItems") else "")


def _joined(words: Sequence[str]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
