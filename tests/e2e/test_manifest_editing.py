"""The manifest of a real manager is edited over the API and in a real browser, with the real engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.visitor import ARGUMENTS, CHROMIUM, REPORT_VIOLATIONS
from tests.conftest import ROOT
from tests.e2e.clients import model_table
from tests.support.paddock import RunningPaddock, start_paddock

pytestmark = [pytest.mark.browser, pytest.mark.engine]

TIMEOUT_MS = 60_000
# Room for a third of the context that the model was trained for.
POOLS = '[pools.main]\ndevices = ["cpu"]\n\n[pools.small]\ndevices = ["cpu"]\nbudget = "250MiB"\n'
# What Chromium writes of a page that says that nothing was written.
REFUSED = ("409 (Conflict)", "400 (Bad Request)")
# Both pools have the memory of the host.
RIGHT = "It can be applied, with 1 warning."


@pytest.fixture(scope="module")
def paddock(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Iterator[RunningPaddock]:
    """Two models that run, and one in a pool that is too small for all of its context. Shared by the file."""
    folder = tmp_path_factory.mktemp("editing")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "PADDOCK_STATE_DIR": str(folder / "state"),
    }
    tables = POOLS + "# about the calm one\n" + model_table("calm", smollm2, pool="main")
    tables += model_table("moved", smollm2, pool="main", threads=1)
    tables += f'\n[models.cut]\nsource = "{smollm2}"\npool = "small"\nslots = 2\nload = "manual"\n'
    running = start_paddock(folder / "up", tables, environment)
    for name in ("calm", "moved"):
        running.wait_state(name, "ready")
    yield running
    running.close()


@pytest.fixture(scope="module")
def chromium(browser_assets: Path) -> Iterator[Browser]:
    """One browser for the file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(params=[True], ids=["script"])
