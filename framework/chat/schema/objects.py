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
    """Alternatives for the member that comes first; what may follow each has a rule of its own."""
    space = visitor.rules.space()
    follow = f'("," {space} {others})*' if others else ""
    first_required = next((at for at, (_, must) in enumerate(members) if must), len(members))
    tails = [follow]
    for at in range(len(members) - 1, 0, -1):
        member, must = members[at]
        part = f'"," {space} {member}'
        tail = f"{part if must else f'({part})?'} {tails[0]}".rstrip()
        # Tails that several alternatives share are rules; behind the last of these one text is enough.
        tails.insert(0, visitor.rules.add(f"{wish}-tail", tail) if at <= first_required else tail)
    starts = [f"{members[at][0]} {tails[at]}".rstrip() for at in range(min(first_required + 1, len(members)))]
    if first_required < len(members):
        return starts[0] if len(starts) == 1 else f"({' | '.join(starts)})"
    if others:
        starts.append(f"{others} {follow}")
    return f"({' | '.join(starts)})?"


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
        ways.append(_member(visitor, _other_key(visitor, list(named), wish), value))
    return visitor.rules.add(f"{wish}-other-member", " | ".join(ways)) if ways else None


def _member(visitor: Visitor, key: str, value: str) -> str:
    space = visitor.rules.space()
    return f'{key} {space} ":" {space} {value}'


def _other_key(visitor: Visitor, names: list[str], wish: str) -> str:
    """A key that is none of the names, by a tree of their characters."""
    plain = [name for name in names if not _ESCAPED.search(name)]
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
