"""Reading a submitted form: bounded in size and time, and what is wrong with it as a refusal that has a page.

Called by actions and session_pages, before anybody is known. Files are refused: no form of ours has any.
"""

from __future__ import annotations

import asyncio

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive

from framework.api.errors import ApiError

# A form of ours is a token, an address and a word.
FORM_LIMIT_BYTES = 64 * 1024
FORM_FIELDS = 20
# A kilobyte takes no time; who needs longer holds a connection open.
FORM_TIMEOUT_S = 20.0


async def read_form(
    request: Request, *, timeout_s: float = FORM_TIMEOUT_S, limit_bytes: int = FORM_LIMIT_BYTES
) -> FormData:
    """The fields. Raises ApiError 400 or 413, and starlette's ClientDisconnect."""
    bounded = Request(request.scope, _bounded(request.receive, limit_bytes))
    try:
        async with asyncio.timeout(timeout_s):
            return await bounded.form(max_files=0, max_fields=FORM_FIELDS, max_part_size=limit_bytes)
    except TimeoutError as error:
        raise ApiError(400, "invalid_body", "The form did not arrive in time; send it again.") from error
    except (HTTPException, MultiPartException) as error:
        why = error.detail if isinstance(error, HTTPException) else error.message
        raise ApiError(400, "invalid_body", f"The form cannot be read: {why}") from error


def field(form: FormData, name: str) -> str:
    """A text field of a form; nothing counts as empty."""
    value = form.get(name)
    return value if isinstance(value, str) else ""


def _bounded(receive: Receive, limit_bytes: int) -> Receive:
    received = 0

    async def receive_within_limit() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit_bytes:
            limit = f"at most {limit_bytes // 1024} KiB are allowed."
            raise ApiError(413, "body_too_large", f"The form is too large; {limit}")
        return message

    return receive_within_limit
