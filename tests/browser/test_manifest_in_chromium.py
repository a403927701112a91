"""The editor of the manifest as it is used: findings while one types, a preview, an apply."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from framework.api.turns import MOST
from tests.browser.site import serve
from tests.browser.visitor import visit
from tests.dashboard import samples
from tests.dashboard.fake_system import make_system

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TEXT = '[models.smollm2]\nsource = "a.gguf"\n# größer\n'
MORE = f"{TEXT}slots = 2\n"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
async def test_a_text_is_previewed_and_applied_as_it_was_typed(
    chromium: Browser, tmp_path: Path, *, script: bool
) -> None:
    (tmp_path / "serve.toml").write_text(TEXT)
    system = make_system(samples.model(), folder=tmp_path)
    async with serve(system) as url, visit(chromium, java_script_enabled=script) as page:
        await page.goto(f"{url}/manifest")
        await page.locator("#manifest-text").fill(MORE)
        await page.get_by_role("button", name="Preview").click()
        await expect(page.locator("#manifest-preview")).to_contain_text("slots")
        await page.get_by_role("button", name="Apply").click()
        await expect(page.locator("#notice")).to_contain_text("serve.toml edited")
    assert (tmp_path / "serve.toml").read_text() == MORE


async def test_a_refusal_while_one_types_is_a_notice_and_the_next_stroke_is_checked(
    chromium: Browser, tmp_path: Path
) -> None:
    (tmp_path / "serve.toml").write_text(TEXT)
    system = make_system(samples.model(), folder=tmp_path)
    places = [system.services.turns.place(str(number)) for number in range(MOST)]
    allowed = ("Failed to load resource",)
    async with serve(system) as url, visit(chromium, allowed=allowed) as page:
        await page.goto(f"{url}/manifest")
        for place in places:
            place.__enter__()
        await page.locator("#manifest-text").fill(f"{TEXT}slot = 2\n")
        await expect(page.locator("#notice")).to_contain_text("Too many texts")
        await expect(page.locator("#manifest-verdict")).to_contain_text("It can be applied")
        for place in places:
            place.__exit__(None, None, None)
        await page.locator("#manifest-text").fill(f"{TEXT}slot = 3\n")
        await expect(page.locator("#manifest-verdict")).to_contain_text("1 error")
        await expect(page.locator("#manifest-check")).to_contain_text("slots")
        assert await page.locator("main").count() == 1
