"""The page Try of a real manager in a real browser, talking to the real SmolLM2."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.visitor import ARGUMENTS, CHROMIUM, REPORT_VIOLATIONS
from tests.e2e.clients import model_table
from tests.support.paddock import RunningPaddock, start_paddock
from tests.support.rank_models import write_encoder_ranker
from tests.support.working_models import write_working_model

pytestmark = [pytest.mark.browser, pytest.mark.engine]

TIMEOUT_MS = 60_000
KEY, SECRET = "night-shift-hunter5", "value-that-only-the-engine-may-see"
ACCESS = '[access.laptop]\nkey = "env:TRY_KEY"\ndashboard = "operate"\n'
PASSED = '[engines.default]\nenvironment_passthrough = ["TRY_SECRET"]\n'
# An answer that only ends at its limit of tokens, so that there is something to stop.
ENDLESS = "request = { force = { ignore_eos = true } }\n"
# What the model with noise for weights says is no UTF-8, of which the engine makes an error.
LETTERS = 'request = { force = { grammar = "root ::= [a-z ]*" } }\n'
# Besides those that every page links to.
PATHS = ("/models/first", "/models/endless", "/try?model=first&with=endless")


@pytest.fixture(scope="module")
def paddock(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Iterator[RunningPaddock]:
    """A manager with two models, which load with their first message."""
    folder = tmp_path_factory.mktemp("try")
    tables = ACCESS + PASSED + model_table("first", smollm2, load="on-demand")
    tables += model_table("endless", smollm2, load="on-demand", context=4096, slots=1) + ENDLESS
    base, ranker = write_working_model(folder / "base.gguf"), write_encoder_ranker(folder / "ranker.gguf")
    tables += model_table("base", base, load="on-demand", slots=1) + LETTERS
    tables += model_table("ranker", ranker, load="on-demand", engine_args=["--reranking"])
    shown = {name: os.environ[name] for name in ("PATH",)}
    environment = {
        **shown,
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).resolve().parent.parent.parent),
        "PADDOCK_STATE_DIR": str(folder / "state"),
        "TRY_KEY": KEY,
        "TRY_SECRET": SECRET,
    }
    running = start_paddock(folder, tables, environment)
    yield running
    running.close()


@pytest.fixture(scope="module")
def browser(browser_assets: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=TIMEOUT_MS)
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def page(browser: Browser, paddock: RunningPaddock) -> Iterator[Page]:
    """A signed-in window; whatever the browser complains about fails the test."""
    yield from opened(browser, paddock, script=True)


@pytest.fixture
def plain_page(browser: Browser, paddock: RunningPaddock) -> Iterator[Page]:
    """The same without script."""
    yield from opened(browser, paddock, script=False)


def opened(browser: Browser, paddock: RunningPaddock, *, script: bool) -> Iterator[Page]:
    complaints: list[str] = []
    context = browser.new_context(java_script_enabled=script)
    window = context.new_page()
    window.set_default_timeout(TIMEOUT_MS)
    window.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    window.on("pageerror", lambda error: complaints.append(str(error)))
    if script:
        window.add_init_script(REPORT_VIOLATIONS)
    window.goto(f"{paddock.base_url}/sign-in?next=/try?model=first")
    window.get_by_label("Key").fill(KEY)
    window.get_by_role("button", name="Sign in").click()
    expect(window.get_by_role("heading", level=1)).to_have_text("Try")
    yield window
    context.close()
    assert complaints == []


def in_flight(paddock: RunningPaddock, model: str) -> int:
    return sum(instance["inflight"] for instance in paddock.model(model)["instances"])


def slot_states(paddock: RunningPaddock, model: str) -> list[str]:
    """As the engine itself says."""
    return [slot["state"] for slot in paddock.model(model)["instances"][0]["slots"]]


def wait_record(paddock: RunningPaddock, **fields: object) -> None:
    """Wait until the request log, which is written a moment later, has a request with these fields."""

    def found() -> bool:
        records = paddock.api("GET", "/requests").json()["requests"]
        return any(all(record[name] == value for name, value in fields.items()) for record in records)

    paddock.wait(found, 30, f"a record of {fields}")


def answer(page: Page, number: int = 0) -> str:
    return page.locator("#turns [data-part=text]").nth(number).inner_text()


def finished(page: Page) -> None:
    """Wait until nothing is being answered."""
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    expect(page.locator("#turns [data-part=numbers]").last).to_contain_text("Total")


def test_an_answer_streams_with_its_numbers_and_is_made_again(page: Page, paddock: RunningPaddock) -> None:
    page.get_by_label("Longest answer").fill("24")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Temperature").fill("0")
    page.get_by_label("Message", exact=True).fill("Name three horses.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#try-state-0")).to_contain_text("Ready")
    finished(page)
    first = answer(page)
    assert first
    numbers = page.locator("#turns [data-part=numbers]")
    for word in ("Queue", "First token", "Prompt", "tokens/s", "Total"):
        expect(numbers).to_contain_text(word)
    page.get_by_role("button", name="Regenerate").click()
    finished(page)
    expect(page.locator("#turns .turn")).to_have_count(1)
    assert answer(page) == first
    page.get_by_role("button", name="Edit last message").click()
    message = page.get_by_label("Message", exact=True)
    expect(message).to_have_value("Name three horses.")
    expect(page.locator("#turns .turn")).to_have_count(0)
    wait_record(paddock, model="first", key="laptop", route="/v1/chat/completions", status=200)


def test_stop_frees_the_slot_of_the_engine(page: Page, paddock: RunningPaddock) -> None:
    page.locator("#try-model").select_option("endless")
    expect(page.locator("#try-lanes h2")).to_have_text("endless")
    page.get_by_label("Message", exact=True).fill("Count.")
    page.keyboard.press("Enter")
    expect(page.locator("#turns [data-part=text]")).not_to_be_empty()
    paddock.wait(lambda: in_flight(paddock, "endless") == 1, 30, "the request")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#turns [data-part=note]")).to_have_text("Stopped.")
    paddock.wait(lambda: in_flight(paddock, "endless") == 0, 30, "the slot to be free")
    paddock.wait(lambda: slot_states(paddock, "endless") == ["idle"], 30, "an idle slot")
    wait_record(paddock, model="endless", key="laptop", status=499)


def test_two_models_answer_side_by_side(page: Page) -> None:
    page.get_by_label("Beside it").select_option("endless")
    expect(page.locator("#try-lanes h2")).to_have_text(["first", "endless"])
    page.get_by_label("Longest answer").fill("12")
    page.get_by_label("Message", exact=True).fill("Say hello.")
    page.get_by_role("button", name="Send").click()
    finished(page)
    expect(page.locator("#turns article")).to_have_count(2)
    expect(page.locator("#turns [data-part=numbers]").nth(0)).to_contain_text("Total")
    expect(page.locator("#turns [data-part=note]").nth(1)).to_have_text("Ended at its limit of tokens.")
    page.locator("summary", has_text="This request elsewhere").nth(1).click()
    shown = page.locator("#turns [data-part=curl]").nth(1)
    expect(shown).to_contain_text('"model": "endless"')
    expect(shown).to_contain_text("$PADDOCK_KEY")


def test_all_of_it_works_with_the_keyboard_alone(page: Page) -> None:
    page.get_by_role("link", name="Skip to content").focus()
    page.keyboard.press("Enter")
    message = page.get_by_label("Message", exact=True)
    for _ in range(12):
        page.keyboard.press("Tab")
        if message.evaluate("(e) => e === document.activeElement"):
            break
    page.keyboard.type("Hello.")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Who are you?")
    page.get_by_label("Longest answer").fill("8")
    message.focus()
    page.keyboard.press("Enter")
    finished(page)
    expect(page.locator("#turns [data-part=user]")).to_have_text("Hello.\nWho are you?")
    expect(message).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Regenerate")).to_be_focused()
    page.keyboard.press("Space")
    finished(page)
    expect(page.locator("#turns .turn")).to_have_count(1)


def test_without_script_the_finished_conversation_comes_back(plain_page: Page) -> None:
    page = plain_page
    page.get_by_label("Longest answer").fill("8")
    page.get_by_label("Message", exact=True).fill("Say hello.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#turns .turn")).to_have_count(1)
    expect(page.locator("#turns [data-part=numbers]")).to_contain_text("tokens/s")
    page.get_by_label("Message", exact=True).fill("And again.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#turns .turn")).to_have_count(2)
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator("#turns .turn")).to_have_count(2)
    page.get_by_role("button", name="Edit last message").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("And again.")
    page.get_by_role("link", name="New conversation").click()
    expect(page.locator("#turns .turn")).to_have_count(0)


def test_a_model_without_chat_template_continues_a_text(page: Page, paddock: RunningPaddock) -> None:
    page.locator("#try-model").select_option("base")
    expect(page.locator("#try-lanes")).to_contain_text("it continues the text of your message")
    page.get_by_label("Longest answer").fill("8")
    page.get_by_label("Message", exact=True).fill("Once upon a time")
    page.get_by_role("button", name="Send").click()
    finished(page)
    expect(page.locator("#turns [data-part=curl]")).to_contain_text("/v1/completions")
    wait_record(paddock, model="base", key="laptop", route="/v1/completions", status=200)


def test_a_model_that_cannot_chat_is_not_loaded_for_it(page: Page, paddock: RunningPaddock) -> None:
    page.locator("#try-model").select_option("ranker")
    expect(page.locator("#try-lanes")).to_contain_text("cannot chat")
    page.get_by_label("Message", exact=True).fill("Hello?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#turns [data-part=trouble]")).to_contain_text("not_supported")
    assert paddock.model("ranker")["state"] == "stopped"


def test_no_page_holds_a_key_a_token_or_a_value_of_the_environment(
    page: Page, paddock: RunningPaddock
) -> None:
    paddock.api("POST", "/models/first/load")
    paddock.wait_state("first", "ready")
    pids = [pid for pids in paddock.pids().values() for pid in pids]
    environments = [psutil.Process(pid).environ() for pid in pids]
    assert any(environment.get("TRY_SECRET") == SECRET for environment in environments)
    engine_keys = [environment["LLAMA_API_KEY"] for environment in environments]
    cookies = [cookie["value"] for cookie in page.context.cookies()]
    secrets = [KEY, SECRET, paddock.token, *engine_keys, *cookies]
    links = [link.get_attribute("href") or "" for link in page.locator("nav a").all()]
    assert "/try" in links
    for path in (*links, *PATHS):
        page.goto(paddock.base_url + path)
        html = page.content()
        assert [secret for secret in secrets if secret in html] == [], path
