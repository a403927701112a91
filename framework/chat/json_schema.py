"""A grammar for the JSON documents that a schema allows.

Called for `response_format` and `json_schema` of requests and for the arguments of tools. Keywords that no
grammar can express (`not`, `uniqueItems`, `multipleOf`, ...) are left to the client, as llama-server leaves
them; whatever is written is valid JSON. Schemas are hostile: their size, depth and combinations are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from framework.chat.gbnf import GrammarError, Rules
from framework.chat.gbnf_check import check_grammar
from framework.chat.schema import arrays, merge, numbers, objects, references, strings
from framework.chat.schema.literals import literals_body
from framework.chat.schema.visitor import Schema, SchemaError, Visitor

__all__ = ["SchemaError", "add_schema", "schema_to_gbnf"]

MAX_STEPS = 50_000
"""Subschemas looked at, each as often as it is used."""
MAX_DEPTH = 64
MAX_ALTERNATIVES = 64
"""Combinations of alternatives that hold at once."""
_LITERAL_TYPES = {"boolean": '"true" | "false"', "null": '"null"'}
_RULES: dict[str, Callable[[Visitor, Schema, str, str], str]] = {
    "string": strings.string_rule,
    "integer": numbers.integer_rule,
    "number": numbers.number_rule,
    "array": arrays.array_rule,
    "object": objects.object_rule,
}
_TYPES_OF_KEYWORDS: Mapping[str, frozenset[str]] = {
    "object": frozenset(
        {
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "minProperties",
            "maxProperties",
        }
    ),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "string": frozenset({"pattern", "format", "minLength", "maxLength"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
}
_CONSTRAINTS = frozenset({"type", "const", "enum", "additionalItems"}).union(*_TYPES_OF_KEYWORDS.values())


def schema_to_gbnf(schema: Any) -> str:
    """The whole grammar, its start at `root`; raises SchemaError."""
    rules = Rules()
    rules.root(add_schema(rules, schema, "value"))
    text = rules.text()
    try:
        check_grammar(text)
    except GrammarError as error:
        raise SchemaError("#", str(error)) from error
    return text


def add_schema(rules: Rules, schema: Any, wish: str) -> str:
    """Adds rules for one schema to others and returns the name of the first; raises SchemaError.

    References are looked up in this schema. The caller checks the whole grammar when it is complete.
    """
    try:
        return _Conversion(rules, schema).visit(schema, wish, "#")
    except GrammarError as error:
        raise SchemaError("#", str(error)) from error


class _Conversion:
    """One schema on its way into a set of rules."""

    def __init__(self, rules: Rules, root: Any) -> None:
        self.rules = rules
        self._root = root
        self._steps = 0
        self._depth = 0
        self._references: dict[str, str] = {}
        self._open: list[str] = []
        """References that were followed without anything written in between."""

    def visit(self, schema: Any, wish: str, path: str) -> str:
        """The name of a rule for the values that a subschema allows."""
        self._spend(path)
        if schema is True:
            return self.any_value()
        if not isinstance(schema, dict):
            trouble = "nothing is allowed here" if schema is False else "not an object"
            raise SchemaError(path, trouble)
        with self._deeper(path):
            ways = self._ways(schema, wish, path)
        if schema.get("nullable") is True:
            ways.append(self.rules.shared("null", _LITERAL_TYPES["null"]))
        ways = list(dict.fromkeys(ways))
        return ways[0] if len(ways) == 1 else self.rules.add(wish, " | ".join(ways))

    def any_value(self) -> str:
        """The name of the rule for every JSON value."""
        name, is_new = self.rules.shared_later("any")
        if is_new:
            space, string = self.rules.space(), self.string()
            number = self.rules.shared("number", numbers.NUMBER)
            members = self.rules.shared(
                "any-object", _listed("{", f'{string} {space} ":" {space} {name}', "}", space)
            )
            items = self.rules.shared("any-array", _listed("[", name, "]", space))
            self.rules.fill(name, f'{members} | {items} | {string} | {number} | "true" | "false" | "null"')
        return name

    def string(self) -> str:
        """The name of the rule for every JSON string."""
        return self.rules.shared("string", f'"\\"" {self.string_char()}* "\\""')

    def string_char(self) -> str:
        """The name of the rule for one character of a JSON string."""
        return self.rules.shared("char", strings.CHAR)

    def _ways(self, schema: Schema, wish: str, path: str) -> list[str]:
        combining = merge.COMBINING.intersection(schema)
        if not combining:
            return self._plain(schema, wish, path)
        if len(combining) == 1 and not _CONSTRAINTS.intersection(schema):
            key = next(iter(combining))
            if key == "$ref":
                return [self._reference(schema[key], wish, path)]
            if key != "allOf":
                return self._alternatives(schema[key], wish, f"{path}/{key}")
        ways = []
        for at, alternative in enumerate(self._expanded(schema, path, ())):
            if alternative is not False:
                ways.append(self.visit(alternative, wish if not at else f"{wish}-{at}", path))
        if not ways:
            raise SchemaError(path, "nothing is allowed here")
        return ways

    def _alternatives(self, schemas: Any, wish: str, path: str) -> list[str]:
        ways = [
            self.visit(schema, f"{wish}-{at}", f"{path}/{at}")
            for at, schema in enumerate(_several(schemas, path))
            if schema is not False
        ]
        if not ways:
            raise SchemaError(path, "nothing is allowed here")
        return ways

    def _reference(self, reference: Any, wish: str, path: str) -> str:
        """A rule for the target, once for all that refer to it, so that it may hold itself."""
        target = references.resolve(self._root, reference, path)
        if reference in self._open:
            raise SchemaError(path, f"the reference {reference!r:.80} leads to itself")
        if reference in self._references:
            return self._references[reference]
        name = self.rules.reserve(reference.rpartition("/")[2].lstrip("#") or wish)
        self._references[reference] = name
        self._open.append(reference)
        self.rules.fill(name, self.visit(target, f"{name}-value", reference))
        self._open.pop()
        return name

    def _plain(self, schema: Schema, wish: str, path: str) -> list[str]:
        """A schema without combining keywords, as one rule for each of its types."""
        types = _types_of(schema, path)
        if "const" in schema:
            return [self.rules.add(wish, literals_body([schema["const"]], types, path))]
        if "enum" in schema:
            return [self.rules.add(wish, literals_body(schema["enum"], types, path))]
        if types is None:
            return [self.any_value()]
        ways = []
        for name in types:
            if name in _LITERAL_TYPES:
                ways.append(self.rules.shared(name, _LITERAL_TYPES[name]))
            else:
                open_before, self._open = self._open, []
                ways.append(_RULES[name](self, schema, wish if len(types) == 1 else f"{wish}-{name}", path))
                self._open = open_before
        return ways

    def _expanded(self, schema: Any, path: str, followed: tuple[str, ...]) -> list[Any]:
        """Schemas without combining keywords, one of which has to hold."""
        self._spend(path, 1 + (len(schema) if isinstance(schema, dict) else 0))
        if isinstance(schema, bool):
            return [schema]
        if not isinstance(schema, dict):
            raise SchemaError(path, "not an object")
        if len(followed) > MAX_DEPTH:
            raise SchemaError(path, f"combined deeper than {MAX_DEPTH}")
        found: list[Any] = [{key: value for key, value in schema.items() if key not in merge.COMBINING}]
        if (reference := schema.get("$ref")) is not None:
            if reference in followed:
                raise SchemaError(path, f"the reference {reference!r:.80} leads to itself")
            target = references.resolve(self._root, reference, path)
            found = self._product(found, self._expanded(target, reference, (*followed, reference)), path)
        followed = (*followed, path)
        for member in _several(schema.get("allOf", [True]), path):
            found = self._product(found, self._expanded(member, f"{path}/allOf", followed), path)
        for key in ("anyOf", "oneOf"):
            ways = [
                alternative
                for member in _several(schema.get(key, [True]), path)
                for alternative in self._expanded(member, f"{path}/{key}", followed)
            ]
            found = self._product(found, ways, path)
        return found

    def _product(self, some: list[Any], others: list[Any], path: str) -> list[Any]:
        if len(some) * len(others) > MAX_ALTERNATIVES:
            raise SchemaError(path, f"more than {MAX_ALTERNATIVES} combinations of alternatives")
        products = []
        for one in some:
            for other in others:
                self._spend(path, 1 + sum(len(part) for part in (one, other) if isinstance(part, dict)))
                products.append(merge.merged(one, other, path))
        return products

    def _spend(self, path: str, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise SchemaError(path, f"the schema is too large: more than {MAX_STEPS} parts")

    @contextmanager
    def _deeper(self, path: str) -> Iterator[None]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SchemaError(path, f"nested deeper than {MAX_DEPTH}")
        yield
        self._depth -= 1


def _several(schemas: Any, path: str) -> list[Any]:
    if not isinstance(schemas, list) or not schemas:
        raise SchemaError(path, "a non-empty array of schemas is needed")
    return schemas


def _types_of(schema: Schema, path: str) -> list[str] | None:
    """The types that are named, else those that the keywords speak of, else None."""
    wanted = schema.get("type")
    if wanted is None:
        return [name for name, keys in _TYPES_OF_KEYWORDS.items() if keys.intersection(schema)] or None
    names = wanted if isinstance(wanted, list) else [wanted]
    known = (*_RULES, *_LITERAL_TYPES)
    for name in names:
        if name not in known:
            raise SchemaError(path, f"unknown type {name!r:.40}; known are {', '.join(known)}")
    if not names:
        raise SchemaError(path, "type names no type")
    return list(dict.fromkeys(names))


def _listed(start: str, item: str, end: str, space: str) -> str:
    return f'"{start}" {space} ({item} ({space} "," {space} {item})*)? {space} "{end}"'