def page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A window; whatever the browser complains about fails the test, but for refusals."""
    complaints: list[str] = []
    context = chromium.new_context(java_script_enabled=request.param)
    window = context.new_page()
    window.set_default_timeout(TIMEOUT_MS)
    expect.set_options(timeout=TIMEOUT_MS)
    window.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    window.on("pageerror", lambda error: complaints.append(str(error)))
    if request.param:
        window.add_init_script(REPORT_VIOLATIONS)
    yield window
    context.close()
    assert [text for text in complaints if not any(refused in text for refused in REFUSED)] == []


without_script = pytest.mark.parametrize("page", [False], indirect=True, ids=["no-script"])


def text_of(paddock: RunningPaddock) -> str:
    return paddock.manifest.read_text(encoding="utf-8")


def changed(paddock: RunningPaddock) -> tuple[str, str]:
    """A text in which only `moved` is another one, and its number of threads."""
    text = text_of(paddock)
    now, new = ("1", "2") if "threads = 1" in text else ("2", "1")
    return text.replace(f"threads = {now}", f"threads = {new}"), new


def applied(paddock: RunningPaddock, text: str) -> dict[str, Any]:
    base = sha256(paddock.manifest.read_bytes()).hexdigest()
    answer = paddock.api("POST", "/manifest/apply", json={"text": text, "base_sha256": base})
    assert answer.status_code == 202, answer.text
    document: dict[str, Any] = answer.json()
    return document


def generations(paddock: RunningPaddock) -> int:
    """How often a manifest was applied so far."""
    loaded = paddock.events(kind="manifest_loaded", limit=1000)
    return max(event["data"].get("generation", 0) for event in loaded)


def test_an_apply_is_one_reload_that_moves_one_process(paddock: RunningPaddock) -> None:
    before, count, old = paddock.pids(), generations(paddock), text_of(paddock)
    text, _ = changed(paddock)
    document = applied(paddock, text)
    assert "replaces moved" in document["summary"]
    pid = paddock.wait_replaced("moved", before["moved"][0])
    assert paddock.pids() == {"calm": before["calm"], "moved": [pid]}
    reverted = paddock.api("POST", "/manifest/revert")
    assert reverted.status_code == 202, reverted.text
    paddock.wait_replaced("moved", pid)
    assert text_of(paddock) == old
    assert paddock.pids()["calm"] == before["calm"]
    assert generations(paddock) == count + 2


def test_the_preview_says_what_memory_will_be(paddock: RunningPaddock) -> None:
    text = text_of(paddock)
    assert text.count("context = 1024") == 2
    larger = text.replace("context = 1024", "context = 4096", 1)
    document = paddock.api("POST", "/manifest/diff", json={"text": larger}).json()
    (model,) = document["memory"]["models"]
    assert (model["model"], model["ran"], model["runs"]) == ("calm", True, True)
    lines = {
        when: {line["label"]: line["bytes"] for line in model[when]["fit"]["lines"]}
        for when in ("before", "after")
    }
    assert lines["after"]["kv"] == 4 * lines["before"]["kv"]
    (device,) = [one for one in document["memory"]["devices"] if one["before_bytes"]]
    more = lines["after"]["kv"] - lines["before"]["kv"]
    assert device["device"] == "CPU"
    assert device["after_bytes"] - device["before_bytes"] == pytest.approx(more, rel=0.05)
    assert text_of(paddock) == text


def test_what_would_raise_a_cut_context_is_what_the_engine_then_has(paddock: RunningPaddock) -> None:
    answer = paddock.api("GET", "/manifest/remedies", params={"model": "cut"}).json()["remedies"]
    ways = {tuple(way["edits"][0]["path"][2:]): way for way in reversed(answer)}
    way = ways[("kv_cache",)]
    cut, promised = way["before"]["granted"]["context"], way["after"]["granted"]["context"]
    assert way["code"] == "context_fitted"
    assert cut < promised <= 8192
    old = text_of(paddock)
    edited = paddock.api("POST", "/manifest/edit", json={"file": way["file"], "edits": way["edits"]}).json()
    assert "# about the calm one" in edited["text"]
    before = generations(paddock)
    applied(paddock, edited["text"])
    paddock.wait(lambda: generations(paddock) > before, 20, "the edit to be in force")
    paddock.api("POST", "/models/cut/load")
    running = paddock.wait_state("cut", "ready")["instances"][0]["running"]
    assert (running["context"], running["kv_cache"]["k"]) == (promised, "q8_0")
    paddock.api("POST", "/models/cut/unload")
    paddock.wait_state("cut", "stopped")
    applied(paddock, old)


def test_a_mistake_shows_while_it_is_typed_and_leads_to_its_line(paddock: RunningPaddock, page: Page) -> None:
    page.goto(f"{paddock.base_url}/manifest")
    field, old = page.locator("#manifest-text"), text_of(paddock)
    expect(field).to_have_value(old)
    expect(page.locator("#manifest-verdict")).to_have_text(RIGHT)
    numbers, lines = (page.locator(name).bounding_box() for name in ("#gutter", "#manifest-text"))
    assert numbers is not None
    assert lines is not None
    assert numbers["x"] + numbers["width"] <= lines["x"], "the numbers stand beside their lines"
    assert abs(numbers["height"] - lines["height"]) < 2, "and are as high as they are"
    at = old.index("threads = ")
    field.evaluate("(field, at) => { field.focus(); field.setSelectionRange(at, at); }", at)
    page.keyboard.type("x")
    problem = page.locator("#manifest-check .problem.tone-bad")
    expect(problem).to_contain_text("xthreads is not a known key")
    expect(problem).to_contain_text("did you mean threads")
    assert field.evaluate("(field) => field.selectionStart") == at + 1
    line = old[:at].count("\n") + 1
    expect(page.locator(f"#gutter #line-{line}")).to_have_text(str(line))
    page.locator("h1").click()
    problem.get_by_role("link").click()
    assert field.evaluate("(field) => [document.activeElement === field, field.selectionStart]") == [True, at]
    page.keyboard.press("Tab")
    assert not field.evaluate("(field) => document.activeElement === field")
    field.fill(old)
    expect(page.locator("#manifest-verdict")).to_have_text(RIGHT)
    assert text_of(paddock) == old


def test_an_edit_is_previewed_and_applied_and_moves_only_what_it_says(
    paddock: RunningPaddock, page: Page
) -> None:
    before, (text, threads) = paddock.pids(), changed(paddock)
    page.goto(f"{paddock.base_url}/manifest")
    page.locator("#manifest-text").fill(text)
    page.get_by_role("button", name="Preview").click()
    preview = page.locator("#manifest-preview")
    expect(preview.locator(".actions > li")).to_have_count(1)
    expect(preview).to_contain_text("moved is replaced")
    expect(preview).to_contain_text(f"→ {threads}")
    expect(preview).to_contain_text("2 models not touched.")
    expect(preview.get_by_role("img", name="CPU before")).to_be_visible()
    expect(preview.locator(".diff-added")).to_contain_text(f"threads = {threads}")
    expect(page.locator("#manifest-text")).to_have_value(text)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#notice")).to_contain_text("replaces moved")
    paddock.wait_replaced("moved", before["moved"][0])
    assert paddock.pids()["calm"] == before["calm"]
    assert text_of(paddock) == text


def test_a_file_that_changed_underneath_is_shown_and_nothing_typed_is_lost(
    paddock: RunningPaddock, page: Page
) -> None:
    page.goto(f"{paddock.base_url}/manifest")
    old = text_of(paddock)
    page.locator("#manifest-text").fill(old + "# mine\n")
    paddock.write(old + "# theirs\n")
    page.get_by_role("button", name="Apply").click()
    conflict = page.locator("#manifest-conflict")
    expect(conflict.locator(".diff-removed")).to_contain_text("# theirs")
    expect(conflict.locator(".diff-added")).to_contain_text("# mine")
    expect(page.locator("#manifest-text")).to_have_value(old + "# mine\n")
    assert text_of(paddock) == old + "# theirs\n"
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#notice")).to_contain_text("edited by dashboard")
    assert text_of(paddock) == old + "# mine\n"
    applied(paddock, old)


@without_script
def test_everything_works_with_forms_alone(paddock: RunningPaddock, page: Page) -> None:
    old = text_of(paddock)
    page.goto(f"{paddock.base_url}/manifest")
    page.locator("#manifest-text").fill(old + "\nnonsense = 1\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#manifest-check")).to_contain_text("nonsense is not a known key")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#notice")).to_contain_text("was not written")
    page.locator("#manifest-text").fill(old + "# by a form\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#manifest-preview")).to_contain_text("No model changes.")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#notice")).to_contain_text("edited by dashboard")
    assert text_of(paddock) == old + "# by a form\n"
    page.locator("#manifest-history").get_by_role("link").first.click()
    expect(page.locator(".diff-removed")).to_contain_text("# by a form")
    page.get_by_role("button", name="Go back to this").click()
    expect(page.locator("#notice")).to_contain_text("put back to version")
    assert text_of(paddock) == old


@without_script
def test_a_remedy_on_the_page_of_a_model_lands_in_the_preview(paddock: RunningPaddock, page: Page) -> None:
    paddock.api("POST", "/models/cut/load")
    paddock.wait_state("cut", "ready")
    old = text_of(paddock)
    page.goto(f"{paddock.base_url}/models/cut")
    page.get_by_role("button", name="Preview this edit: Store the cache as q8_0").click()
    preview = page.locator("#manifest-preview")
    expect(preview).to_contain_text("cut is replaced")
    expect(preview.locator(".diff-added")).to_contain_text('kv_cache = "q8_0"')
    expect(page.locator("#manifest-text")).to_have_value(old + 'kv_cache = "q8_0"\n')
    page.goto(f"{paddock.base_url}/models/cut")
    page.get_by_role("link", name="What would help").click()
    expect(page.get_by_role("row").filter(has_text="Use 1 slot")).to_be_visible()
    assert text_of(paddock) == old
    paddock.api("POST", "/models/cut/unload")
    paddock.wait_state("cut", "stopped")
