"""The one place that decides between a page and a part of it.

Called by `answers`; every URL that varies says so with `Vary: HX-Request, HX-Target`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

VARY = "HX-Request, HX-Target"
AS_NOTICE = {"hx-retarget": "#notice", "hx-reselect": "#notice > *", "hx-reswap": "innerHTML"}
"""Puts an answer to where notices stand, whatever part of the page it was asked for."""


def wanted_block(headers: Mapping[str, str], blocks: Collection[str]) -> str | None:
    """The template block that htmx asks for by the id of its target, None for the whole page.

    A target that is no block wants the page, too.
    """
    if not wants_part(headers):
        return None
    target = headers.get("hx-target", "")
    return target if target in blocks else None


def wants_part(headers: Mapping[str, str]) -> bool:
    """Whether a script puts the answer into a page; a restored history entry and a boosted link are pages."""
    is_page = "true" in (headers.get("hx-boosted"), headers.get("hx-history-restore-request"))
    return is_htmx(headers) and not is_page


def is_htmx(headers: Mapping[str, str]) -> bool:
    """Whether a script asks, so that a redirect to another page must be spelled for it."""
    return headers.get("hx-request") == "true"
