"""Forms that are none of ours: refused with a page, before anybody is known."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from framework.api.errors import ApiError
from framework.dashboard.forms import FORM_FIELDS, FORM_LIMIT_BYTES, field, read_form
from tests.dashboard import samples
from tests.dashboard.client import SAME_ORIGIN, browser
from tests.dashboard.fake_system import make_system
from tests.dashboard.html import parse

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"
FILE = b'--x\r\nContent-Disposition: form-data; name="back"; filename="a"\r\n\r\nhi\r\n--x--\r\n'
FIELD = b'--x\r\nContent-Disposition: form-data; name="back"\r\n\r\n/events\r\n--x--\r\n'


def form_of(*parts: bytes, media_type: str = URLENCODED, then: Message | None = None) -> Request:
    """A request that sends these parts, and then perhaps something else than their end."""
    pending: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    pending.append(then or {"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        if not pending:
            await asyncio.sleep(60)
        return pending.pop(0)

    headers = [(b"content-type", media_type.encode())]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


@pytest.mark.parametrize(
    ("request_", "value"),
    [
        pytest.param(form_of(b"back=%2Fevents&a=1"), "/events", id="urlencoded"),
        pytest.param(form_of(FIELD, media_type=MULTIPART), "/events", id="multipart"),
        pytest.param(form_of(b"back=%ff"), "\ufffd", id="no-utf-8"),
        pytest.param(form_of(b"back=a", media_type="text/plain"), "", id="no-form"),
    ],
)
async def test_fields_are_read(request_: Request, value: str) -> None:
    assert field(await read_form(request_), "back") == value


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        pytest.param(form_of(b"", media_type="multipart/form-data"), 400, "boundary", id="no-boundary"),
        pytest.param(form_of(b"a=1&" * (FORM_FIELDS + 1)), 400, "Too many fields", id="many-fields"),
        pytest.param(form_of(FILE, media_type=MULTIPART), 400, "Too many files", id="a-file"),
        pytest.param(form_of(b"a=", b"1" * FORM_LIMIT_BYTES), 413, "64 KiB", id="large"),
    ],
)
async def test_what_is_no_form_of_ours_is_refused(request_: Request, status: int, said: str) -> None:
    with pytest.raises(ApiError) as caught:
        await read_form(request_)
    assert caught.value.status == status
    assert said in caught.value.message


async def test_a_form_that_does_not_arrive_is_given_up() -> None:
    unfinished = form_of(b"a=", then={"type": "http.request", "body": b"1", "more_body": True})
    with pytest.raises(ApiError) as caught:
        await read_form(unfinished, timeout_s=0.05)
    assert caught.value.status == 400
    assert "in time" in caught.value.message


async def test_who_leaves_in_between_is_gone() -> None:
    with pytest.raises(ClientDisconnect):
        await read_form(form_of(b"a=", then={"type": "http.disconnect"}))


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/models/smollm2/load"])
@pytest.mark.parametrize(
    ("content", "media_type", "status", "said"),
    [
        pytest.param(b"a=" + b"1" * FORM_LIMIT_BYTES, URLENCODED, 413, "too large", id="large"),
        pytest.param(b"", "multipart/form-data", 400, "boundary", id="no-boundary"),
        pytest.param(b"a=1&" * (FORM_FIELDS + 1), URLENCODED, 400, "Too many fields", id="many-fields"),
    ],
)
async def test_a_refused_form_has_a_page(
    path: str, content: bytes, media_type: str, status: int, said: str
) -> None:
    async with browser(make_system(samples.model())) as client:
        headers = {**SAME_ORIGIN, "content-type": media_type}
        answer = await client.post(path, content=content, headers=headers)
    assert answer.status_code == status
    assert said in parse(answer.text).one("main").text
    assert "content-security-policy" in answer.headers


@pytest.mark.parametrize(
    "path", ["/", "/events", "/models/smollm2", "/sign-in", "/sign-in?next=/events", "/live"]
)
async def test_every_page_is_refused_under_a_foreign_name(path: str) -> None:
    async with browser(make_system(samples.model())) as client:
        answer = await client.get(path, headers={"host": "evil.example"})
    assert answer.status_code == 403
    assert "Host header" in parse(answer.text).one("main").text
    assert "smollm2" not in answer.text
