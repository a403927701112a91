"""Every page in a real browser: nothing breaks, nothing overflows, nothing violates the policy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.async_api import Browser, expect

from framework.dashboard.urls import model_url, url_part
from framework.values.instance import QueueView, State
from framework.values.reason import Reason
from tests.browser.site import serve
from tests.browser.visitor import is_live, overflow_px, visit
from tests.dashboard import fits, pool_samples, samples, spec_samples
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.renders import PROBLEM, hostile_pool, planned
from tests.dashboard.samples import HOSTILE

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WIDTHS = (360, 800, 1440, 2560)


def ordinary() -> FakeSystem:
    """One model in each state that looks different."""
    system = make_system(
        samples.model(),
        samples.loading(),
        samples.failed(),
        samples.degraded(),
        samples.model("idle", State.STOPPED),
        planned("on-host", fits.ON_HOST),
        planned("on-two", fits.ON_TWO),
        planned("on-three", fits.ON_THREE),
    )
    system.services.events.record("degraded", "context lowered", model="smollm2", reason=samples.CONTEXT_CUT)
    system.fleet.write("smollm2", *[f"line {number} " + "word " * 40 for number in range(100)])
    return system


def broken() -> FakeSystem:
    """The same with a manifest that does not apply."""
    system = ordinary()
    system.current.problems = (PROBLEM,) * 3
    system.current.server_notices = ("listen",)
    return system


def hostile() -> FakeSystem:
    """Hostile text in every name, message and line."""
    views = [
        samples.model(
            text, asked=samples.request(text, live={"aliases": (f"{text} too",), "display_name": text})
        )
        for text in HOSTILE
    ]
    system = make_system(*views)
    for text in HOSTILE:
        reason = Reason("a_code", text, text, "error", {text: text})
        system.services.events.record("state", text, model=text, reason=reason, data={text: text})
        system.fleet.write(HOSTILE[0], text)
        system.fleet.write(HOSTILE[5], text)
    return system


def pooled() -> FakeSystem:
    """Pools with every kind of resident and a queue, and a page of a model that waits."""
    waits = samples.model("big-one", State.PENDING, queue=QueueView(3, 16, 4.2, 11.7, position=1))
    system = make_system(samples.model(), samples.model("chat"), samples.model("remote"), waits)
    system.fleet.show(*pool_samples.all_pools())
    return system


def hostile_pools() -> FakeSystem:
    """Hostile text in names of pools, devices and models, and in reasons."""
    system = hostile()
    system.fleet.show(*map(hostile_pool, HOSTILE))
    return system


def drafting() -> FakeSystem:
    """Models that draft, or do not, for every reason that looks different."""
    return make_system(*spec_samples.all_models())


def hostile_drafting() -> FakeSystem:
    """Hostile text in names of models, drafters and types, and in reasons."""
    return make_system(*map(spec_samples.hostile, HOSTILE))


def crowded() -> FakeSystem:
    """300 models, one of them with 64 slots."""
    asked = samples.request("wide", slots=64)
    slots = tuple(samples.busy_slot(number) for number in range(64))
    wide = samples.model("wide", asked=asked, instances=(samples.instance(asked, slots=slots),))
    return make_system(wide, *[samples.model(f"model-{n}", State.STOPPED) for n in range(299)])


PAGES: list[tuple[str, Callable[[], FakeSystem], str]] = [
    ("overview", ordinary, "/"),
    ("overview-empty", make_system, "/"),
    ("overview-broken-manifest", broken, "/"),
    ("overview-hostile", hostile, "/"),
    ("overview-300-models", crowded, "/"),
    ("model", ordinary, "/models/smollm2"),
    ("model-loading", ordinary, "/models/coder"),
    ("model-failed", ordinary, "/models/big"),
    ("model-never-loaded", ordinary, "/models/idle"),
    ("model-memory-on-host", ordinary, "/models/on-host"),
    ("model-memory-on-two", ordinary, "/models/on-two"),
    ("model-memory-on-three", ordinary, "/models/on-three"),
    ("model-64-slots", crowded, "/models/wide"),
    ("model-hostile-markup", hostile, model_url(HOSTILE[0])),
    ("model-hostile-length", hostile, model_url(HOSTILE[5])),
    ("model-that-waits-for-memory", pooled, "/models/big-one"),
    ("pools", pooled, "/pools"),
    ("pools-hostile", hostile_pools, "/pools"),
    ("pools-empty", make_system, "/pools"),
    ("speculation", drafting, "/speculation"),
    ("speculation-hostile", hostile_drafting, "/speculation"),
    ("speculation-empty", make_system, "/speculation"),
    ("speculation-300-models", crowded, "/speculation"),
    ("model-that-drafts", drafting, "/models/pair"),
    ("try", ordinary, "/try?model=smollm2&with=big"),
    ("try-hostile", hostile, f"/try?model={url_part(HOSTILE[0])}&with={url_part(HOSTILE[5])}"),
    ("try-300-models", crowded, "/try"),
    ("events", ordinary, "/events"),
    ("events-hostile", hostile, "/events"),
    ("events-empty", make_system, "/events"),
]


@pytest.mark.parametrize(("make", "path"), [page[1:] for page in PAGES], ids=[page[0] for page in PAGES])
async def test_a_page_is_whole_at_every_width(
    chromium: Browser, make: Callable[[], FakeSystem], path: str
) -> None:
    async with serve(make()) as url, visit(chromium, scheme="dark") as page:
        answer = await page.goto(url + path)
        assert answer is not None
        assert answer.ok
        await is_live(page)
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 900})
            assert await overflow_px(page) == 0, f"too wide for {width} px"


async def test_hostile_text_runs_nothing_when_it_arrives_live(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await is_live(page)
        for text in HOSTILE:
            system.services.events.record("state", text, model=text)
            system.fleet.put(samples.model(text, State.STOPPED))
        await expect(page.locator("#recent li").first).to_contain_text("DROP TABLE")
        assert await page.locator("#main img, #main script").count() == 0


async def test_a_wrong_address_is_a_page_too(chromium: Browser) -> None:
    allowed = ("Failed to load resource",)
    async with serve(ordinary()) as url, visit(chromium, width=360, allowed=allowed) as page:
        await page.goto(f"{url}/models/smolm2")
        await page.get_by_role("link", name="smollm2").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("smollm2")


async def test_a_page_without_the_fetched_scripts_still_reads_and_refreshes(chromium: Browser) -> None:
    system = ordinary()
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
