"""The pages of requests and their charts in a real browser: live, by keyboard, without script, hostile."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from framework.proxy.inflight import InFlight
from framework.proxy.records import ActiveRequest
from framework.telemetry.events import utc_now
from tests.browser.site import serve
from tests.browser.visitor import is_live, visit
from tests.browser.walk import TWO_LOOKS, Findings, look, source
from tests.dashboard import pool_samples, samples
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.samples import HOSTILE
from tests.telemetry.samples import life, record

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@asynccontextmanager
async def asked(folder: Path, *records: Any) -> AsyncIterator[tuple[FakeSystem, str]]:
    """A site whose request log has these, and its history too."""
    with life(folder) as one:
        system = make_system(samples.model("chat"), kept=one)
        system.services.request_log.adopt("full")
        for each in records:
            end(system, each)
        one.until(lambda: len(one.store.find_requests(limit=9999)) == len(records), "the request log")
        system.fleet.show(pool_samples.pool())
        system.services.history.looked(system.fleet.views(), system.fleet.pools())
        async with serve(system) as url:
            yield system, url


def end(system: FakeSystem, ended: Any) -> None:
    """A request ends, as the manager tells it."""
    system.services.request_log.keep(ended)
    system.services.history.request_ended(ended)
    system.services.changes.mark()


def begin(
    system: FakeSystem, request_id: str, route: str = "/v1/completions", **fields: Any
) -> ActiveRequest:
    active = ActiveRequest(request_id, utc_now(), route, 0.0, **{"model": "chat", **fields})
    in_flight = system.services.requests
    assert isinstance(in_flight, InFlight)
    in_flight.add(active)
    system.services.changes.mark()
    return active


def ordinary(number: int, **fields: Any) -> Any:
    return record(number, at=utc_now(), generation_tokens_per_s=30.0 + number, **fields)


async def test_a_request_arrives_on_top_and_in_the_chart_while_its_table_stays_open(
    chromium: Browser, tmp_path: Path
) -> None:
    async with asked(tmp_path, *map(ordinary, range(1, 6))) as (system, url), visit(chromium) as page:
        await page.goto(f"{url}/requests")
        await is_live(page)
        await page.locator("#speeds summary").click()
        end(system, ordinary(9))
        await expect(page.locator("#request-rows tr")).to_have_count(6)
        await expect(page.locator("#request-rows tr").first).to_contain_text("39.0 tokens/s")
        await expect(page.locator("#speeds-note")).to_contain_text("6 of the 6 requests")
        await expect(page.locator("#speeds details")).to_have_attribute("open", "")
        counts = await page.locator("#speeds-table-rows td").all_inner_texts()
        assert sum(map(int, counts)) == 6
        await expect(page.locator("#speeds rect.column")).to_have_count(len([c for c in counts if c != "0"]))


async def test_a_running_request_is_cancelled_by_keyboard_alone_and_keeps_the_focus(
    chromium: Browser, tmp_path: Path
) -> None:
    async with asked(tmp_path) as (system, url), visit(chromium, width=360) as page:
        await page.goto(f"{url}/requests")
        await is_live(page)
        active = begin(system, "req-live", phase="streaming")
        button = page.get_by_role("button", name="Cancel request of chat")
        await button.focus()
        age = page.locator(".running-age")
        before = await age.inner_text()
        await expect(age).not_to_have_text(before)
        await expect(button).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#notice")).to_contain_text("cancel of request req-live accepted")
        assert active.scope.cause == "cancelled"
        system.services.requests.remove(active)  # type: ignore[attr-defined]
        system.services.changes.mark()
        await expect(page.locator("#running")).to_contain_text("No request is being served.")


async def test_without_script_requests_are_filtered_and_cancelled(chromium: Browser, tmp_path: Path) -> None:
    records = (ordinary(1), ordinary(2, status=502))
    async with (
        asked(tmp_path, *records) as (system, url),
        visit(chromium, java_script_enabled=False) as page,
    ):
        active = begin(system, "req-live")
        await page.goto(f"{url}/requests")
        await page.get_by_label("Status").select_option("failed")
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator("#request-rows tr")).to_have_count(1)
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.locator("#notice")).to_contain_text("accepted")
        assert page.url.startswith(f"{url}/requests?status=failed")
        assert active.scope.cause == "cancelled"


@pytest.mark.parametrize("path", ["/requests", "/requests/req-1"])
async def test_pages_with_charts_are_whole_and_for_everybody(
    chromium: Browser, axe_script: Path, tmp_path: Path, path: str
) -> None:
    findings = Findings()
    hostile = [
        ordinary(
            number, model="chat", key=text, route=text, error=text, stop_reason=text, status=502, texts=text
        )
        for number, text in enumerate(HOSTILE, 1)
    ]
    async with asked(tmp_path, *hostile) as (system, url), visit(chromium, scheme="dark") as page:
        for number, text in enumerate(HOSTILE):
            begin(system, f"req-live-{number}", model=text, key=text, route=text)
        await page.goto(url + path)
        for summary in await page.locator("details.figure-table > summary").all():
            await summary.click()
        await look(page, f"requests {path}", source(axe_script), findings, TWO_LOOKS)
        assert findings.all == []
        assert await page.locator("#main img, #main script").count() == 0


async def test_the_charts_of_a_model_move_with_what_is_asked(chromium: Browser, tmp_path: Path) -> None:
    async with asked(tmp_path, ordinary(1)) as (system, url), visit(chromium) as page:
        await page.goto(f"{url}/models/chat")
        await is_live(page)
        requests = page.get_by_role("img", name=re.compile("^Requests"))
        await expect(requests.locator("rect.column")).to_have_count(1)
        end(system, ordinary(2, status=502))
        system.services.history.looked(system.fleet.views(), system.fleet.pools())
        system.services.changes.mark()
        await expect(requests.locator("rect.column-third")).to_have_count(1)
