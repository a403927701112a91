"""Accepted spellings of speculation modes and the canonical mode behind each (05 §2)."""

from __future__ import annotations

from typing import Any

CANONICAL = ("auto", "off", "mtp", "ngram", "mtp+ngram", "ngram-simple", "draft", "eagle3", "dflash")
SPELLINGS = {
    "default": "auto",
    "draft-mtp": "mtp",
    "ngram-mod": "ngram",
    "none": "off",
    "draft-simple": "draft",
    "draft-eagle3": "eagle3",
    "draft-dflash": "dflash",
}
ACCEPTED = (*CANONICAL, *SPELLINGS)
"""Every single word; lists of words for `mtp` and `ngram` are accepted too."""
MODES_WITH_DRAFTER = ("auto", "mtp", "mtp+ngram", "draft", "eagle3", "dflash")
"""Those in which a drafter that is named is loaded."""
MTP_WORDS = frozenset({"mtp", "draft-mtp"})
NGRAM_WORDS = frozenset({"ngram", "ngram-mod"})
MODES_OF_DRAFTER = ("draft", "eagle3", "dflash")
"""Those that are nothing without a drafter, which `draft` has to name."""
TYPES_WITHOUT_MODE = ("ngram-map-k", "ngram-map-k4v", "ngram-cache")
"""What engines can draft with besides, for those who give the flag themselves."""


def canonical_mode(value: Any) -> str:
    """The canonical mode of any written value; what is not known, or blank, is `auto`."""
    return _known_mode(value) or "auto"


def is_known_mode(value: Any) -> bool:
    """False for text that is no accepted spelling and so falls back to `auto` (05 §2.4)."""
    return _known_mode(value) is not None


def unused_parts(value: Any) -> tuple[str, ...]:
    """Words of a list that count for nothing beside the one or two that make its mode (05 §2.2)."""
    if not isinstance(value, str) or "," not in value or not is_known_mode(value):
        return ()
    parts = dict.fromkeys(part.strip() for part in value.split(","))
    return tuple(part for part in parts if part and part.lower() not in MTP_WORDS | NGRAM_WORDS)


def _known_mode(value: Any) -> str | None:
    if isinstance(value, bool):
        return "auto" if value else "off"
    if not isinstance(value, str) or not value.strip():
        return "auto"
    word = value.strip().lower()
    if word in CANONICAL:
        return word
    if word in SPELLINGS:
        return SPELLINGS[word]
    parts = {part.strip() for part in word.split(",")}
    has_mtp, has_ngram = bool(parts & MTP_WORDS), bool(parts & NGRAM_WORDS)
    if has_mtp and has_ngram:
        return "mtp+ngram"
    if has_mtp:
        return "mtp"
    return "ngram" if has_ngram else None
