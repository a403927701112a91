"""The Speculation page in a real browser: live, by keyboard alone, and without script."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.site import serve
from tests.browser.visitor import is_live, visit
from tests.dashboard import spec_samples
from tests.dashboard.fake_system import make_system

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_what_the_watch_finds_arrives_in_place(chromium: Browser) -> None:
    system = make_system(spec_samples.model("unlucky"))
    async with serve(system) as url, visit(chromium, width=360) as page:
        await page.goto(f"{url}/speculation")
        await is_live(page)
        await expect(page.locator(".standing")).to_contain_text("Worth it: 1.84\u00d7")
        await page.evaluate("window.same = true")
        system.fleet.put(spec_samples.losing())
        await expect(page.locator(".standing")).to_contain_text("Slower than without")
        await expect(page.locator(".spec-speeds")).to_contain_text("speculation_unprofitable")
        await expect(page.locator(".spec-models")).to_contain_text("0.71\u00d7")
        assert await page.evaluate("window.same")


async def test_positions_are_drawn_as_long_as_they_say(chromium: Browser) -> None:
    system = make_system(spec_samples.model())
    async with serve(system) as url, visit(chromium, scheme="dark") as page:
        await page.goto(f"{url}/speculation")
        widths = []
        for bar in await page.locator(".position-list .bar").all():
            box, filled = await bar.bounding_box(), await bar.locator("rect").bounding_box()
            assert box is not None
            assert filled is not None
            widths.append(round(filled["width"] / box["width"], 2))
        assert widths == pytest.approx([0.87, 0.69, 0.33], abs=0.02)
        await expect(page.get_by_role("img", name="position 2: 69 % of 1,300 drafts")).to_be_visible()


async def test_the_keyboard_leads_from_a_row_to_its_details_and_on_to_the_model(chromium: Browser) -> None:
    system = make_system(*spec_samples.all_models())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await page.get_by_role("link", name="Speculation", exact=True).focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"{url}/speculation")
        await page.get_by_role("link", name="Details of pair").focus()
        await page.keyboard.press("Enter")
        card = page.locator(".spec-card:target")
        await expect(card).to_contain_text("Name a drafter of the same vocabulary.")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("pair")


async def test_without_script_the_page_is_whole_and_refreshes(chromium: Browser) -> None:
    system = make_system(spec_samples.model("pair"))
    async with serve(system) as url, visit(chromium, java_script_enabled=False) as page:
        await page.goto(f"{url}/speculation")
        await expect(page.locator(".positions")).to_contain_text("87 % of 1,500 drafts")
        system.fleet.put(spec_samples.inactive())
        await page.get_by_role("link", name="Refresh").click()
        await expect(page.locator(".spec-instance")).to_contain_text("speculation_inactive")
