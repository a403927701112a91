"""Probability records of tokens as clients see them (12 §6.3, 10 §17). Called by every flavour."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from framework.nativeserver.core import TokenProbability, TokenRecord

LOWEST_LOGPROB = -3.4028234663852886e38
"""The logarithm of nothing, as JSON can hold it: the lowest float of 32 bits."""


def record_json(record: TokenRecord, *, post_sampling: bool) -> dict[str, Any]:
    """One token and its alternatives: probabilities after sampling, or logarithms of those before it.

    After sampling, what can't be drawn any more is no alternative.
    """
    top = [candidate for candidate in record.top if not post_sampling or candidate.probability > 0]
    top_name = "top_probs" if post_sampling else "top_logprobs"
    return {
        **_entry(record.chosen, post_sampling),
        top_name: [_entry(candidate, post_sampling) for candidate in top],
    }


def records_json(records: Iterable[TokenRecord], *, post_sampling: bool) -> list[dict[str, Any]]:
    """One record for each token."""
    return [record_json(record, post_sampling=post_sampling) for record in records]


def _entry(candidate: TokenProbability, post_sampling: bool) -> dict[str, Any]:
    piece = candidate.piece
    entry = {"id": candidate.token, "token": _whole_text(piece), "bytes": list(piece)}
    if post_sampling:
        return {**entry, "prob": candidate.probability}
    return {
        **entry,
        "logprob": math.log(candidate.probability) if candidate.probability > 0 else LOWEST_LOGPROB,
    }


def _whole_text(piece: bytes) -> str:
    """The text before the first character that is cut; other invalid bytes are U+FFFD."""
    return _without_cut_end(piece).decode(errors="replace")


def _without_cut_end(piece: bytes) -> bytes:
    """Without the bytes at the end that begin a character and do not end it."""
    for back in range(1, min(len(piece), 3) + 1):
        lead = piece[-back]
        if lead & 0xC0 == 0x80:
            continue
        length = 2 if lead & 0xE0 == 0xC0 else 3 if lead & 0xF0 == 0xE0 else 4 if lead & 0xF8 == 0xF0 else 1
        return piece[:-back] if length > back else piece
    return piece
