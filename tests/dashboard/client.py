"""A browser without a window: keeps cookies, sends what browsers send, follows nothing by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.dashboard.fake_system import FakeSystem
from tests.dashboard.html import Element, parse

BASE_URL = "http://127.0.0.1:8080"
SAME_ORIGIN = {"sec-fetch-site": "same-origin", "origin": BASE_URL}


@asynccontextmanager
async def browser(system: FakeSystem, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole application."""
    transport = httpx.ASGITransport(app=system.app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers) as client:
        yield client


async def page(client: httpx.AsyncClient, path: str, status: int = 200) -> Element:
    """A page as a tree."""
    answer = await client.get(path)
    assert answer.status_code == status, answer.text
    return parse(answer.text)


async def csrf_of(client: httpx.AsyncClient) -> str:
    """The token that forms of this session carry."""
    tree = await page(client, "/")
    return next(tree.all("input", name="csrf_token")).attributes["value"]


async def submit(client: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """Send a form from a page of ours, with the token of the session unless one is given."""
    if "csrf_token" not in fields:
        fields["csrf_token"] = await csrf_of(client)
    return await client.post(path, data=fields, headers=SAME_ORIGIN)
