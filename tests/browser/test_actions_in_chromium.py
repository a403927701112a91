"""Every button, with and without script, by mouse and by keyboard alone."""

from __future__ import annotations

from hashlib import sha256

import pytest
from playwright.async_api import Browser, Route, expect

from framework.values.instance import State
from framework.values.manifest import AccessKey
from tests.browser.site import serve
from tests.browser.visitor import is_live, visit
from tests.dashboard import samples
from tests.dashboard.fake_system import make_system

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STATES = [
    pytest.param(State.STOPPED, "Load", "load", id="load"),
    pytest.param(State.READY, "Unload", "unload", id="unload"),
    pytest.param(State.READY, "Reload", "reload", id="reload"),
    pytest.param(State.STARTING, "Cancel load", "unload", id="cancel"),
    pytest.param(State.FAILED, "Reload", "reload", id="reload-failed"),
    pytest.param(State.BACKOFF, "Retry now", "reload", id="retry"),
    pytest.param(State.BACKOFF, "Give up", "unload", id="give-up"),
]


@pytest.mark.parametrize(
    ("path", "script"),
    [
        pytest.param("/", True, id="overview"),
        pytest.param("/models/smollm2", False, id="model-without-script"),
    ],
)
@pytest.mark.parametrize(("state", "label", "verb"), STATES)
async def test_a_button_acts_and_says_so(
    chromium: Browser, state: State, label: str, verb: str, path: str, script: bool
) -> None:
    system = make_system(samples.model(state=state))
    async with serve(system) as url, visit(chromium, java_script_enabled=script) as page:
        await page.goto(url + path)
        if script:
            await is_live(page)
            await page.evaluate("window.same = true")
        await page.get_by_role("button", name=label, exact=path != "/").first.click()
        await expect(page.locator("#notice")).to_contain_text(f"{verb} of smollm2 accepted")
        mode = "drain" if verb == "unload" else ""
        assert system.fleet.asked == [(verb, "smollm2", mode, "dashboard")]
        if script:
            assert await page.evaluate("window.same")


@pytest.mark.parametrize("path", ["/", "/models/smollm2"], ids=["overview", "model"])
async def test_a_button_that_is_replaced_while_it_is_answered_still_says_so(
    chromium: Browser, path: str
) -> None:
    system = make_system(samples.model(state=State.STOPPED))
    async with serve(system) as url, visit(chromium) as page:

        async def replace_then_go_on(route: Route) -> None:
            await page.evaluate("document.querySelector('#main').innerHTML = 'newer content'")
            await route.continue_()

        await page.goto(url + path)
        await is_live(page)
        await page.route("**/load", replace_then_go_on)
        await page.get_by_role("button", name="Load", exact=path != "/").first.click()
        await expect(page.locator("#notice")).to_contain_text("load of smollm2 accepted")


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
async def test_how_to_unload_can_be_chosen(chromium: Browser, script: bool) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium, java_script_enabled=script) as page:
        await page.goto(f"{url}/models/smollm2")
        await page.get_by_label("Unload mode").select_option("kill")
        await page.get_by_role("button", name="Unload").click()
        await expect(page.locator("#notice")).to_contain_text("unload of smollm2 accepted")
    assert system.fleet.asked == [("unload", "smollm2", "kill", "dashboard")]


async def test_a_choice_outlasts_updates_of_the_page(chromium: Browser) -> None:
    system = make_system(samples.model(), samples.model("other"))
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/models/smollm2")
        await is_live(page)
        await page.get_by_label("Unload mode").select_option("kill")
        await page.evaluate("document.getElementById('model-actions').dataset.old = 'yes'")
        system.fleet.put(samples.model(state=State.FAILED))
        await expect(page.locator("#model-actions[data-old]")).to_have_count(0)
        system.fleet.put(samples.model())
        await expect(page.get_by_role("button", name="Unload")).to_be_visible()
        await expect(page.get_by_label("Unload mode")).to_have_value("kill")


async def test_a_refused_action_is_explained_in_place(chromium: Browser) -> None:
    system = make_system(samples.model())
    async with serve(system) as url, visit(chromium, allowed=("Failed to load resource",)) as page:
        await page.goto(url)
        await is_live(page)
        # Not in the form: an update of the page brings that back.
        await page.evaluate(
            "document.addEventListener('htmx:configRequest', (e) => { e.detail.parameters.csrf_token = 1; })"
        )
        await page.get_by_role("button", name="Reload").click()
        await expect(page.locator("#notice")).to_contain_text("out of date")
    assert system.fleet.asked == []


