"""Read from the log of a start why its slots cannot draft, although something was to (15 §3). Pure.

A drafter that does not go with the model ends no start: the engine says so in a line and serves without.
Called by runtime.readback. Only lines in the engine's own form count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from framework.engines.buffers_log import LINE
from framework.values.plain_text import brief

Cause = Literal["vocabulary", "other", ""]
VOCABULARY = re.compile(
    r"vocab type must match|draft vocabs? (?:is|are) not compatible|vocab size must match"
)
OTHER = re.compile(
    r"failed to initialize speculative|failed to load draft model|failed to create MTP context"
    r"|speculative decoding (?:is )?(?:not supported|disabled)"
    r"|doesn't contain MTP layers",
    re.IGNORECASE,
)


def draft_refusal(lines: Iterable[str]) -> tuple[Cause, str]:
    """The cause and the line that tells it, the clearest first; empty where no line does."""
    general = ""
    for line in lines:
        match = LINE.match(line)
        if match is None:
            continue
        if VOCABULARY.search(match["text"]):
            return "vocabulary", brief(match["text"])
        if not general and OTHER.search(match["text"]):
            general = brief(match["text"])
    return ("other", general) if general else ("", "")
