"""Every page of a system by its routes, and what is looked at on each: accessibility, width, keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Page
from starlette.routing import Route

from framework.dashboard.answers import SIGN_IN
from framework.dashboard.live_address import LIVE
from framework.dashboard.routes import dashboard_routes
from framework.dashboard.urls import file_url, model_url, reason_url
from tests.browser.visitor import overflow_px
from tests.dashboard.fake_system import ROOT, STATIC, TEMPLATES, FakeSystem

Scheme = Literal["light", "dark"]
SCREENSHOTS = ROOT / "build" / "screenshots"
ALL_LOOKS: tuple[tuple[int, Scheme], ...] = ((360, "light"), (360, "dark"), (1440, "light"), (1440, "dark"))
"""Widths of the window with colour schemes."""
TWO_LOOKS = (ALL_LOOKS[0], ALL_LOOKS[3])
"""For states that differ in their texts only: each width and each scheme once."""
# Only that nothing overflows: a tablet, and a very wide screen.
OTHER_WIDTHS = (800, 2560)
HEIGHT = 900
BAD = ("serious", "critical")
NAME_LENGTH = 60
# Answers that are no pages, and the page that those who are in are sent away from.
NO_PAGES = (LIVE, "/static/", SIGN_IN)

RUN_AXE = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.map((rule) => ({
    rule: rule.id, impact: rule.impact, help: rule.help,
    nodes: rule.nodes.slice(0, 3).map((node) => node.target.join(" ") + "  " + node.html.slice(0, 160)),
  }));
}"""
# Whether an element can be reached by Tab, as HTML has it: shown, enabled, not taken out of the order.
REACHABLE = """() => {
  const all = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]");
  const marked = [...all].filter((one) =>
    one.tabIndex >= 0 && !one.disabled && one.checkVisibility({visibilityProperty: true}));
  marked.forEach((one, number) => { one.dataset.walk = number; });
  return marked.length;
}"""
# A field that has the focus from the start would be where Tab goes on from.
FROM_THE_TOP = """() => {
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.removeAttribute("tabindex");
  scrollTo(0, 0);
}"""
# What the focus comes to, in order, until it leaves the page or comes back to where it has been.
WATCH_FOCUS = """() => {
  window.walked = [];
  document.addEventListener("focusin", (event) => {
    const one = event.target;
    const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    window.walked.push({
      number: one.dataset.walk ?? null,
      html: one.outerHTML.slice(0, 120),
      outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
      inside: box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight,
    });
  });
}"""


@dataclass
class Findings:
    """What is wrong with the pages of a walk, a line for each fault."""

    all: list[str] = field(default_factory=list)

    def add(self, where: str, what: str) -> None:
        """Note a fault."""
        self.all.append(f"{where}: {what}")


async def addresses(system: FakeSystem, models: Sequence[str], codes: Iterable[str]) -> list[str]:
    """One address for each GET page, several where a path has a name in it.

    A new page whose path has a parameter fails here until it is given samples.
    """
    files = (await system.services.files.list()).files
    named: Mapping[str, list[str]] = {
        "/models/{name:any}": [model_url(name) for name in (*models, "nobody")],
        "/manifest/history/{id}": ["/manifest/history/1"],
        "/requests/{id}": ["/requests/req-0", "/requests/none"],
        "/files/{id}": [file_url(one.id) for one in files],
        "/reasons/{code:any}": [reason_url(code) for code in (*codes, "no_such_code")],
    }
    paths = [
        route.path
        for route in dashboard_routes(system.services, TEMPLATES, STATIC)
        if isinstance(route, Route) and "GET" in (route.methods or ()) and not route.path.startswith(NO_PAGES)
    ]
    unknown = [path for path in paths if "{" in path and path not in named]
    assert not unknown, f"pages without an address to look at: {unknown}"
    return [address for path in paths for address in named.get(path, [path])]


async def look(
    page: Page, where: str, axe: str, findings: Findings, looks: Iterable[tuple[int, Scheme]] = ALL_LOOKS
) -> None:
    """The page at hand in windows of these widths and schemes: rules, width, a picture of each."""
    await page.evaluate(axe)
    for width, scheme in looks:
        await page.set_viewport_size({"width": width, "height": HEIGHT})
        await page.emulate_media(color_scheme=scheme)
        for rule in await page.evaluate(RUN_AXE):
            if rule["impact"] in BAD:
                faults = f"{rule['rule']} ({rule['help']}): {json.dumps(rule['nodes'])}"
                findings.add(f"{where} at {width} px, {scheme}", faults)
        await page.screenshot(path=_picture(where, width, scheme), scale="css")
        await _check_width(page, where, width, findings)
    for width in OTHER_WIDTHS:
        await page.set_viewport_size({"width": width, "height": HEIGHT})
        await _check_width(page, where, width, findings)


async def tab_through(page: Page, where: str, findings: Findings) -> None:
    """Every control is reached by Tab, and is seen to be."""
    wanted = int(await page.evaluate(REACHABLE))
    await page.evaluate(FROM_THE_TOP)
    await page.evaluate(WATCH_FOCUS)
    for _ in range(wanted):
        await page.keyboard.press("Tab")
    walked: list[dict[str, Any]] = await page.evaluate("() => window.walked")
    for focused in walked:
        if not focused["outlined"]:
            findings.add(where, f"the focus is not seen on {focused['html']}")
        if not focused["inside"]:
            findings.add(where, f"the focus is out of sight on {focused['html']}")
    reached = {focused["number"] for focused in walked}
    missed = sorted(set(map(str, range(wanted))) - reached, key=int)
    for number in missed:
        html = await page.locator(f'[data-walk="{number}"]').evaluate("(e) => e.outerHTML.slice(0, 120)")
        findings.add(where, f"Tab does not reach {html}")


@cache
def source(script: Path) -> str:
    """A script as it is."""
    return script.read_text(encoding="utf-8")


async def _check_width(page: Page, where: str, width: int, findings: Findings) -> None:
    if (beyond := await overflow_px(page)) > 0:
        findings.add(where, f"{beyond} px wider than a window of {width} px")


def _picture(where: str, width: int, scheme: str) -> Path:
    """Where the picture of a page lies; names are foreign text."""
    state, _, path = where.partition(" ")
    words = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "overview"
    if len(words) > NAME_LENGTH:
        words = f"{words[:NAME_LENGTH]}-{sha256(path.encode()).hexdigest()[:6]}"
    return SCREENSHOTS / state / f"{words}-{width}-{scheme}.png"
