"""Ids of page elements. Names are foreign text of any length, so an id holds a digest of them."""

from __future__ import annotations

from hashlib import sha256

# 40 bits: among a few hundred names on one page two alike are out of the question.
DIGEST_LENGTH = 10


def element_id(prefix: str, name: str) -> str:
    """A stable id for what is called `name`, safe in HTML and in CSS selectors."""
    return f"{prefix}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:DIGEST_LENGTH]}"
