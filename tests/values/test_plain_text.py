"""Foreign text is harmless to look at."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.values.plain_text import encodable, visible, visible_lines

# Every character that moves or hides text and that no script needs for its letters.
NAMED = "\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2064\u2066\u2069\ufeff"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "plain \u00fc \u6f22\u5b57 \U0001f40e", "plain \u00fc \u6f22\u5b57 \U0001f40e", id="letters-stay"
        ),
        pytest.param("a\u202egpj.exe", "a\\u202egpj.exe", id="direction-override"),
        pytest.param("a\x1b[31mred\x07", "a\\x1b[31mred\\x07", id="terminal-control"),
        pytest.param("a\u200bb", "a\\u200bb", id="invisible-blank"),
        pytest.param("a\u2028b\x85c", "a\\u2028b\\x85c", id="line-separators"),
        pytest.param("a\U000e0041b", "a\\U000e0041b", id="tag-character"),
        pytest.param("a\ud800b", "a\\ud800b", id="lone-surrogate"),
        pytest.param("a\udcffb", "a\\xffb", id="byte-of-a-file-name"),
        pytest.param("a\tb\nc", "a\\x09b\\x0ac", id="one-line-stays-one-line"),
    ],
)
def test_hidden_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_text_of_several_lines_keeps_tabs_and_line_feeds_alone() -> None:
    assert visible_lines("a\tb\nc\rd\x0ce") == "a\tb\nc\\x0dd\\x0ce"


@pytest.mark.parametrize("character", NAMED, ids=[f"{ord(character):04x}" for character in NAMED])
def test_no_character_that_moves_text_gets_through(character: str) -> None:
    assert visible(character).isascii()
    assert visible_lines(character).isascii()


@given(st.text())
def test_whatever_is_shown_is_one_line_without_controls_and_can_be_sent(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(character) == "Cc" for character in shown)


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_encodable_stays_as_it_is(text: str) -> None:
    shown = encodable(text)
    shown.encode("utf-8")
    surrogates = any(unicodedata.category(character) == "Cs" for character in text)
    assert (shown == text) is not surrogates
