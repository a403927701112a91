"""What the dashboard costs: processor time of open pages, weight of each page, first paint, age of an update.

Run by `make bench`. Runs `paddock up` with scripted engines, nine models at first, then 300. Processor time
is that of `paddock up`, from the scheduler; open pages are streams of as many sessions, read by this process.
The rest is told by Chromium, each page in a window with an empty cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path

import aiohttp
import psutil
from playwright.async_api import Browser, async_playwright
from rich.console import Console
from rich.table import Table

from tests.browser.visitor import ARGUMENTS, CHROMIUM
from tests.support.fakes import ROOT, write_fake_engine
from tests.support.model_files import write_tiny_gguf
from tests.support.paddock import RunningPaddock, start_paddock

FEW, MANY = 9, 300
PAGES = 50
SETTLE_S, MEASURED_S = 2.0, 8.0
UPDATES = 12
# Slots are looked at twice a second, so that each look finds another number of tokens.
TOKEN_INTERVAL_S = 0.1
TOKENS = 2000
TIMEOUT_S = 20.0
MODEL = "model-0"
ADDRESSES = ("/", f"/models/{MODEL}", "/pools", "/speculation", "/files", "/events", "/reasons")
LIVE_URL = re.compile(r'sse-connect="([^"]+)"')
# Milliseconds of this page's clock; `changed` is when the next change was in the document.
ARM = """() => {
  window.changed = new Promise((resolve) => {
    const seen = new MutationObserver(() => { seen.disconnect(); resolve(performance.now()); });
    seen.observe(document.querySelector("main"), {childList: true, subtree: true, characterData: true});
  });
  return performance.now();
}"""
WEIGHED = """() => new Promise((resolve) => {
  const look = () => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    if (paint === undefined) { setTimeout(look, 10); return; }
    const loaded = ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind));
    resolve([loaded.reduce((sum, one) => sum + one.transferSize, 0), paint.startTime]);
  };
  look();
})"""


def declare(engine: Path, model: Path, count: int) -> str:
    """The tables of a manifest; its first model is loaded at start."""
    tables = [f'[engines.default]\nbinary = "{engine}"\n']
    for number in range(count):
        load = "at-start" if number == 0 else "on-demand"
        tables.append(f'[models.model-{number}]\nsource = "{model}"\nload = "{load}"\n')
    return "\n".join(tables)


@asynccontextmanager
async def open_pages(paddock: RunningPaddock, path: str, count: int) -> AsyncIterator[None]:
    """Streams of a page, each of a session of its own, read as they come."""
    async with contextlib.AsyncExitStack() as stack:
        readers = []
        for _ in range(count):
            # Cookies of addresses that are numbers are kept only when asked for.
            jar = aiohttp.CookieJar(unsafe=True)
            session = await stack.enter_async_context(aiohttp.ClientSession(paddock.base_url, cookie_jar=jar))
            async with session.get(path) as answer:
                found = LIVE_URL.search(await answer.text())
            if found is None:
                raise SystemExit(f"{path} has no live updates; run `make fetch`")
            url, timeout = unescape(found[1]), aiohttp.ClientTimeout()
            stream = await stack.enter_async_context(session.get(url, timeout=timeout))
            readers.append(asyncio.create_task(_drain(stream)))
        try:
            yield
            if any(reader.done() for reader in readers):
                raise SystemExit(f"a stream of {path} ended by itself")
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)


async def cores(paddock: RunningPaddock) -> float:
    """Share of one core that `paddock up` takes, over some seconds."""
    process = psutil.Process(paddock.pid)
    await asyncio.sleep(SETTLE_S)
    before = process.cpu_times()
    await asyncio.sleep(MEASURED_S)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / MEASURED_S


@asynccontextmanager
async def answering(paddock: RunningPaddock) -> AsyncIterator[None]:
    """One long answer is streamed meanwhile: its slot moves."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Go on."}], "stream": True}
    async with (
        aiohttp.ClientSession(paddock.base_url) as session,
        session.post("/v1/chat/completions", json=body) as answer,
    ):
        reader = asyncio.create_task(_drain(answer))
        try:
            yield
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)


