"""Chromium, once for all browser tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.visitor import ARGUMENTS, CHROMIUM


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(browser_assets: object) -> AsyncIterator[Browser]:
    """Debian's Chromium with an empty profile. The page's own scripts are there."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        await browser.close()
