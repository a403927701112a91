"""The dashboard of a real manager in a real browser: load, watch, use, break and mend, unload."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.visitor import ARGUMENTS, CHROMIUM, REPORT_VIOLATIONS
from tests.conftest import StartPaddock
from tests.e2e.clients import NO_EARLY_END, Stream, chat, model_table

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


def test_requests_are_seen_ended_and_measured(paddock_up: StartPaddock, page: Page, smollm2: Path) -> None:
    paddock = paddock_up(model_table("smol", smollm2), server='request_log = "full"')
    paddock.wait_state("smol", "ready")
    page.goto(f"{paddock.base_url}/requests")
    page.locator("#live-state[data-live=live]").wait_for()
    page.evaluate("window.same = true")
    stream = Stream(paddock, "smol", {"max_tokens": 900, **NO_EARLY_END})
    running = page.locator("#running")
    expect(running).to_contain_text("is answered")
    running.get_by_role("button", name="Cancel request of smol").press("Enter")
    expect(page.locator("#notice")).to_contain_text("accepted")
    stream.join()
    expect(running).to_contain_text("No request is being served.")
    expect(page.locator("#request-rows")).to_contain_text("cancelled")

    assert chat(paddock, "smol", max_tokens=24, **NO_EARLY_END).status_code == 200
    first = page.locator("#request-rows tr").first
    expect(first).to_contain_text("200")
    expect(first).to_contain_text(re.compile(r"24\s*[0-9.,]+ tokens/s"))
    (kept,) = paddock.api("GET", "/requests?status=200").json()["requests"]
    speed, seconds = kept["generation_tokens_per_s"], kept["generation_s"]
    # The engine's own clock: its tokens over its time, and that is within what the client waited.
    assert speed == pytest.approx(24 / seconds, rel=0.01)
    assert 0 < seconds <= kept["total_s"]
    assert page.evaluate("window.same")

    first.get_by_role("link").first.click()
    expect(page.get_by_role("img", name="Where its time went")).to_be_visible()
    expect(page.locator("#request")).to_contain_text("Say hello.")
    page.goto(f"{paddock.base_url}/models/smol")
    expect(page.get_by_role("img", name="Generation")).to_be_visible()
    page.goto("about:blank")
    paddock.stop()
    paddock.restart()

    def recalled() -> bool:
        steps = paddock.api("GET", "/models/smol/history").json()["steps"]
        return sum(step["requests"]["answered"] for step in steps) == 1

    paddock.wait(recalled, 20, "the hour before the restart")
