"""A walk over every page in every state worth seeing: accessibility, width, policy, console, keyboard.

Pictures of all of them are left in build/screenshots.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.sample_states import STATES, WATCH_KEY, WIDE, closed
from tests.browser.site import serve
from tests.browser.visitor import is_live, visit
from tests.browser.walk import ALL_LOOKS, TWO_LOOKS, Findings, addresses, look, source, tab_through
from tests.dashboard.samples import HOSTILE

# Each looks at up to thirty pages, which take a minute by themselves and more on a busy machine.
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

# What Chromium writes for a page that says that there is no such thing.
NO_SUCH_THING = ("the server responded with a status of 404", "the server responded with a status of 422")
MODELS = {
    "ordinary": ("smollm2", "coder", "big", "long-context", "idle", "big-one", "on-host", "on-two", "pair"),
    "broken": ("big",),
    "hostile": (HOSTILE[0], f"{HOSTILE[5]} drafts", f"{HOSTILE[1]} failed"),
    "crowded": (WIDE,),
}
CODES = {"ordinary": ("out_of_memory", "companion_unfit"), "hostile": HOSTILE[:2]}


# Pages that look the same as in another state.
SAME = {"ordinary": (), "crowded": ("/reasons", "/files", "/manifest")}


# Some thirty pages in four looks each: a minute, two on a machine that does other things as well.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("state", STATES)
async def test_every_page_is_whole_and_for_everybody(
    chromium: Browser, axe_script: Path, tmp_path: Path, state: str
) -> None:
    system, findings = STATES[state](tmp_path), Findings()
    async with serve(system) as url:
        for path in await addresses(system, MODELS.get(state, ()), CODES.get(state, ())):
            if path in SAME.get(state, ("/reasons",)):
                continue
            where = f"{state} {path}"
            async with visit(chromium, allowed=NO_SUCH_THING) as page:
                await page.goto(url + path)
                if await page.locator("#live").count():
                    await is_live(page)
                every_look = state == "ordinary" and not path.startswith("/reasons")
                looks = ALL_LOOKS if every_look else TWO_LOOKS
                await look(page, where, source(axe_script), findings, looks)
                if state == "broken":
                    await expect(page.locator("#banner .banner").first).to_contain_text("was not applied")
                if state == "ordinary":
                    await tab_through(page, where, findings)
    assert not findings.all, "\n".join(findings.all)


async def test_who_has_to_sign_in_sees_no_less(chromium: Browser, axe_script: Path, tmp_path: Path) -> None:
    findings = Findings()
    async with serve(closed(tmp_path)) as url, visit(chromium) as page:
        await page.goto(url)
        await look(page, "closed /sign-in", source(axe_script), findings)
        await tab_through(page, "closed /sign-in", findings)
        await page.get_by_label("Key").fill(WATCH_KEY)
        await page.keyboard.press("Enter")
        await expect(page.locator(".who")).to_contain_text("view only")
        await look(page, "closed /", source(axe_script), findings, TWO_LOOKS)
    assert not findings.all, "\n".join(findings.all)
