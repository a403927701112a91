"""What was probably meant by a flag or a word nobody knows. Pure; called by command_line and speculation."""

from __future__ import annotations

from collections.abc import Iterable

from framework.manifest.suggest import nearest
from framework.nativeserver.flags.flag import Flag
from framework.values.dashes import DASHES

MISSPELT, SIMILAR = 0.8, 0.7
"""Likeness from which a word is surely misspelt, and from which it is worth a guess."""
SHORTEST_PART = 3
"""Characters; shorter ones are part of too many words."""
JOINT = "-"


def meant_word(word: str, known: Iterable[str]) -> str:
    """The word that `word` misspells, else the one that it begins, is a part of or resembles; empty when
    there is none."""
    known, part = tuple(known), word.lower()
    if near := nearest(word, known, likeness=MISSPELT):
        return near
    holding = [one for one in known if len(part) >= SHORTEST_PART and part in one.lower()]
    begun = [one for one in holding if one.lower().startswith(part)]
    whole = [one for one in begun if one.lower().startswith(part + JOINT)]
    return min(whole or begun or holding, key=len, default="") or nearest(word, known, likeness=SIMILAR)


def meant_flag(token: str, flags: Iterable[Flag]) -> str:
    """The spelling that `token` comes close to, whatever stands for its dashes; empty when none does.

    Of flags that are refused nothing is offered.
    """
    if DASHES.match(token) is None:
        return ""
    taken = (flag for flag in flags if flag.role not in ("refused", "removed"))
    bare = {DASHES.sub("", spelling, count=1): spelling for flag in taken for spelling in flag.spellings}
    name = DASHES.sub("", token, count=1).replace("_", "-")
    return bare.get(meant_word(name, bare), "")


def ask(meant: str) -> str:
    """The question for the end of an error; empty when nothing was found."""
    return f"; did you mean {meant}?" if meant else ""
