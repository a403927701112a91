"""A reason as clients of the endpoint may see it: without evidence, and without paths (08 §26.5). Pure.

Evidence and full paths are for the operator, who finds them in the API, the events and the log. What a client
needs to know, such as the name of the file that is missing, stays.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from framework.values.reason import Reason

# An absolute path as far as it can be told from text: it begins a word and ends at a blank or a quote.
PATH = re.compile(r"(?<![\w./:])/(?:[^\s'\"`/]+/)+([^\s'\"`/]*)")


def public_reason(reason: Reason) -> Reason:
    """The reason without evidence, its texts without directories."""
    message, remedy = (without_paths(text, reason) for text in (reason.message, reason.remedy))
    return replace(reason, message=message, remedy=remedy, evidence={})


def without_paths(text: str, reason: Reason | None = None) -> str:
    """A text with every absolute path cut to its last part.

    Paths that the evidence of `reason` names are found whatever they hold, such as blanks.
    """
    known = [str(value) for value in reason.evidence.values() if _is_path(value)] if reason else []
    for path in sorted(known, key=len, reverse=True):
        text = text.replace(path, Path(path).name)
    return PATH.sub(lambda match: match.group(1) or "...", text)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | Path) and len(str(value)) > 1 and str(value).startswith("/")
