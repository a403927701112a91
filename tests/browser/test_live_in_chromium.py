"""What moves on a page by itself, and what must not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from playwright.async_api import Browser, Page, expect

from framework.values.instance import State
from tests.browser.site import serve
from tests.browser.visitor import is_live, visit
from tests.dashboard import samples
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.renders import PROBLEM

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

HIDE = "Object.defineProperty(document, 'hidden', {get: () => %s, configurable: true});"
# What Chromium and htmx write when a stream ends or a server is not there.
LOST = ("ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION", "Failed to load resource", "[object Event]")


async def set_hidden(page: Page, hidden: bool) -> None:
    """What happens when a tab goes to the back or comes to the front."""
    script = HIDE % str(hidden).lower() + "document.dispatchEvent(new Event('visibilitychange'))"
    await page.evaluate(script)


def listeners(system: FakeSystem) -> int:
    """Open streams that wait for a change."""
    return len(system.services.changes._waiters)


async def eventually_listening(system: FakeSystem, wanted: int) -> None:
    async with asyncio.timeout(8):
        while listeners(system) != wanted:
            await asyncio.sleep(0.02)


async def test_a_load_can_be_watched_from_start_to_ready(chromium: Browser) -> None:
    system = make_system(samples.model("coder", State.STOPPED))
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await is_live(page)
        row = page.locator("tbody")
        system.fleet.put(samples.loading())
        await expect(row).to_contain_text("37 % · reading 7 GiB of 19 GiB · about 42 s left")
        await expect(row.get_by_role("progressbar")).to_have_attribute("value", "0.368")
        system.fleet.put(samples.model("coder"))
        await expect(row.locator("[data-state=ready]")).to_be_visible()
        await expect(page.locator("#announce")).to_have_text("coder: Ready")
        await expect(page.locator("#show-ready")).to_contain_text("1")


async def test_slots_move_while_tokens_flow(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/models/smollm2")
        await is_live(page)
        view = system.fleet.models["smollm2"]
        (instance,) = view.instances
        slots = (samples.busy_slot(0, generated=2048, context_tokens=3072), *instance.slots[1:])
        system.fleet.put(replace(view, instances=(replace(instance, slots=slots),)))
        slot = page.locator(".slot").first
        await expect(slot).to_contain_text("context 3,072 of 4,096 tokens")
        await expect(slot.locator("rect")).to_have_attribute("width", "75.0%")


async def test_the_log_follows_its_end_until_its_reader_scrolls_back(chromium: Browser) -> None:
    system = make_system(samples.model())
    system.fleet.write("smollm2", *[f"line {number}" for number in range(150)])
    at_end = "Math.abs(document.querySelector('.log-scroll').scrollTop) < 2"
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/models/smollm2")
        await is_live(page)
        system.fleet.write("smollm2", "the newest line")
        await expect(page.locator("#log-lines li").last).to_have_text("the newest line")
        assert await page.evaluate(at_end)
        await page.evaluate("document.querySelector('.log-scroll').scrollTop = -600")
        system.fleet.write("smollm2", *[f"later {number}" for number in range(20)])
        await expect(page.locator("#log-lines li").last).to_have_text("later 19")
        assert not await page.evaluate(at_end)


async def test_a_long_night_of_lines_does_not_fill_the_page(chromium: Browser) -> None:
    system = make_system(samples.model())
    system.fleet.write("smollm2", "first")
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/models/smollm2")
        await is_live(page)
        await page.evaluate("document.getElementById('log-lines').dataset.keep = '50'")
        for batch in range(4):
            system.fleet.write("smollm2", *[f"{batch} {number}" for number in range(40)])
            await expect(page.locator("#log-lines li").last).to_have_text(f"{batch} 39")
        assert await page.locator("#log-lines li").count() <= 50


async def test_a_broken_manifest_shows_within_a_second_and_goes_when_it_is_good(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/events")
        await is_live(page)
        system.current.problems = (PROBLEM,)
        system.services.changes.mark()
        await expect(page.locator("#banner")).to_contain_text("serve.toml:14:1", timeout=1000)
        system.current.problems = ()
        system.services.changes.mark()
        await expect(page.locator("#banner")).to_be_empty()


async def test_events_arrive_at_the_top(chromium: Browser) -> None:
    system = make_system(samples.model())
    system.services.events.record("state", "the first")
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/events")
        await is_live(page)
        system.services.events.record("ready", "the second", model="smollm2")
        await expect(page.locator("#event-rows > li").first).to_contain_text("the second")
        assert await page.locator("#event-rows > li").count() == 2


async def test_the_keyboard_focus_stays_where_it_is_when_a_row_changes(chromium: Browser) -> None:
    system = make_system(samples.model("idle", State.STOPPED))
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await is_live(page)
        button = page.get_by_role("button", name="Load")
        await button.focus()
        system.fleet.put(samples.model("idle", State.STOPPED, stopped_by_command=True))
        await expect(page.locator("tbody")).to_contain_text("unloaded by command")
        await expect(button).to_be_focused()


async def test_a_model_that_is_removed_and_declared_again(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/models/smollm2")
        await is_live(page)
        system.fleet.remove("smollm2")
        await expect(page.locator("#model")).to_contain_text("no longer in the manifest")
        system.fleet.put(samples.model())
        await expect(page.locator("#model [data-state=ready]").first).to_be_visible()


async def test_a_hidden_tab_gives_its_connection_back_and_catches_up(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await is_live(page)
        await eventually_listening(system, 1)
        await set_hidden(page, True)
        await eventually_listening(system, 0)
        system.fleet.put(samples.model(state=State.STOPPED))
        await set_hidden(page, False)
        await expect(page.locator("tbody")).to_contain_text("Not loaded")


async def test_a_page_that_is_left_leaves_no_stream_behind(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await is_live(page)
        await page.goto(f"{url}/events")
        await is_live(page)
        await eventually_listening(system, 1)
    await eventually_listening(system, 0)


async def test_a_page_that_outlives_its_session_heals_itself(chromium: Browser) -> None:
    system = make_system(samples.model("idle", State.STOPPED))
    async with serve(system) as url, visit(chromium, allowed=LOST) as page:
        await page.goto(url)
        await is_live(page)
        for cookie in await page.context.cookies():
            system.services.sessions.end(cookie.get("value"))
        system.fleet.put(samples.model("idle", State.STOPPED, stopped_by_command=True))
        await expect(page.locator("tbody")).to_contain_text("unloaded by command")
        await page.get_by_role("button", name="Load").click()
        await expect(page.locator("#notice")).to_contain_text("load of idle accepted")


async def test_a_page_that_outlives_the_server_follows_the_next_one(chromium: Browser) -> None:
    async with visit(chromium, allowed=LOST) as page:
        async with serve(make_system(samples.model())) as url:
            await page.goto(url)
            await is_live(page)
        await expect(page.locator("#live-state")).to_contain_text("Connection lost")
        later = samples.NOW + timedelta(minutes=1)
        successor = make_system(samples.model(state=State.STOPPED), started_at=later)
        async with serve(successor, port=int(url.rpartition(":")[2])):
            await expect(page.locator("tbody")).to_contain_text("Not loaded")
            await page.get_by_role("button", name="Load smollm2").click()
            await expect(page.locator("#notice")).to_contain_text("load of smollm2 accepted")
            await page.goto("about:blank")


async def test_a_server_that_is_gone_is_said_to_be_gone(chromium: Browser) -> None:
    async with visit(chromium, allowed=LOST) as page:
        async with serve(make_system(samples.model())) as url:
            await page.goto(url)
            await is_live(page)
        await expect(page.locator("#live-state")).to_contain_text("Connection lost")
        await expect(page.get_by_role("link", name="Refresh")).to_be_visible()
