"""Names of completions, the same for all flavours (12 §4.2)."""

from __future__ import annotations

import secrets
import string

_LETTERS = string.ascii_letters + string.digits
_LENGTH = 32


def new_completion_id() -> str:
    """`chatcmpl-` and 32 random letters and digits; it can't be guessed, since it commands the completion."""
    return "chatcmpl-" + "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
