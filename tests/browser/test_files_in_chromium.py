"""The memory waterfall and the pages of model files in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.api.model_folder import fill
from tests.browser.site import serve
from tests.browser.visitor import overflow_px, visit
from tests.dashboard import fits, samples
from tests.dashboard.fake_system import make_system
from tests.dashboard.renders import planned

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WIDTHS = (360, 800, 1440, 2560)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_waterfall_is_drawn_with_its_patterns(chromium: Browser, scheme: str) -> None:
    system = make_system(planned("two", fits.ON_TWO))
    async with serve(system) as url, visit(chromium, scheme=scheme) as page:  # type: ignore[arg-type]
        await page.goto(f"{url}/models/two")
        picture = page.get_by_role("img", name="Memory on CUDA0")
        await expect(picture).to_be_visible()
        boxes = [await bar.bounding_box() for bar in await picture.locator(".step").all()]
        assert all(box is not None and box["width"] > 0 for box in boxes)
        ends = [box["x"] + box["width"] for box in boxes if box is not None]
        starts = [box["x"] for box in boxes if box is not None]
        assert all(abs(start - end) < 4 for start, end in zip(starts[1:], ends, strict=False))
        await expect(picture.locator(".step-over").first).to_be_visible()
        assert (
            await page.locator("#p-computed .p-ink").evaluate("e => getComputedStyle(e).fill")
            != "rgb(0, 0, 0)"
        )


async def test_no_text_of_a_waterfall_leaves_the_window(chromium: Browser) -> None:
    system = make_system(planned("two", fits.ON_TWO))
    async with serve(system) as url, visit(chromium, width=360) as page:
        await page.goto(f"{url}/models/two")
        for text in await page.locator(".chart text").all():
            box = await text.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 360


@pytest.mark.parametrize("name", ["", "tiny-F32.gguf", "broken.gguf", "markup <b>.gguf", "mmproj-tiny.gguf"])
async def test_a_page_of_files_is_whole_at_every_width(chromium: Browser, tmp_path: Path, name: str) -> None:
    system = make_system(samples.model(), folder=fill(tmp_path))
    async with serve(system) as url, visit(chromium, scheme="dark") as page:
        await page.goto(f"{url}/files")
        if name:
            await page.get_by_role("link", name=name).click()
            await expect(page.get_by_role("heading", level=1)).to_have_text(name)
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            assert await overflow_px(page) == 0, f"too wide for {width} px"


async def test_the_keyboard_leads_from_the_overview_into_a_file(chromium: Browser, tmp_path: Path) -> None:
    system = make_system(samples.model(), folder=fill(tmp_path))
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        files = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Files")
        for _ in range(20):
            await page.keyboard.press("Tab")
            if await files.evaluate("(e) => e === document.activeElement"):
                break
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"{url}/files")
        link = page.get_by_role("link", name="tiny-F32.gguf")
        while not await link.evaluate("e => e === document.activeElement"):
            await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("tiny-F32.gguf")


async def test_a_changed_setting_changes_the_memory_at_once(chromium: Browser, tmp_path: Path) -> None:
    system = make_system(samples.model(), folder=fill(tmp_path))
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/files")
        await page.get_by_role("link", name="tiny-F32.gguf").click()
        await expect(page.locator("#file-memory")).to_contain_text("8,192 tokens, 1 slot")
        await page.get_by_label("Context, tokens").fill("2048")
        await page.get_by_label("KV cache type").select_option("q8_0")
        await expect(page.locator("#file-memory")).to_contain_text("2,048 tokens, 1 slot, KV cache q8_0")
        assert "context=2048" in page.url
        await page.reload()
        await expect(page.locator("#file-memory")).to_contain_text("2,048 tokens")


async def test_the_form_works_without_script(chromium: Browser, tmp_path: Path) -> None:
    system = make_system(samples.model(), folder=fill(tmp_path))
    async with serve(system) as url, visit(chromium, java_script_enabled=False) as page:
        await page.goto(f"{url}/files")
        await page.get_by_role("link", name="tiny-F32.gguf").click()
        await page.get_by_label("Device").fill("H200")
        await page.get_by_role("button", name="Work out").click()
        await expect(page.locator("#file-memory")).to_contain_text("H200")


async def test_a_file_that_vanished_says_so(chromium: Browser, tmp_path: Path) -> None:
    system = make_system(samples.model(), folder=fill(tmp_path))
    allowed = ("Failed to load resource",)
    async with serve(system) as url, visit(chromium, allowed=allowed) as page:
        await page.goto(f"{url}/files")
        (tmp_path / "models" / "tiny-F32.gguf").unlink()
        await page.get_by_role("link", name="tiny-F32.gguf").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Not found")


async def test_a_senseless_setting_is_seen_beside_its_field_at_every_width(
    chromium: Browser, tmp_path: Path
) -> None:
    system = make_system(samples.model(), folder=fill(tmp_path))
    allowed = ("Failed to load resource",)
    async with serve(system) as url, visit(chromium, scheme="dark", allowed=allowed) as page:
        await page.goto(f"{url}/files")
        await page.get_by_role("link", name="tiny-F32.gguf").click()
        file_url = page.url
        await page.goto(f"{file_url}?context=100000000")
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            await expect(page.get_by_text("from 1 to 16,777,216 tokens")).to_be_visible()
            assert await overflow_px(page) == 0, f"too wide for {width} px"
        await page.get_by_role("link", name="Back to the usual settings").click()
        await expect(page.locator("#file-memory")).to_contain_text("8,192 tokens, 1 slot")


async def test_an_odd_setting_is_told_and_taken_back(chromium: Browser, tmp_path: Path) -> None:
    system = make_system(samples.model(), folder=fill(tmp_path))
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/files")
        await page.get_by_role("link", name="tiny-F32.gguf").click()
        await expect(page.locator("#file-notes")).to_be_hidden()
        await page.get_by_label("Context, tokens").fill("16384")
        await page.get_by_label("Slots").click()
        await expect(page.locator("#file-notes")).to_contain_text("above the 8,192 tokens")
        await page.get_by_label("Context, tokens").fill("")
        await page.get_by_label("Slots").click()
        await expect(page.locator("#file-notes")).to_be_hidden()
