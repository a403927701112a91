"""Arrays of a JSON schema: elements that are all alike, and elements with a schema of their own."""

from __future__ import annotations

from typing import Any

from framework.chat.gbnf import MAX_REPEAT, repeat
from framework.chat.schema.visitor import Schema, SchemaError, Visitor, limits_of


def array_rule(visitor: Visitor, schema: Schema, wish: str, path: str) -> str:
    """Elements with their own schema come first and are all written; then the others, counted."""
    fixed, others = _elements(schema)
    if not isinstance(fixed, list):
        raise SchemaError(path, f"prefixItems has to be an array, not {type(fixed).__name__}")
    least, most = limits_of(schema, "minItems", "maxItems", path)
    if least > MAX_REPEAT:
        raise SchemaError(path, f"minItems is {least}; a grammar counts to {MAX_REPEAT}")
    if most is not None:
        fixed = fixed[:most]
    head = [visitor.visit(item, f"{wish}-{at}", f"{path}/prefixItems/{at}") for at, item in enumerate(fixed)]
    rest_least = max(0, least - len(head))
    rest_most = None if most is None else most - len(head)
    if others is False or rest_most == 0:
        if rest_least:
            raise SchemaError(path, f"minItems is {least} but only {len(head)} elements are allowed")
        return _written(visitor, wish, " ".join(_joined(visitor, head)))
    item = visitor.visit(others, f"{wish}-item", f"{path}/items")
    return _written(visitor, wish, _body(visitor, head, item, rest_least, rest_most))


def _elements(schema: Schema) -> tuple[Any, Any]:
    """Schemas of the first elements and that of the others; False where there are no others."""
    items = schema.get("items")
    if isinstance(items, list):  # the form of drafts before 2020-12
        return items, schema.get("additionalItems", False)
    if (fixed := schema.get("prefixItems")) is not None:
        return fixed, schema.get("items", False)
    return [], True if items is None else items


def _joined(visitor: Visitor, head: list[str]) -> list[str]:
    space = visitor.rules.space()
    return [item if not at else f'"," {space} {item}' for at, item in enumerate(head)]


def _body(visitor: Visitor, head: list[str], item: str, least: int, most: int | None) -> str:
    space = visitor.rules.space()
    if most is not None and most > MAX_REPEAT:
        most = None  # too far to count: the client's own check remains
    following = f'("," {space} {item})'
    if head:
        return f"{' '.join(_joined(visitor, head))} {repeat(following, least, most)}"
    more = (
        item
        if most == 1
        else f"{item} {repeat(following, max(0, least - 1), None if most is None else most - 1)}"
    )
    return more if least else f"({more})?"


def _written(visitor: Visitor, wish: str, body: str) -> str:
    space = visitor.rules.space()
    return visitor.rules.add(wish, f'"[" {space} {body} {space} "]"' if body else f'"[" {space} "]"')
