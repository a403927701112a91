"""The page Try in a real browser over an engine that says what a real one cannot be made to say."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256

import pytest
from playwright.async_api import Browser, Page, expect

from framework.runtime.lease import LeaseRefused
from framework.values.instance import State
from framework.values.manifest import AccessKey
from framework.values.reason import Reason
from tests.browser.site import serve
from tests.browser.visitor import is_live, overflow_px, visit
from tests.dashboard import samples
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.samples import HOSTILE
from tests.proxy.scripted_engine import Call, ScriptedEngine, chunk, closing, finish, piece, role

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ARGUMENTS = '{"place": "<img src=x onerror=alert(1)>"}'
# A stream that is refused is told twice: by the browser, and by htmx with the event itself.
REFUSED = ("Failed to load resource", "[object Event]")


@asynccontextmanager
async def engine() -> AsyncIterator[ScriptedEngine]:
    running = ScriptedEngine()
    await running.start()
    yield running
    await running.stop()


async def ask(page: Page, text: str) -> None:
    await page.get_by_label("Message", exact=True).fill(text)
    await page.get_by_role("button", name="Send").click()


async def test_hostile_text_streams_in_as_text_with_reasoning_and_tool_calls(chromium: Browser) -> None:
    async def say_everything(call: Call) -> None:
        parts = [{"index": 0, "id": "1", "function": {"name": HOSTILE[0], "arguments": ""}}]
        rest = [{"index": 0, "function": {"arguments": ARGUMENTS}}]
        deltas = ({"reasoning_content": HOSTILE[1]}, {"tool_calls": parts}, {"tool_calls": rest})
        await call.start_stream()
        await call.events(role())
        for delta in deltas:
            await call.events(chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}]))
        for text in HOSTILE:
            await call.events(piece(text + "\n"))
        await call.events(finish("tool_calls"), closing())
        await call.end()

    async with engine() as running:
        running.default = say_everything
        system = make_system(samples.model(), engine_url=running.url)
        async with serve(system) as url, visit(chromium, width=360) as page:
            await page.goto(f"{url}/try")
            await ask(page, HOSTILE[0])
            await expect(page.locator("#turns [data-part=numbers]")).to_contain_text("4 tokens, 1 accepted")
            await expect(page.locator("#turns [data-part=text]")).to_contain_text(HOSTILE[1])
            await expect(page.locator("#turns [data-part=text]")).to_contain_text("DROP TABLE")
            await expect(page.locator("#turns [data-part=call-arguments]")).to_have_text(ARGUMENTS)
            await expect(page.locator("#turns [data-part=call-name]")).to_have_text(HOSTILE[0])
            thoughts = page.locator("#turns [data-part=thinking-text]")
            await expect(thoughts).to_be_hidden()
            await page.locator("#turns summary", has_text="Reasoning").click()
            await expect(thoughts).to_have_text(HOSTILE[1])
            assert await page.locator("#turns img, #turns script").count() == 0
            assert await overflow_px(page) == 0


async def test_an_error_is_told_with_code_sentence_and_remedy(chromium: Browser) -> None:
    reason = Reason("does_not_fit", "It needs 9 GiB.", "Unload `big` first.", "error")
    system = make_system(samples.model())
    system.leases.refusal = LeaseRefused("no_memory", "No room.", retry_after_s=7.0, reason=reason)
    async with serve(system) as url, visit(chromium, allowed=REFUSED) as page:
        await page.goto(f"{url}/try")
        await ask(page, "Hi")
        trouble = page.locator("#turns [data-part=trouble]")
        await expect(trouble).to_contain_text("No room.")
        await expect(trouble).to_contain_text("Unload `big` first. It may work again in 7 s.")
        await expect(trouble).to_contain_text("no_memory")
        await trouble.get_by_role("link", name="does_not_fit").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("does_not_fit")
        await page.go_back()
        await expect(page.locator("#turns [data-part=trouble]")).to_contain_text("No room.")


async def test_an_error_in_the_middle_keeps_what_was_said(chromium: Browser) -> None:
    async def break_off(call: Call) -> None:
        await call.start_stream()
        await call.events(role(), piece("Half an ans"))
        call.drop()

    async with engine() as running:
        running.default = break_off
        system = make_system(samples.model(), engine_url=running.url)
        async with serve(system) as url, visit(chromium) as page:
            await page.goto(f"{url}/try")
            await ask(page, "Hi")
            await expect(page.locator("#turns [data-part=trouble]")).to_contain_text("stream_interrupted")
            await expect(page.locator("#turns [data-part=text]")).to_have_text("Half an ans")


async def test_a_session_that_ends_costs_no_conversation(chromium: Browser) -> None:
    key = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard="view")
    async with engine() as running:
        system = make_system(samples.model(), access=[key], engine_url=running.url)
        async with serve(system) as url, visit(chromium, allowed=REFUSED) as page:
            await sign_in(page, url)
            await ask(page, "One")
            await expect(page.locator("#turns [data-part=text]")).to_have_text("Hello")
            end_sessions(system)
            await ask(page, "Two")
            trouble = page.locator("#turns [data-part=trouble]").nth(1)
            await expect(trouble).to_contain_text("key_missing")
            async with page.context.expect_page() as opened:
                await trouble.get_by_role("link", name="Sign in").click()
            tab = await opened.value
            await tab.get_by_label("Key").fill("secret")
            await tab.keyboard.press("Enter")
            await expect(tab.get_by_role("heading", level=1)).to_have_text("Try")
            await page.get_by_role("button", name="Regenerate").click()
            await expect(page.locator("#turns [data-part=text]").nth(1)).to_have_text("Hello")
            said = [m["content"] for m in running.calls[-1].body["messages"]]
            assert said == ["One", "Hello", "Two"]


async def test_another_session_sees_no_conversation_of_this_one(chromium: Browser) -> None:
    key = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard="view")
    async with engine() as running:
        system = make_system(samples.model(), access=[key], engine_url=running.url)
        async with serve(system) as url, visit(chromium) as page:
            await sign_in(page, url)
            await ask(page, "My secret")
            await expect(page.locator("#turns [data-part=numbers]")).to_contain_text("Total")
            await page.reload()
            await expect(page.locator("#turns [data-part=user]")).to_have_text("My secret")
            await page.get_by_role("button", name="Sign out", exact=True).click()
            await sign_in(page, url)
            await expect(page.locator("#turns .turn")).to_have_count(0)


async def test_a_server_that_started_anew_is_asked_as_if_nothing_was(chromium: Browser) -> None:
    async with engine() as running:
        system = make_system(samples.model(), engine_url=running.url)
        async with serve(system) as url, visit(chromium, allowed=REFUSED) as page:
            await page.goto(f"{url}/try")
            end_sessions(system)
            await ask(page, "Hi")
            await expect(page.locator("#turns [data-part=text]")).to_have_text("Hello")


async def test_the_state_of_the_models_is_live_and_models_change_without_a_reload(chromium: Browser) -> None:
    system = make_system(samples.model(state=State.STOPPED), samples.model("other", State.STOPPED))
    async with serve(system) as url, visit(chromium) as page:
        await page.goto(f"{url}/try?model=smollm2")
        await is_live(page)
        await page.evaluate("window.same = true")
        await expect(page.locator("#try-state-0")).to_contain_text("the first message loads it")
        system.fleet.put(samples.model())
        await expect(page.locator("#try-state-0")).to_contain_text("Ready")
        await page.locator("#try-with").select_option("other")
        await expect(page.locator("#try-lanes h2")).to_have_text(["smollm2", "other"])
        await is_live(page)
        system.fleet.put(samples.model("other"))
        await expect(page.locator("#try-state-1")).to_contain_text("Ready")
        assert "with=other" in page.url
        assert await page.evaluate("window.same")


async def test_a_setting_that_makes_no_sense_sends_nothing(chromium: Browser) -> None:
    async with engine() as running:
        system = make_system(samples.model(), engine_url=running.url)
        async with serve(system) as url, visit(chromium) as page:
            await page.goto(f"{url}/try")
            await page.locator("summary", has_text="Schema and tools").click()
            await page.get_by_label("Tools, as").fill("{")
            await ask(page, "Hi")
            await asyncio.sleep(0.2)
            assert running.calls == []
            await page.get_by_label("Tools, as").fill("")
            await page.get_by_label("Form of the answer").select_option("json_object")
            await ask(page, "Hi")
            await expect(page.locator("#turns [data-part=text]")).to_have_text("Hello")
            assert running.calls[0].body["response_format"] == {"type": "json_object"}


async def test_the_request_can_be_copied(chromium: Browser) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    async with engine() as running:
        system = make_system(samples.model(), engine_url=running.url)
        async with serve(system) as url, visit(chromium, permissions=permissions) as page:
            await page.goto(f"{url}/try")
            await ask(page, "It's me")
            await expect(page.locator("#turns [data-part=text]")).to_have_text("Hello")
            await page.locator("summary", has_text="This request elsewhere").click()
            await page.get_by_role("button", name="Copy").first.click()
            await expect(page.get_by_role("button", name="Copied")).to_be_visible()
            copied = await page.evaluate("navigator.clipboard.readText()")
            assert copied.startswith(f"curl '{url}/v1/chat/completions'")
            assert "It'\\''s me" in copied
            program = await page.locator("#turns [data-part=python]").inner_text()
            literals = [n.value for n in ast.walk(ast.parse(program)) if isinstance(n, ast.Constant)]
            bodies = [json.loads(one) for one in literals if isinstance(one, str) and one.startswith("{")]
            assert bodies == [{"model": "smollm2", "messages": [{"role": "user", "content": "It's me"}]}]


async def sign_in(page: Page, url: str) -> None:
    await page.goto(f"{url}/sign-in?next=/try")
    await page.get_by_label("Key").fill("secret")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Try")


def end_sessions(system: FakeSystem) -> None:
    """As a restart of the server, or a day without a click, does."""
    system.services.sessions.__init__()  # type: ignore[misc]
