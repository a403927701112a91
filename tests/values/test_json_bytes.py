"""Values become JSON whatever they hold."""

from __future__ import annotations

import json
import os

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.values.json_bytes import json_bytes

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param({"a": [1, "\u00fc"]}, '{"a":[1,"\u00fc"]}', id="plain"),
        pytest.param(os.fsdecode(b"/m/sur\xff.gguf"), '"/m/sur\\\\xff.gguf"', id="name-of-a-file"),
        pytest.param({os.fsdecode(b"\xfe"): ("x\ny", 2**70)}, f'{{"\\\\xfe":["x\\ny",{2**70}]}}', id="deep"),
        pytest.param([2**70, float("inf"), float("nan")], f"[{2**70},null,null]", id="numbers"),
    ],
)
def test_what_the_encoder_refuses_is_shown(value: object, written: str) -> None:
    assert json_bytes(value).decode() == written


def test_what_is_no_value_is_an_error() -> None:
    with pytest.raises(TypeError):
        json_bytes({"a": object()})


@given(ANYTHING)
def test_every_value_can_be_read_back_as_utf_8(value: object) -> None:
    json.loads(json_bytes(value).decode("utf-8"))


def test_the_result_is_what_strict_readers_take() -> None:
    assert orjson.loads(json_bytes({"path": "a\udcff"})) == {"path": "a\\xff"}
