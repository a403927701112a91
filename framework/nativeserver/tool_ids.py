"""Ids of calls and of items of answers: made up here, unique, and of the form that clients know."""

from __future__ import annotations

import secrets
import string

_LETTERS = string.ascii_letters + string.digits
_ITEM_LENGTH = 32


def new_call_id(length: int) -> str:
    """An id for a call to which the model gave none: letters and digits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(length))


def new_item_id(prefix: str) -> str:
    """`rs_…`, `msg_…`, `fc_…`, `resp_…`."""
    return f"{prefix}_{new_call_id(_ITEM_LENGTH)}"
