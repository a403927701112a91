"""A person at the dashboard: Chromium windows that remember everything the browser complained about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from playwright.async_api import Browser, ConsoleMessage, Page

# Debian's Chromium as root in a container, without anything that talks to the network by itself.
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 30_000
# Makes a violated policy an error that is seen, also where the browser only reports it.
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error("policy violated: " + event.violatedDirective + " " + event.blockedURI);
});
"""


@asynccontextmanager
async def visit(
    browser: Browser,
    *,
    width: int = 1440,
    scheme: Literal["light", "dark"] = "light",
    allowed: tuple[str, ...] = (),
    **options: Any,
) -> AsyncIterator[Page]:
    """A fresh window with fresh cookies. Fails at its end for every complaint that is not `allowed`."""
    context = await browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, **options
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = await context.new_page()
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in allowed):
            complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
    if options.get("java_script_enabled", True):
        await page.add_init_script(REPORT_VIOLATIONS)
    try:
        yield page
    finally:
        await context.close()
    assert not complaints, "\n".join(complaints)


async def is_live(page: Page) -> None:
    """Wait until the page says that it is up to date by itself."""
    await page.locator("#live-state[data-live=live]").wait_for()


async def overflow_px(page: Page) -> int:
    """How far the page is wider than its window."""
    return int(
        await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )
