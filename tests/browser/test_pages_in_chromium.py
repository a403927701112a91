"""Pages in a real browser that are hostile, wrong, without scripts, or used by keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from framework.values.instance import QueueView, State
from tests.browser.sample_states import ordinary
from tests.browser.site import serve
from tests.browser.visitor import is_live, visit
from tests.dashboard import pool_samples, samples
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.samples import HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def pooled() -> FakeSystem:
    """Pools with every kind of resident and a queue, and a page of a model that waits."""
    waits = samples.model("big-one", State.PENDING, queue=QueueView(3, 16, 4.2, 11.7, position=1))
    system = make_system(samples.model(), samples.model("chat"), samples.model("remote"), waits)
    system.fleet.show(*pool_samples.all_pools())
    return system


async def test_hostile_text_runs_nothing_when_it_arrives_live(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await is_live(page)
        for text in HOSTILE:
            system.services.events.record("ready", text, model=text)
            system.fleet.put(samples.model(text, State.STOPPED))
        await expect(page.locator("#recent li").first).to_contain_text("DROP TABLE")
        assert await page.locator("#main img, #main script").count() == 0


async def test_a_wrong_address_is_a_page_too(chromium: Browser, tmp_path: Path) -> None:
    allowed = ("Failed to load resource",)
    async with serve(ordinary(tmp_path)) as url, visit(chromium, width=360, allowed=allowed) as page:
        await page.goto(f"{url}/models/smolm2")
        await page.get_by_role("link", name="smollm2").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("smollm2")


async def test_a_page_without_the_fetched_scripts_still_reads_and_refreshes(
    chromium: Browser, tmp_path: Path
) -> None:
    system = ordinary(tmp_path)
    async with serve(system) as url, visit(chromium, java_script_enabled=False) as page:
        await page.goto(url)
        system.fleet.put(samples.model(state=State.STOPPED))
        await page.get_by_role("link", name="Refresh").click()
        await expect(page.locator("tbody").first).to_contain_text("Not loaded")


async def test_a_model_is_unloaded_from_its_pool_by_keyboard_alone(chromium: Browser) -> None:
    system = pooled()
    async with serve(system) as url, visit(chromium, width=360) as page:
        await page.goto(f"{url}/pools")
        await is_live(page)
        button = page.get_by_role("button", name="Unload chat")
        await button.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#notice")).to_contain_text("unload of chat accepted")
        system.fleet.show(pool_samples.pool())
        await expect(page.locator("#pools")).to_contain_text("No model holds memory here.")
    assert system.fleet.asked == [("unload", "chat", "drain", "dashboard")]
