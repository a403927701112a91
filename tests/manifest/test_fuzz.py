"""Whatever the text is, reading it comes to an end with a manifest or with problems."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from framework.manifest.known_keys import all_keys
from tests.manifest.reading import VARIABLE, Reading, read

COMPLETE = Path(__file__).with_name("complete_manifest.toml").read_text(encoding="utf-8")
PIECES = [piece for piece in re.split(r"(\s+|[=\[\]{},\"'.#])", COMPLETE) if piece]
ODD_PIECES = [
    "\0",
    "\x7f",
    "\ufeff",
    "\r",
    "\u2028",
    "🦙",
    "[[",
    "]]",
    '"""',
    "'''",
    "${x}",
    "nan",
    "-inf",
    "9" * 30,
]
KEYS = sorted({".".join(f'"{part}"' for part in path) for path in all_keys()})


def consistent(reading: Reading) -> None:
    """What every result keeps, whatever was read."""
    loaded = reading.loaded
    assert (loaded.manifest is None) == bool(reading.errors)
    for problem in loaded.problems:
        least = 0 if problem.file == VARIABLE else 1
        assert problem.line >= least
        assert problem.column >= least
        assert problem.code
        assert problem.message
        assert "\n" not in problem.sentence, problem
        assert len(problem.sentence) < 3000


@settings(max_examples=80)
@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    consistent(read(text))


@settings(max_examples=100)
@given(
    at=st.integers(0, len(PIECES) - 1),
    length=st.integers(0, 8),
    put=st.lists(st.sampled_from(PIECES + ODD_PIECES), max_size=6),
)
def test_a_broken_manifest_is_read(at: int, length: int, put: list[str]) -> None:
    consistent(read("".join([*PIECES[:at], *put, *PIECES[at + length :]])))


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_any_value_of_any_key_is_read(keys: dict[str, Any]) -> None:
    consistent(read("".join(f"{key} = {toml(value)}\n" for key, value in keys.items())))


@settings(max_examples=50)
@given(st.binary(max_size=80))
@example(b"\x1c0")
def test_any_override_is_read(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    consistent(read("", overrides={"listen": text, "max_waiting": text, text: text}))
