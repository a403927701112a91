"""Bodies: what is JSON for us, and what never reaches an engine (cases BI-01, BI-03)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from framework.proxy.body import DEEPEST_NESTING, parse_object, read_object
from framework.proxy.body_budget import BodyBudget
from framework.proxy.errors import ClientGone, ProxyError

JSON = {"content-type": "application/json"}


def receiving(*messages: Message) -> Callable[[], Awaitable[Message]]:
    """An ASGI `receive` that gives these messages, then nothing."""
    pending = list(messages)

    async def receive() -> Message:
        if not pending:
            await asyncio.sleep(60)
        return pending.pop(0)

    return receive


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def read(*messages: Message, headers: dict[str, str] = JSON, limit: int = 100) -> object:
    share = BodyBudget().share()
    return await read_object(receiving(*messages), headers, limit_bytes=limit, silence_s=0.05, share=share)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b" \n", "empty", id="blank"),
        pytest.param(b"{", "line 1 column 2", id="open"),
        pytest.param(b'{"a":1}\n{', "line 2 column 1", id="two-values"),
        pytest.param(b"[1]", "JSON object", id="list"),
        pytest.param(b"null", "JSON object", id="null"),
        pytest.param(b'"x"', "JSON object", id="text"),
        pytest.param(b'{"a": NaN}', "line 1 column 7", id="nan"),
        pytest.param(b'{"a": Infinity}', "column 7", id="infinity"),
        pytest.param(b'{"a": 1e400}', "infinity", id="too-large"),
        pytest.param(b'{"a": "\xff"}', "UTF-8", id="no-utf8"),
        pytest.param(b"\xef\xbb\xbf{}", "column 1", id="byte-order-mark"),
        pytest.param(b"[" * 10_000_000, "not valid JSON", id="ten-million-brackets"),
        pytest.param(b'{"a":' * 300 + b"1" + b"}" * 300, "nests deeper", id="nested"),
    ],
)
def test_what_is_no_object_is_refused_with_its_place(raw: bytes, said: str) -> None:
    with pytest.raises(ProxyError) as caught:
        parse_object(raw)
    assert (caught.value.code, caught.value.status) == ("invalid_body", 400)
    assert said in caught.value.message


def test_nesting_up_to_the_limit_is_fine() -> None:
    levels = DEEPEST_NESTING - 1
    parse_object(b'{"a":' + b"[" * levels + b"]" * levels + b"}")


def test_many_shallow_objects_are_fine() -> None:
    assert parse_object(b'{"a":[' + b",".join([b"{}"] * 5000) + b"]}")


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_refused(raw: bytes) -> None:
    try:
        assert isinstance(parse_object(raw), dict)
    except ProxyError as error:
        assert error.status == 400


async def test_a_body_may_come_in_parts() -> None:
    assert await read(part(b'{"a"', more=True), part(b":1", more=True), part(b"}")) == {"a": 1}


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json",
        "Application/JSON; charset=UTF-8",
        'application/json;charset="utf-8"',
        "application/problem+json",
    ],
)
async def test_json_by_any_name(media_type: str) -> None:
    assert await read(part(b"{}"), headers={"content-type": media_type}) == {}


async def test_a_body_without_a_type_is_taken_for_json() -> None:
    assert await read(part(b"{}"), headers={}) == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "text/json+json"},
        {"content-type": ""},
        {**JSON, "content-encoding": "gzip"},
        {**JSON, "content-encoding": "br"},
    ],
    ids=lambda headers: next(reversed(headers.values())) or "empty",
)
async def test_other_types_and_compression_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ProxyError) as caught:
        await read(part(b"{}"), headers=headers)
    assert (caught.value.code, caught.value.status) == ("unsupported_media_type", 415)


@pytest.mark.parametrize("length", ["101", "9" * 5000], ids=["just-above", "absurd"])
async def test_a_body_that_says_it_is_too_large_is_not_read(length: str) -> None:
    with pytest.raises(ProxyError) as caught:
        await read(headers={**JSON, "content-length": length})
    assert (caught.value.code, caught.value.status) == ("body_too_large", 413)
    assert caught.value.headers == {"connection": "close"}


async def test_a_body_that_grows_too_large_is_given_up_on_the_way() -> None:
    with pytest.raises(ProxyError) as caught:
        await read(part(b"x" * 60, more=True), part(b"x" * 60, more=True))
    assert caught.value.code == "body_too_large"


async def test_a_client_that_leaves_while_it_sends_is_gone() -> None:
    with pytest.raises(ClientGone):
        await read(part(b"{", more=True), {"type": "http.disconnect"})


async def test_a_client_that_stops_sending_is_gone() -> None:
    with pytest.raises(ClientGone):
        await read(part(b"{", more=True))


async def test_a_body_that_trickles_ends_although_it_is_never_silent() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0.01)
        return part(b" ", more=True)

    share = BodyBudget().share()
    async with asyncio.timeout(30):
        with pytest.raises(ClientGone):
            await read_object(receive, JSON, limit_bytes=10**9, silence_s=0.2, share=share)


async def test_a_body_that_comes_in_many_parts_is_read() -> None:
    parts = [part(b'{"a": "', more=True), *(part(b"x", more=True) for _ in range(50)), part(b'"}')]
    assert await read(*parts) == {"a": "x" * 50}
