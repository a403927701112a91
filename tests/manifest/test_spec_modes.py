"""Spellings of speculation modes (05 §2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.manifest.spec_modes import CANONICAL, canonical_mode, is_known_mode


@pytest.mark.parametrize("mode", CANONICAL)
def test_a_canonical_mode_is_itself(mode: str) -> None:
    assert canonical_mode(f" {mode.upper()} ") == mode


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        (True, "auto"),
        (False, "off"),
        ("", "auto"),
        ("  ", "auto"),
        (None, "auto"),
        (5, "auto"),
        ("default", "auto"),
        ("none", "off"),
        ("draft-mtp", "mtp"),
        ("ngram-mod", "ngram"),
        ("draft-simple", "draft"),
        ("draft-eagle3", "eagle3"),
        ("draft-dflash", "dflash"),
        ("draft-mtp, ngram-mod", "mtp+ngram"),
        ("ngram,mtp", "mtp+ngram"),
        ("mtp,x", "mtp"),
        ("x,ngram", "ngram"),
        ("ngram-mod,foo", "ngram"),
        ("ngram-simple,mtp", "mtp"),
        ("ngram-simple,draft", "auto"),
        ("ngrm", "auto"),
    ],
)
def test_other_spellings_have_one_canonical_mode(written: Any, mode: str) -> None:
    assert canonical_mode(written) == mode


@pytest.mark.parametrize("written", ["ngrm", "ngram-simple,draft", "on", "mtp ngram"])
def test_what_is_no_spelling_is_not_known(written: str) -> None:
    assert not is_known_mode(written)


@given(st.text(max_size=20))
def test_any_text_has_a_canonical_mode(text: str) -> None:
    assert canonical_mode(text) in CANONICAL
