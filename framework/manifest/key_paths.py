"""Paths of keys in a manifest, and how they are written for people: `models."org/m:Q4".aliases[1]`."""

from __future__ import annotations

import re

KeyPath = tuple[str | int, ...]
"""Keys are text, positions in lists are numbers from 0."""

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
LONGEST_SHOWN_KEY = 200


def dotted(path: KeyPath) -> str:
    """The path as TOML would spell it; keys that need quotes get them, very long ones are cut."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f"{'.' if text else ''}{quoted_key(part)}"
    return text


def quoted_key(key: str) -> str:
    """One key as TOML would spell it, on one line whatever it holds."""
    if BARE_KEY.fullmatch(key) and len(key) <= LONGEST_SHOWN_KEY:
        return key
    shown = key if len(key) <= LONGEST_SHOWN_KEY else key[: LONGEST_SHOWN_KEY - 1] + "…"
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_visible(character) for character in escaped) + '"'


def _visible(character: str) -> str:
    return character if character.isprintable() else f"\\u{ord(character):04X}"
