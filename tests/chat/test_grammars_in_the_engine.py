"""Grammars made here, judged by llama.cpp's own library: valid documents fit, others don't."""

from __future__ import annotations

import json
from typing import Any

import pytest

from framework.chat.gbnf import Rules, add_until, quote
from framework.chat.json_schema import schema_to_gbnf
from framework.chat.reasoning_grammar import after_reasoning
from tests.chat.native_grammar import GrammarJudge

pytestmark = pytest.mark.engine

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "v": {"type": "integer"},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["v"],
        }
    },
}
PERSON = {
    "type": "object",
    "properties": {"nick": {"type": "string"}, "age": {"type": "integer"}, "mail": {"type": "string"}},
    "required": ["age"],
}
BOTH = {
    "allOf": [
        {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"properties": {"b": {"type": "boolean"}, "a": {"minimum": 3}}, "required": ["b"]},
    ]
}
CASES: list[tuple[Any, list[str], list[str]]] = [
    ({}, ['{"a": [1, null, "x"]}', "-1.5e3", '"ö"', "[]", "{}"], ["", "{", "nul", "01"]),
    ({"type": "null"}, ["null"], ["0"]),
    ({"type": ["string", "null"]}, ["null", '"a"'], ["1"]),
    ({"type": "string", "nullable": True}, ["null", '""'], ["false"]),
    ({"type": "string"}, [r'"a\n\u00e9\"\\"', '"日本"'], ['"a', '"\n"', r'"\x"']),
    ({"minLength": 2, "maxLength": 3}, ['"ab"', '"abc"', r'"\"\""'], ['"a"', '"abcd"']),
    ({"type": "string", "maxLength": 100_000}, ['"ab"'], []),
    ({"pattern": "^[a-c]+-\\d{2,3}$"}, ['"abc-12"', '"a-123"'], ['"d-12"', '"a-1"', '"xa-12"']),
    ({"pattern": "^(foo|ba[rz])?$"}, ['"foo"', '"baz"', '""'], ['"ba"']),
    ({"pattern": "b"}, ['"abc"', '"b"'], ['"ac"']),
    ({"pattern": '^"\\\\[^x]$'}, [r'"\"\\y"', r'"\"\\\""'], [r'"\"\\x"']),
    ({"pattern": "^.{2}\\s\\S$"}, ['"ab c"'], ['"abc"']),
    ({"format": "date"}, ['"2026-11-30"'], ['"2026-13-30"', '"x"']),
    ({"format": "time"}, ['"23:59:59Z"', '"01:02:03.5+02:00"'], ['"24:00:00Z"', '"01:02:03"']),
    ({"format": "date-time"}, ['"2026-11-30T01:02:03Z"'], ['"2026-11-30"']),
    ({"format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']),
    ({"format": "ipv4"}, ['"192.168.0.255"'], ['"192.168.0.256"']),
    ({"format": "whatever"}, ['"anything"'], ["1"]),
    ({"type": "integer"}, ["0", "-12"], ["1.5", "007", "+1"]),
    ({"type": "integer", "minimum": 3, "maximum": 1277}, ["3", "10", "999", "1277"], ["2", "1278", "03"]),
    ({"type": "integer", "minimum": -12, "maximum": 7}, ["-12", "-1", "0", "7"], ["-13", "8", "-0"]),
    ({"type": "integer", "exclusiveMinimum": 0}, ["1", "123456"], ["0", "-1"]),
    ({"type": "integer", "maximum": -5}, ["-5", "-77"], ["-4", "0"]),
    ({"type": "number", "minimum": 0, "maximum": 1}, ["0", "0.25", "1", "1.0"], ["1.5", "-0.1", "2"]),
    ({"type": "number", "maximum": -2}, ["-2", "-2.5", "-31"], ["-1.5", "2"]),
    ({"enum": ["a", 1, None, {"k": [1]}]}, ['"a"', "1", "null", '{"k":[1]}'], ['"b"', "2"]),
    (
        {"enum": [*range(30), "ab", "abc", "a", "b", "ba", ""]},
        ["1", "12", "29", '"ab"', '"abc"', '"a"', '"ba"', '""'],
        ["30", '"c"', '"abcd"', '"bb"'],
    ),
    ({"const": 'x"y'}, [r'"x\"y"'], ['"x"']),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, ["1", "true"], ['"1"']),
    ({"oneOf": [{"const": 1}, {"const": 2}]}, ["1", "2"], ["3"]),
    ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1, 2]"], ["[1,]", '["a"]']),
    (
        {"items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        ["[1,2]", "[1,2,3]"],
        ["[1]", "[1,2,3,4]"],
    ),
    ({"type": "array", "items": {"const": 1}, "maxItems": 1}, ["[]", "[1]"], ["[1,1]"]),
    ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"]),
    ({"prefixItems": [{"type": "integer"}, {"type": "string"}]}, ['[1,"a"]'], ["[1]", '[1,"a",2]']),
    ({"prefixItems": [{"const": 1}], "items": {"const": 2}}, ["[1]", "[1,2,2]"], ["[2]", "[]"]),
    ({"type": "object"}, ["{}", '{"a": 1}'], ["[]"]),
    (
        PERSON,
        ['{"age":1}', '{"nick":"x","age":1,"mail":"y"}', '{"age":1,"mail":"y"}'],
        ["{}", '{"mail":"y"}'],
    ),
    (
        {"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}},
        ["{}", '{"a":1}', '{"c":3}', '{"a":1,"c":3}', '{"b":2,"c":3}'],
        ['{"c":3,"a":1}', '{"d":1}', '{"a":1,}'],
    ),
    (
        {"properties": {"ab": {"const": 1}}, "additionalProperties": {"type": "boolean"}},
        ["{}", '{"ab":1}', '{"ab":1,"a":true}', '{"abc":false}', '{"x":true,"y":true}'],
        ['{"ab":true}', '{"x":1}'],
    ),
    (
        {"patternProperties": {"^x-": {"type": "integer"}}},
        ["{}", '{"x-a":1,"x-b":2}'],
        ['{"y":1}', '{"x-a":"1"}'],
    ),
    (
        {"additionalProperties": {"const": 1}, "minProperties": 1, "maxProperties": 2},
        ['{"a":1}', '{"a":1,"b":1}'],
        ["{}", '{"a":1,"b":1,"c":1}'],
    ),
    ({"type": "object", "required": ["a"]}, ['{"a":[]}', '{"a":1}'], ["{}"]),
    (
        {"type": "object", "properties": {"string": {"type": "string"}, "any": {}}},
        ['{"string":"x","any":[1]}'],
        [],
    ),
    (TREE, ['{"v":1}', '{"v":1,"kids":[{"v":2,"kids":[]}]}'], ['{"kids":[]}', '{"v":1,"kids":[1]}']),
    (BOTH, ['{"a":3,"b":true}'], ['{"a":2,"b":true}', '{"a":3}']),
    (
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}, "maximum": 5, "minimum": 4},
        ["4", "5"],
        ["6"],
    ),
    (
        {
            "type": "object",
            "properties": {"k": {}},
            "anyOf": [{"required": ["k"]}, {"properties": {"z": {"const": 1}}}],
        },
        ['{"k":1}', '{"z":1}'],
        ['{"z":2}'],
    ),
]


@pytest.mark.parametrize(("schema", "good", "bad"), CASES, ids=[json.dumps(case[0])[:60] for case in CASES])
def test_documents_fit_as_the_schema_says(
    judge: GrammarJudge, schema: Any, good: list[str], bad: list[str]
) -> None:
    grammar = schema_to_gbnf(schema)
    assert [text for text in good if not judge.fits(grammar, text)] == []
    assert [text for text in bad if judge.fits(grammar, text)] == []


def test_blanks_are_allowed_between_parts_but_not_for_ever(judge: GrammarJudge) -> None:
    grammar = schema_to_gbnf(PERSON)
    assert judge.fits(grammar, '{\n  "age": 1,\n\n  "mail": "x"\n}')
    assert not judge.fits(grammar, '{"age":' + " " * 30 + "1}")


def test_the_library_takes_a_wide_schema(judge: GrammarJudge) -> None:
    wide = {"type": "object", "properties": {f"f{at}": {"type": "integer"} for at in range(300)}}
    assert judge.fits(schema_to_gbnf(wide), '{"f7": 1, "f299": 2}')


def test_text_up_to_an_end_holds_everything_but_the_end(judge: GrammarJudge) -> None:
    rules = Rules()
    rules.root(f"{add_until(rules, 'text', 'abab')} {quote('abab')}")
    grammar = rules.text()
    for text in ("abab", "xabab", "aabab", "abaabab", "é\nabab"):
        assert judge.fits(grammar, text), text
    for text in ("aba", "ababxabab", ""):
        assert not judge.fits(grammar, text), text


def test_a_reply_may_think_before_it_answers(judge: GrammarJudge) -> None:
    answer = schema_to_gbnf({"const": 1})
    opened = after_reasoning(answer, "<think>", "</think>", is_open=True)
    assert judge.fits(opened, "hm < that\n</think>\n\n1")
    assert not judge.fits(opened, "1")
    closed = after_reasoning(answer, "<think>", "</think>", is_open=False)
    assert judge.fits(closed, "1")
    assert judge.fits(closed, "<think>hm</think>1")
    assert not judge.fits(closed, "hm</think>1")
