"""What is sent compressed, and what is not."""

from __future__ import annotations

import gzip

import pytest

from framework.dashboard.assets import Assets
from tests.dashboard import samples
from tests.dashboard.client import browser
from tests.dashboard.fake_system import STATIC, make_system

MANY = tuple(samples.model(f"model-{number}") for number in range(300))
GZIP = {"accept-encoding": "gzip"}
PLAIN = {"accept-encoding": "identity"}


async def test_a_list_of_300_models_is_small_on_the_wire() -> None:
    async with browser(make_system(*MANY)) as client:
        answer = await client.get("/", headers=GZIP)
        plain = await client.get("/", headers=PLAIN)
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < 60_000
    assert len(plain.content) > 300_000
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_what_another_site_asks_for_tells_nothing_by_its_length(site: str) -> None:
    async with browser(make_system(*MANY)) as client:
        answer = await client.get("/", headers={**GZIP, "sec-fetch-site": site})
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("name", ["app.css", "app.js"])
async def test_an_asset_is_the_same_file_both_ways(name: str) -> None:
    url = Assets(STATIC).url(name)
    async with browser(make_system()) as client:
        async with client.stream("GET", url, headers=GZIP) as answer:
            packed = b"".join([part async for part in answer.aiter_raw()])
        plain = await client.get(url, headers=PLAIN)
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed) == plain.content == (STATIC / name).read_bytes()
    assert len(packed) < len(plain.content) / 2
    assert {answer.headers["vary"], plain.headers["vary"]} == {"Accept-Encoding"}


async def test_an_asset_that_a_browser_has_is_not_sent_again() -> None:
    async with browser(make_system()) as client:
        first = await client.get("/static/app.css")
        again = await client.get("/static/app.css", headers={"if-none-match": first.headers["etag"]})
        other = await client.get("/static/app.css", headers={"if-none-match": '"another"'})
    assert (again.status_code, again.content) == (304, b"")
    assert (other.status_code, len(other.content) > 0) == (200, True)
