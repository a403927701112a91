"""The one place that decides between a page and a part of it.

Called by `answers`; every URL that varies says so with `Vary: HX-Request, HX-Target`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

VARY = "HX-Request, HX-Target"


def wanted_block(headers: Mapping[str, str], blocks: Collection[str]) -> str | None:
    """The template block that htmx asks for by the id of its target, None for the whole page.

    A restored history entry and a boosted link want the page; a target that is no block does too.
    """
    if headers.get("hx-request") != "true" or headers.get("hx-boosted") == "true":
        return None
    if headers.get("hx-history-restore-request") == "true":
        return None
    target = headers.get("hx-target", "")
    return target if target in blocks else None


def is_htmx(headers: Mapping[str, str]) -> bool:
    """Whether a script asks, so that a redirect to another page must be spelled for it."""
    return headers.get("hx-request") == "true"
