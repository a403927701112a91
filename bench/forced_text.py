"""Texts that a model is made to write, so that a bench knows what comes when.

A grammar with one sentence leaves one text: the model computes and samples as ever, drafts are found,
verified and refused as ever, and only the outcome is given.
"""

from __future__ import annotations

import random

ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def only(text: str) -> str:
    """The grammar (GBNF) of this one text."""
    return f'root ::= "{text.translate(ESCAPES)}"'


def records(n_lines: int, seed: int) -> str:
    """Lines of JSON that are alike and never the same: a list as programs write them."""
    drawn = random.Random(seed)
    return "".join(
        f'{{"id": {seed * 100 + at}, "size": {drawn.randrange(3, 40)}, "stock": {drawn.randrange(900)}}}\n'
        for at in range(n_lines)
    )


def scattered_words(n_words: int, seed: int) -> str:
    """Words of drawn letters: none can be guessed, and pairs of letters come again often enough to try."""
    drawn = random.Random(seed)
    return " ".join("".join(drawn.choices("abcdxyz", k=drawn.randrange(2, 6))) for _ in range(n_words)) + "\n"