async def costs(paddock: RunningPaddock) -> list[tuple[str, float]]:
    """Shares of a core, without pages and with them."""
    idle = await cores(paddock)
    rows = [("nobody looks, nothing happens", idle)]
    for path, count in (("/", 1), ("/", PAGES)):
        async with open_pages(paddock, path, count):
            rows.append((f"{count} idle pages of the overview", await cores(paddock) - idle))
    async with answering(paddock):
        busy = await cores(paddock)
        rows.append(("nobody looks, one answer is streamed", busy))
        for path, what in (("/", "the overview"), (f"/models/{MODEL}", "its model")):
            async with open_pages(paddock, path, PAGES):
                rows.append((f"{PAGES} pages of {what} while it is", await cores(paddock) - busy))
    return rows


async def weights(paddock: RunningPaddock, browser: Browser) -> list[tuple[str, float, float]]:
    """Bytes of each page with all that it loads, as sent, and ms to its first paint."""
    rows = []
    for path in ADDRESSES:
        seen = []
        for _ in range(3):
            context = await browser.new_context()
            page = await context.new_page()
            await page.goto(paddock.base_url + path)
            seen.append(await page.evaluate(WEIGHED))
            await context.close()
        rows.append((path, statistics.median(s[0] for s in seen), statistics.median(s[1] for s in seen)))
    return rows


async def update_ages(paddock: RunningPaddock, browser: Browser) -> list[float]:
    """Milliseconds from a command until the open overview shows a change."""
    page = await browser.new_page()
    await page.goto(paddock.base_url)
    await page.locator("#live-state[data-live=live]").wait_for()
    ages = []
    for number in range(UPDATES):
        await asyncio.sleep(1.0 + 0.07 * number)
        armed_ms = float(await page.evaluate(ARM))
        verb = "unload" if number % 2 else "load"
        await asyncio.to_thread(paddock.api, "POST", f"/models/model-1/{verb}")
        changed = page.evaluate("() => window.changed")
        ages.append(float(await asyncio.wait_for(changed, TIMEOUT_S)) - armed_ms)
    return ages


async def measure() -> tuple[Table, ...]:
    """Everything, as tables."""
    with tempfile.TemporaryDirectory(prefix="paddock-bench-") as name:
        folder = Path(name)
        script = {"tokens": TOKENS, "token_interval_s": TOKEN_INTERVAL_S}
        engine = write_fake_engine(folder / "engine", **script)
        model = write_tiny_gguf(folder / "tiny.gguf")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PADDOCK_STATE_DIR": str(folder / "state")}
        spent = Table("processor time added", f"{FEW} models", f"{MANY} models", title="per cent of one core")
        pages = Table("page", "KB sent", "first paint", f"KB, {MANY} models", f"paint, {MANY} models")
        ages = Table("models", "median", "slowest", title="from a command to the page, milliseconds")
        found = []
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for count in (FEW, MANY):
                tables = declare(engine.path, model, count)
                paddock = start_paddock(folder / f"up-{count}", tables, environment)
                try:
                    paddock.wait_state(MODEL, "ready", TIMEOUT_S)
                    found.append((await costs(paddock), await weights(paddock, browser)))
                    taken = await update_ages(paddock, browser)
                finally:
                    paddock.close()
                ages.add_row(str(count), f"{statistics.median(taken):.0f}", f"{max(taken):.0f}")
            await browser.close()
    for (what, few), (_, many) in zip(found[0][0], found[1][0], strict=True):
        spent.add_row(what, f"{few:.1%}", f"{many:.1%}")
    for few_sent, many_sent in zip(found[0][1], found[1][1], strict=True):
        pages.add_row(few_sent[0], *_page_cells(*few_sent[1:]), *_page_cells(*many_sent[1:]))
    return spent, pages, ages


def main() -> None:
    """Measure and print the tables."""
    for table in asyncio.run(measure()):
        Console().print(table)


def _page_cells(sent: float, paint: float) -> tuple[str, str]:
    return f"{sent / 1000:.0f}", f"{paint:.0f} ms"


async def _drain(answer: aiohttp.ClientResponse) -> None:
    async for _ in answer.content.iter_any():
        pass


if __name__ == "__main__":
    main()
