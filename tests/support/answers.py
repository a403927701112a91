"""Answers as the yield watch is told of them."""

from __future__ import annotations

from framework.values.spec_yield import AnswerSpeed, Drafting

PLAIN = Drafting("launch", "none")
NGRAM = Drafting("launch", "ngram-mod", "n-grams of 24")
HEAD = Drafting("launch", "draft-mtp", "head of depth 2")


def an_answer(
    by: Drafting = NGRAM,
    tokens_per_s: float = 10.0,
    *,
    busy_slots: int = 1,
    generated: int = 100,
    drafted: int = 50,
    accepted: int = 10,
    at_s: float = 0.0,
) -> AnswerSpeed:
    """One answer; what drafts nothing has no drafts."""
    if not by.means:
        drafted = accepted = 0
    return AnswerSpeed(by, busy_slots, generated, generated / tokens_per_s, drafted, accepted, at_s)
