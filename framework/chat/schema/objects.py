"""Objects of a JSON schema: named properties in the order of their declaration, then any others."""

from __future__ import annotations

import re
from typing import Any

from framework.chat.gbnf import MAX_REPEAT, quote, repeat
from framework.chat.schema import charset
from framework.chat.schema.literals import literal
from framework.chat.schema.patterns import pattern_body
from framework.chat.schema.visitor import Schema, SchemaError, Visitor, limits_of, schema_at

# A key that could also be written with escapes is not told apart: models don't write keys so.
_KEY_END = r'"\""'
MAX_NAME = 128
"""Characters of a property name, where keys that are none of the names are allowed too: one rule for each."""
_ESCAPED = re.compile(r'["\\\x00-\x1F\x7F]')


def object_rule(visitor: Visitor, schema: Schema, wish: str, path: str) -> str:
    """Without named properties, every key is allowed unless `additionalProperties` says no."""
    properties = dict(schema_at(schema, "properties", path))
    required = _required(schema, path)
    others = _others(visitor, schema, properties, wish, path)
    for name in required:
        properties.setdefault(name, schema.get("additionalProperties", True))
    space = visitor.rules.space()
    members = []
    for name, subschema in properties.items():
        if subschema is False:
            if name in required:
                raise SchemaError(path, f"the property {name!r} is required, but not allowed")
            continue
        value = visitor.visit(subschema, f"{wish}-{name}", f"{path}/properties/{name}")
        member = visitor.rules.add(
            f"{wish}-{name}-member", f'{literal(name, path)} {space} ":" {space} {value}'
        )
        members.append((member, name in required))
    if members:
        body = _members_body(visitor, members, others, wish)
    else:
        body = _map_body(visitor, others, schema, path)
    return visitor.rules.add(wish, f'"{{" {space} {body} {space} "}}"' if body else f'"{{" {space} "}}"')


def _required(schema: Schema, path: str) -> list[str]:
    names = schema.get("required") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(path, "required has to be an array of names")
    return names


def _map_body(visitor: Visitor, others: str | None, schema: Schema, path: str) -> str:
    """An object of unnamed members only; these can be counted."""
    least, most = limits_of(schema, "minProperties", "maxProperties", path)
    if others is None or most == 0:
        if least:
            raise SchemaError(path, f"minProperties is {least}, but no property is allowed")
        return ""
    if least > MAX_REPEAT:
        raise SchemaError(path, f"minProperties is {least}; a grammar counts to {MAX_REPEAT}")
    space = visitor.rules.space()
    rest = None if most is None or most > MAX_REPEAT else most - 1
    following = repeat(f'("," {space} {others})', max(0, least - 1), rest)
    more = "" if rest == 0 else f" {following}"
    return f"{others}{more}" if least else f"({others}{more})?"


def _members_body(visitor: Visitor, members: list[tuple[str, bool]], others: str | None, wish: str) -> str:
    """The members in their order, then others; a comma is read before it is known what comes next."""
    space = visitor.rules.space()
    follow = f'("," {space} {others})*' if others else ""
    # What may come next, from a member on: it, or when it may be left out what may come next behind it.
    upcoming = f"{others} {follow}" if others else ""
    is_needed = False
    for at in range(len(members) - 1, -1, -1):
        member, must = members[at]
        tail = f'"," {space} {upcoming}' if upcoming else ""
        here = f"{member} {tail if is_needed or not tail else f'({tail})?'}".rstrip()
        is_needed = is_needed or must
        upcoming = here if must or not upcoming else f"{here} | {upcoming}"
        if "|" in upcoming or (at and not members[at - 1][1]):
            upcoming = visitor.rules.add(f"{wish}-next", upcoming)
    return upcoming if is_needed else f"({upcoming})?"


def _others(visitor: Visitor, schema: Schema, named: Schema, wish: str, path: str) -> str | None:
    """The rule of a member that has no declaration; None when there is none."""
    patterns = schema_at(schema, "patternProperties", path)
    default: Any = not named and not patterns
    extra = schema.get("additionalProperties", default)
    ways = [
        _member(
            visitor,
            f'"\\"" ({pattern_body(pattern, visitor.string_char(), path)}) "\\""',
            visitor.visit(subschema, f"{wish}-pattern", f"{path}/patternProperties/{pattern}"),
        )
        for pattern, subschema in patterns.items()
        if subschema is not False
    ]
    if extra is not False:
        value = visitor.visit(extra, f"{wish}-other", f"{path}/additionalProperties")
        ways.append(_member(visitor, _other_key(visitor, list(named), wish, path), value))
    return visitor.rules.add(f"{wish}-other-member", " | ".join(ways)) if ways else None


def _member(visitor: Visitor, key: str, value: str) -> str:
    space = visitor.rules.space()
    return f'{key} {space} ":" {space} {value}'


def _other_key(visitor: Visitor, names: list[str], wish: str, path: str) -> str:
    """A key that is none of the names, by a tree of their characters."""
    plain = [name for name in names if not _ESCAPED.search(name)]
    if (longest := max(map(len, plain), default=0)) > MAX_NAME:
        raise SchemaError(
            path, f"a property name has {longest} characters; beside others {MAX_NAME} are allowed"
        )
    if not plain:
        return visitor.string()
    tree: dict[str, Any] = {}
    for name in plain:
        node = tree
        for char in name:
            node = node.setdefault(char, {})
        node[""] = True
    return visitor.rules.add(f"{wish}-key", f'"\\"" {_unlike(visitor, tree, wish)} {_KEY_END}')


def _unlike(visitor: Visitor, tree: dict[str, Any], wish: str) -> str:
    """A rule for texts that are not in the tree."""
    char = visitor.string_char()
    known = sorted(key for key in tree if key)
    ways = [f"{quote(key)} {_unlike(visitor, tree[key], wish)}" for key in known]
    excluded = charset.union([((ord(key), ord(key)),) for key in known])
    if (other := charset.in_json(charset.complement(excluded))) is not None:
        ways.append(f"{other} {char}*")
    if not known:
        return visitor.rules.shared("key-rest", f"{char}+")
    return visitor.rules.add(f"{wish}-unlike", " | ".join(ways if "" in tree else ["", *ways]).strip())
