"""Grammars of JSON schemas: what is refused, and that hostile schemas end early."""

from __future__ import annotations

from typing import Any

import pytest

from framework.chat.gbnf import GrammarError
from framework.chat.json_schema import MAX_DEPTH, SchemaError, schema_to_gbnf
from tests.support.cost import least_cost_s

SOON_S = 5.0


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def _doubling(levels: int) -> dict[str, Any]:
    """Every definition uses the next one twice."""
    defs: dict[str, Any] = {
        f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}, {"$ref": f"#/$defs/d{at + 1}"}]}
        for at in range(levels)
    }
    defs[f"d{levels}"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    return {"$ref": "#/$defs/d0", "$defs": defs}


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("text", "at #: not an object"),
        (False, "at #: nothing is allowed"),
        ({"type": "foo"}, "unknown type 'foo'"),
        ({"type": "object", "properties": {"a": {"type": "foo"}}}, "at #/properties/a: unknown type"),
        ({"type": "array", "items": {"type": []}}, "at #/items: type names no type"),
        ({"$ref": "#/$defs/none"}, "points to nothing"),
        ({"$ref": "https://example.com/schema"}, "does not point into this schema"),
        ({"$ref": "#"}, "leads to itself"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "leads to itself"),
        ({"allOf": [{"$ref": "#"}]}, "leads to itself"),
        ({"enum": []}, "no value is allowed"),
        ({"type": "string", "enum": [1]}, "no value is allowed"),
        ({"anyOf": []}, "non-empty array"),
        ({"anyOf": [False]}, "nothing is allowed"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "no value is both"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "no integer is between"),
        ({"type": "number", "minimum": "1"}, "minimum has to be a number"),
        ({"type": "string", "minLength": -1}, "minLength has to be a whole number"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "maxLength 2 is below"),
        ({"type": "string", "minLength": 5000}, "a grammar counts to"),
        ({"type": "array", "items": False, "minItems": 1}, "only 0 elements"),
        ({"type": "object", "required": "a"}, "array of names"),
        ({"type": "object", "properties": []}, "properties has to be an object"),
        (
            {"type": "object", "required": ["a"], "additionalProperties": False},
            "is required, but not allowed",
        ),
        ({"type": "string", "pattern": "a(?=b)"}, "look-around"),
        ({"type": "string", "pattern": "(a"}, "closing"),
        ({"type": "string", "pattern": "a)"}, "closing bracket without"),
        ({"type": "string", "pattern": "[a"}, "class without"),
        ({"type": "string", "pattern": "[z-a]"}, "range"),
        ({"type": "string", "pattern": r"\bword"}, "escape"),
        ({"type": "string", "pattern": r"(a)\1"}, "escape"),
        ({"type": "string", "pattern": "a{1,5000}"}, "count"),
        ({"type": "string", "pattern": "a**"}, "quantifier on a quantifier"),
        ({"type": "string", "pattern": "a$b"}, "at the end only"),
        ({"type": "string", "pattern": "(" * 50}, "nested deeper"),
        ({"type": "string", "pattern": "a" * 3000}, "characters"),
    ],
)
def test_a_refusal_names_the_place_and_the_trouble(schema: Any, told: str) -> None:
    with pytest.raises(SchemaError, match="JSON schema at #") as refused:
        schema_to_gbnf(schema)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "schema",
    [
        _nested(MAX_DEPTH + 1),
        _doubling(40),
        {"allOf": [{"anyOf": [{"minimum": at}, {"maximum": at}]} for at in range(20)]},
        {"type": "object", "properties": {f"p{at}": {"enum": [f"{at}" + "x" * 5000]} for at in range(300)}},
        {"enum": [str(at) * 50 for at in range(50_000)]},
    ],
)
def test_hostile_schemas_are_refused_soon(schema: Any) -> None:
    def refused() -> None:
        with pytest.raises(SchemaError):
            schema_to_gbnf(schema)

    assert least_cost_s(refused, below_s=SOON_S) < SOON_S


def test_a_long_property_name_beside_others_is_refused() -> None:
    with pytest.raises(SchemaError, match="500 characters"):
        schema_to_gbnf({"properties": {"x" * 500: {}}, "additionalProperties": True})
    schema_to_gbnf({"properties": {"x" * 500: {}}})
    schema_to_gbnf({"properties": {"x" * 128: {}}, "additionalProperties": {"type": "integer"}})


def test_a_pattern_that_reads_a_text_in_too_many_ways_is_refused() -> None:
    with pytest.raises(SchemaError, match="ways"):
        schema_to_gbnf({"pattern": f"^{'a?' * 30}$"})


def _wide(n_properties: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"field_{at}": {"type": "integer"} for at in range(n_properties)},
    }


def test_a_wide_object_is_fast_and_small() -> None:
    schema = _wide(400)
    assert least_cost_s(lambda: schema_to_gbnf(schema), below_s=SOON_S) < SOON_S
    assert len(schema_to_gbnf(schema)) < 200_000


def test_an_object_that_the_engine_would_be_slow_with_is_refused() -> None:
    with pytest.raises(SchemaError, match="seconds that are allowed"):
        schema_to_gbnf(_wide(2000))
    schema_to_gbnf({**_wide(1000), "required": [f"field_{at}" for at in range(1000)]})


def test_an_enum_of_thousands_is_read_by_its_beginnings() -> None:
    schema_to_gbnf({"enum": [f"{at * 7919 % 9973:x} {at}" for at in range(5000)]})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"enum": [f"value {at * 7919 % 1000}" for at in range(200)]}},
        {"type": "string", "minLength": 100},
        {"anyOf": [{"const": at} for at in range(60)]},
        {},
        {"type": "string", "pattern": "^[\\w.+-]+@[\\w-]+(\\.[\\w-]+)+$"},
    ],
)
def test_ordinary_schemas_are_not_too_slow_for_the_engine(schema: Any) -> None:
    schema_to_gbnf(schema)


def test_refusals_of_grammars_and_schemas_are_value_errors() -> None:
    assert issubclass(SchemaError, ValueError)
    assert issubclass(GrammarError, ValueError)
