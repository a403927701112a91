"""The dashboard of a real manager in a real browser: load, watch, use, break and mend, unload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.visitor import ARGUMENTS, CHROMIUM, REPORT_VIOLATIONS
from tests.conftest import StartPaddock
from tests.e2e.clients import NO_EARLY_END, Stream, model_table

pytestmark = [pytest.mark.browser, pytest.mark.engine]

TIMEOUT_MS = 60_000


@pytest.fixture
def page(browser_assets: Path) -> Iterator[Page]:
    """A window; whatever the browser complains about fails the test."""
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        window = browser.new_page()
        window.set_default_timeout(TIMEOUT_MS)
        expect.set_options(timeout=TIMEOUT_MS)
        window.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.add_init_script(REPORT_VIOLATIONS)
        yield window
        browser.close()
    assert complaints == []


def test_the_life_of_a_model_is_seen_without_a_reload(
    paddock_up: StartPaddock, page: Page, smollm2: Path
) -> None:
    paddock = paddock_up(
        model_table("first", smollm2, load="manual") + model_table("second", smollm2, load="manual")
    )
    page.goto(paddock.base_url)
    page.locator("#live-state[data-live=live]").wait_for()
    page.evaluate("window.same = true")
    row = page.get_by_role("row").filter(has_text="first")
    expect(row).to_contain_text("Not loaded")
    row.get_by_role("button", name="Load").click()
    expect(row).to_contain_text("Ready")

    good = paddock.manifest.read_text()
    paddock.write(good + "\n[models.third]\ncontxt = 1\n")
    expect(page.locator("#banner")).to_contain_text("contxt")
    paddock.write(good)
    expect(page.locator("#banner")).not_to_contain_text("contxt")
    assert page.evaluate("window.same")

    row.get_by_role("link", name="first").click()
    page.locator("#live-state[data-live=live]").wait_for()
    expect(page.get_by_role("img", name="Memory on CPU")).to_be_visible()
    stream = Stream(paddock, "first", {"max_tokens": 300, **NO_EARLY_END})
    expect(page.locator("main")).to_contain_text("generating")
    expect(page.locator("main")).to_contain_text("llama-server")
    stream.join()
    page.get_by_role("button", name="Unload").click()
    expect(page.locator("main")).to_contain_text("Not loaded")
    paddock.wait_state("first", "stopped")

    page.get_by_role("link", name="Events", exact=True).click()
    for kind in ("command", "ready", "manifest_rejected", "stopped"):
        expect(page.locator("main")).to_contain_text(kind)
    assert paddock.pids() == {}
