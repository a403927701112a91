"""Bodies that break an engine or make it eat all memory are refused before they reach one."""

from __future__ import annotations

from typing import Any

import pytest

from framework.proxy.engine_hazards import DEEPEST_GRAMMAR, refuse_hazards
from framework.proxy.errors import ProxyError


def schema(node: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": node}}}


def nested(depth: int) -> Any:
    node: Any = {"type": "string", "pattern": "a{5,1}"}
    for _ in range(depth):
        node = {"type": "array", "items": node}
    return node


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param(schema({"type": "string", "pattern": "^a{5,1}$"}), "{5,1}", id="pattern"),
        pytest.param(schema(nested(900)), "{5,1}", id="deep-pattern"),
        pytest.param(schema({"minLength": 5, "maxLength": 1}), "maxLength 1", id="length"),
        pytest.param(schema({"properties": {"a": {"minItems": 2, "maxItems": 1}}}), "maxItems 1", id="items"),
        pytest.param(schema({"maxItems": 10**9}), "up to 100,000", id="many-items"),
        pytest.param(schema({"pattern": "a{999999999}"}), "up to 100,000", id="many-times"),
        pytest.param({"json_schema": {"minItems": 2, "maxItems": 1}}, "maxItems 1", id="own-field"),
        pytest.param(
            {"tools": [{"function": {"parameters": {"minItems": 2, "maxItems": 1}}}]}, "maxItems 1", id="tool"
        ),
        pytest.param({"repeat_last_n": 2**31 - 1}, "number of tokens", id="window"),
        pytest.param({"dry_penalty_last_n": 2**31 - 1}, "number of tokens", id="dry-window"),
        pytest.param({"grammar": "root ::= " + "(" * 20000 + '"a"' + ")" * 20000}, "deep", id="deep-grammar"),
        pytest.param({"grammar": '%llguidance {}\nstart: "a"'}, "GBNF", id="llguidance"),
        pytest.param({"grammar": "#" * 2**21}, "characters", id="long-grammar"),
        pytest.param({"grammar_triggers": [{"type": 9, "value": "("}]}, "from 0 to 3", id="trigger"),
        pytest.param({"grammar_triggers": "x"}, "list of objects", id="triggers"),
    ],
)
def test_what_an_engine_does_not_survive_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ProxyError) as caught:
        refuse_hazards(fields)
    assert (caught.value.code, caught.value.status) == ("invalid_body", 400)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="nothing"),
        pytest.param(schema({"pattern": "^a{1,5}b{3}c{2,}$", "minLength": 1, "maxLength": 1}), id="ranges"),
        pytest.param(schema({"minItems": "many", "pattern": 7}), id="wrong-types"),
        pytest.param({"response_format": "x", "tools": 5}, id="no-objects"),
        pytest.param({"repeat_last_n": -1, "dry_penalty_last_n": 4096}, id="windows"),
        pytest.param(
            {"grammar": "root ::= " + "(" * DEEPEST_GRAMMAR + '"a"' + ")" * DEEPEST_GRAMMAR}, id="deep-enough"
        ),
        pytest.param(
            {"grammar": 'root ::= "' + "(" * 999 + '" [(\\]((]* # ' + "(" * 999}, id="brackets-in-texts"
        ),
        pytest.param({"grammar_triggers": [{"type": 1, "value": "x", "token": 5}]}, id="trigger"),
    ],
)
def test_what_it_takes_goes_on(fields: dict[str, Any]) -> None:
    refuse_hazards(fields)