async def test_everything_can_be_done_with_the_keyboard(chromium: Browser) -> None:
    system = make_system(samples.model("idle", State.STOPPED), samples.model())
    system.fleet.write("smollm2", "one", "two")
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(url)
        await is_live(page)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()
        load = page.get_by_role("button", name="Load idle")
        for _ in range(12):
            await page.keyboard.press("Tab")
            if await load.evaluate("(e) => e === document.activeElement"):
                break
        await expect(load).to_be_focused()
        outline = await load.evaluate("(e) => getComputedStyle(e).outlineStyle")
        assert outline == "solid"
        await page.keyboard.press("Enter")
        await expect(page.locator("#notice")).to_contain_text("load of idle accepted")
        await page.get_by_role("link", name="smollm2").first.focus()
        await page.keyboard.press("Enter")
        await is_live(page)
        await page.get_by_label("Unload mode").focus()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Space")
        await expect(page.locator("#notice")).to_contain_text("unload of smollm2 accepted")
        await page.get_by_label("Search the log").focus()
        await page.keyboard.type("two")
        await page.keyboard.press("Enter")
        await expect(page.locator("#log-lines li")).to_have_text(["two"])
    assert [asked[:3] for asked in system.fleet.asked] == [("load", "idle", ""), ("unload", "smollm2", "now")]


async def test_the_log_is_searched_while_typing_and_stays_live(chromium: Browser) -> None:
    system = make_system(samples.model())
    system.fleet.write("smollm2", "alpha", "beta", "alphabet")
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/models/smollm2")
        await is_live(page)
        await page.get_by_label("Search the log").press_sequentially("alpha")
        await expect(page.locator("#log-lines li")).to_have_text(["alpha", "alphabet"])
        await is_live(page)
        system.fleet.write("smollm2", "gamma", "alpha again")
        await expect(page.locator("#log-lines li")).to_have_text(["alpha", "alphabet", "alpha again"])
        assert page.url.endswith("?q=alpha")
        await expect(page.get_by_label("Search the log")).to_be_focused()


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
async def test_events_are_filtered_and_paged(chromium: Browser, script: bool) -> None:
    system = make_system(samples.model(), samples.model("other"))
    for number in range(60):
        system.services.events.record("state", f"event {number}", model="smollm2")
    system.services.events.record("ready", "up", model="other")
    async with serve(system) as url, visit(chromium, java_script_enabled=script) as page:
        await page.goto(f"{url}/events")
        await page.get_by_role("link", name="Older events").click()
        await expect(page.locator("#event-rows > li")).to_have_count(11)
        await page.get_by_role("link", name="Newest events").click()
        await page.get_by_label("Kind").select_option("ready")
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator("#event-rows > li")).to_have_count(1)
        await page.get_by_label("Model").fill("smollm2")
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator("#events")).to_contain_text("No event matches")


async def test_the_command_line_can_be_copied(chromium: Browser) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    async with serve(make_system(samples.model())) as url, visit(chromium, permissions=permissions) as page:
        await page.goto(f"{url}/models/smollm2")
        await is_live(page)
        await page.get_by_role("button", name="Copy").click()
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert "--port 43117" in await page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize("script", [True, False], ids=["with-script", "without-script"])
async def test_who_may_only_view_signs_in_looks_and_signs_out(chromium: Browser, script: bool) -> None:
    key = AccessKey("night-shift", sha256(b"look").hexdigest(), dashboard="view")
    system = make_system(samples.model(), access=[key])
    allowed = ("Failed to load resource",)
    async with serve(system) as url, visit(chromium, java_script_enabled=script, allowed=allowed) as page:
        await page.goto(f"{url}/models/smollm2")
        await page.get_by_label("Key").fill("wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("#notice")).to_contain_text("not known")
        await page.get_by_label("Key").fill("look")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("smollm2")
        await expect(page.locator(".who")).to_contain_text("night-shift (view only)")
        await expect(page.get_by_role("button", name="Unload")).to_have_count(0)
        await page.get_by_role("button", name="Sign out", exact=True).click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
