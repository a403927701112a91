"""The live stream: what it sends, how often, to whom, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.requests import Request
from starlette.types import Message

from framework.api.auth import cookie_name
from framework.api.errors import ApiError
from framework.api.sessions import Session
from framework.dashboard.desk import Desk, make_desk
from framework.dashboard.live import Pace, live, updates
from framework.dashboard.live_address import tag_now
from framework.dashboard.live_sources import source_of
from framework.values.instance import LoadProgress, QueueView, State
from framework.values.manifest import AccessKey
from framework.values.reason import Reason
from tests.dashboard import pool_samples, samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import STATIC, TEMPLATES, FakeSystem, make_system, set_access
from tests.dashboard.html import Element, parse
from tests.dashboard.renders import PROBLEM

QUICK = Pace(interval_s=0.0, heartbeat_s=5.0)
PATIENCE_S = 5.0


@dataclass
class Stream:
    """One page that listens. `next_ids` waits for a message and names the elements in it."""

    messages: AsyncIterator[str]

    async def next(self) -> list[Element]:
        """The parts of the next answer; a comment has none."""
        text = await asyncio.wait_for(anext(self.messages), PATIENCE_S)
        datas = [
            "\n".join(line.removeprefix("data: ") for line in block.split("\n") if line.startswith("data: "))
            for block in text.split("\n\n")
        ]
        return [child for data in datas for child in parse(data).children if isinstance(child, Element)]

    async def next_ids(self) -> list[str]:
        """Ids, or where a list grows."""
        return [e.attributes.get("id", e.attributes["hx-swap-oob"]) for e in await self.next()]


@asynccontextmanager
async def listening(
    system: FakeSystem, query: dict[str, str], *, have: str | None = None, pace: Pace = QUICK
) -> AsyncIterator[Stream]:
    """The stream of a page that was rendered just now, unless `have` says otherwise."""
    desk = make_desk(system.services, TEMPLATES, STATIC)
    request = request_of(system, desk, query, have)
    stream = updates(desk, request, await source_of(desk, request), pace)
    assert (await anext(stream)).startswith("retry: ")
    try:
        yield Stream(stream)
    finally:
        await stream.aclose()  # type: ignore[attr-defined]


def request_of(system: FakeSystem, desk: Desk, query: dict[str, str], have: str | None) -> Request:
    """What the browser sends, with the cookie of a session."""
    sessions, access = system.services.sessions, system.current.manifest.access
    if access:
        cookie, _ = sessions.create("key", access[0].name, access[0].key_sha256)
    else:
        cookie, _ = sessions.create("open", "dashboard")
    log = system.fleet.log(query.get("model", ""))
    values = {**query, "have": have if have is not None else tag_now(desk, log)}
    headers = [
        (b"host", b"127.0.0.1:8080"),
        (b"cookie", f"{cookie_name(system.services)}={cookie}".encode()),
    ]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/live",
        "raw_path": b"/live",
        "query_string": urlencode(values).encode(),
        "headers": headers,
    }
    return Request(scope)


OVERVIEW = {"page": "overview"}
MODEL = {"page": "model", "model": "smollm2"}


async def test_a_page_at_rest_gets_nothing_but_comments() -> None:
    system = make_system(samples.model(), devices=())
    async with listening(system, MODEL, pace=Pace(0.0, 0.01)) as stream:
        assert await stream.next() == []
        assert await stream.next() == []


async def test_a_page_that_was_rendered_earlier_is_brought_up_to_date_first() -> None:
    async with listening(make_system(samples.model()), OVERVIEW, have="0-1-0") as stream:
        assert await stream.next_ids() == ["banner", "summary", "models", "devices", "recent"]


async def test_a_change_arrives_as_the_parts_that_changed() -> None:
    system = make_system(samples.model(), samples.model("other", State.STOPPED))
    async with listening(system, MODEL) as stream:
        view = system.fleet.models["smollm2"]
        system.fleet.put(replace(view, queue=QueueView(2, 16, 1.0, 3.0)))
        assert await stream.next_ids() == ["model-head"]


async def test_a_change_of_state_is_announced() -> None:
    system = make_system(samples.model())
    async with listening(system, MODEL) as stream:
        system.fleet.put(samples.model(state=State.STOPPED))
        parts = await stream.next()
    announced = next(e for e in parts if e.attributes["hx-swap-oob"] == "innerHTML:#announce")
    assert announced.text == "smollm2: Not loaded"


async def test_many_changes_of_state_are_announced_in_short() -> None:
    system = make_system(*[samples.model(f"m{n}", State.STOPPED) for n in range(6)])
    async with listening(system, OVERVIEW) as stream:
        system.fleet.put(*[samples.model(f"m{n}") for n in range(6)])
        parts = await stream.next()
    assert parts[-1].text == "m0: Ready. m1: Ready. m2: Ready. and 3 more"


async def test_a_broken_manifest_appears_without_reloading() -> None:
    system = make_system(samples.model())
    async with listening(system, MODEL) as stream:
        system.current.problems = (PROBLEM,)
        system.services.changes.mark()
        (banner,) = await stream.next()
    assert "serve.toml:14:1" in banner.text


async def test_log_lines_arrive_one_by_one() -> None:
    system = make_system(samples.model())
    system.fleet.write("smollm2", "first")
    async with listening(system, MODEL) as stream:
        system.fleet.write("smollm2", "<b>second</b>")
        (grown,) = await stream.next()
    assert grown.attributes["hx-swap-oob"] == "beforeend:#log-lines"
    assert grown.text == "<b>second</b>"


async def test_only_lines_that_match_the_search_arrive() -> None:
    system = make_system(samples.model())
    system.fleet.write("smollm2", "error one")
    async with listening(system, {**MODEL, "q": "error"}) as stream:
        system.fleet.write("smollm2", "fine", "error two")
        (grown,) = await stream.next()
    assert grown.text == "error two"


async def test_a_line_between_page_and_stream_is_not_lost() -> None:
    system = make_system(samples.model())
    system.fleet.write("smollm2", "first")
    desk = make_desk(system.services, TEMPLATES, STATIC)
    have = tag_now(desk, system.fleet.log("smollm2"))
    system.fleet.write("smollm2", "second")
    async with listening(system, MODEL, have=have) as stream:
        assert "log-box" in await stream.next_ids()


async def test_a_new_event_arrives_at_the_top() -> None:
    system = make_system(samples.model())
    system.services.events.record("state", "one")
    async with listening(system, {"page": "events"}) as stream:
        system.services.events.record("state", "two", reason=Reason("c", "<i>why</i>"))
        (grown,) = await stream.next()
    assert grown.attributes["hx-swap-oob"] == "afterbegin:#event-rows"
    assert "<i>why</i>" in grown.text


async def test_events_that_the_filter_hides_do_not_arrive() -> None:
    system = make_system(samples.model())
    system.services.events.record("ready", "one")
    async with listening(system, {"page": "events", "kind": "ready"}, pace=Pace(0.0, 0.05)) as stream:
        system.services.events.record("state", "two")
        assert await stream.next() == []


async def test_progress_is_looked_at_though_nobody_says_that_it_moved() -> None:
    system = make_system(samples.loading("smollm2"))
    async with listening(system, MODEL, pace=Pace(0.0, 60.0, look_s=0.01)) as stream:
        view = system.fleet.models["smollm2"]
        progress = LoadProgress("mapping", 98 * samples.MIB, 100 * samples.MIB, 0.98, eta_s=7.2)
        instances = (replace(view.instances[0], progress=progress),)
        system.fleet.models["smollm2"] = replace(view, instances=instances)
        (head,) = await stream.next()
    assert "about 7 s left" in head.text


async def test_a_pool_that_changes_sends_its_part() -> None:
    system = make_system(samples.model(), devices=())
    system.fleet.show(pool_samples.gpu_pool())
    async with listening(system, {"page": "pools"}) as stream:
        system.fleet.show(replace(pool_samples.gpu_pool(), waiting=()))
        (part,) = await stream.next_ids()
    assert part.endswith("-waiting")


async def test_who_waits_for_memory_is_looked_at_though_nobody_says_that_time_passed() -> None:
    waits = samples.model(state=State.PENDING, queue=QueueView(1, 16, 1.0, 9.0, position=1))
    system = make_system(waits, devices=())
    system.fleet.show(pool_samples.gpu_pool())
    async with listening(system, {"page": "pools"}, pace=Pace(0.0, 60.0, look_s=0.01)) as stream:
        later = (pool_samples.waiting(waited_s=8.0),)
        system.fleet.memory = (replace(pool_samples.gpu_pool(), waiting=later),)
        (part,) = await stream.next()
    assert "for 8 s" in part.text


async def test_many_changes_in_a_moment_are_one_update() -> None:
    system = make_system(samples.model())
    async with listening(system, MODEL, pace=Pace(0.05, 0.02)) as stream:
        await asyncio.sleep(0)
        for waiting in range(1, 50):
            view = system.fleet.models["smollm2"]
            system.fleet.put(replace(view, queue=QueueView(waiting, 64, None, None)))
        (head,) = await stream.next()
        assert "49 of at most 64" in head.text
        assert await stream.next() == []


async def test_a_model_that_leaves_the_manifest_is_gone_and_may_come_back() -> None:
    system = make_system(samples.model())
    async with listening(system, MODEL) as stream:
        system.fleet.remove("smollm2")
        (gone,) = await stream.next()
        assert "no longer in the manifest" in gone.text
        system.fleet.put(samples.model())
        assert "model" in await stream.next_ids()


async def test_a_stream_ends_with_its_session() -> None:
    key = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard="operate")
    system = make_system(samples.model(), access=[key])
    async with listening(system, MODEL) as stream:
        set_access(system, AccessKey("other", sha256(b"x").hexdigest(), dashboard="operate"))
        system.services.changes.mark()
        ended = [part async for part in stream.messages]
    assert [text for text in ended if "event" in text] == []


async def test_a_stream_ends_with_the_manager() -> None:
    system = make_system(samples.model())
    async with listening(system, MODEL) as stream:
        system.services.changes.close()
        async with asyncio.timeout(PATIENCE_S):
            ended = [part async for part in stream.messages]
    assert [text for text in ended if "event" in text] == []


async def test_a_role_that_changes_takes_the_buttons_away() -> None:
    key = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard="operate")
    system = make_system(samples.model(), access=[key])
    async with listening(system, MODEL) as stream:
        set_access(system, replace(key, dashboard="view"))
        system.services.changes.mark()
        parts = await stream.next()
    assert [button for part in parts for button in part.all("button", type="submit")] == []
    assert "model" in [part.attributes["id"] for part in parts]


async def test_the_address_of_the_stream_stands_in_the_page() -> None:
    system = make_system(samples.model())
    async with browser(system) as client:
        tree = await page(client, "/models/smollm2?q=a+b")
    if scripts := list(tree.all("script")):
        assert len(scripts) == 3
        url = urlsplit(tree.one(id="live").attributes["sse-connect"])
        assert (url.path, "q=a+b" in url.query) == ("/live", True)


async def test_a_page_that_outlived_its_session_gets_a_new_one_and_comes_back() -> None:
    async with browser(make_system(samples.model())) as client:
        answer = await client.get("/live?page=overview")
    assert answer.text == "retry: 1000\n\n"
    assert "set-cookie" in answer.headers


async def test_where_a_key_is_needed_there_is_no_stream_without_session() -> None:
    key = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard="operate")
    async with browser(make_system(samples.model(), access=[key]), accept="text/event-stream") as client:
        answer = await client.get("/live?page=overview")
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


async def test_too_many_open_pages_are_refused() -> None:
    system = make_system(samples.model())
    desk = make_desk(system.services, TEMPLATES, STATIC)
    for number in range(desk.streams.LIMIT):
        desk.streams.opened(Session("open", "dashboard", str(number)))
    with pytest.raises(ApiError, match="Too many pages"):
        await live(desk, request_of(system, desk, OVERVIEW, None))


async def test_a_head_request_is_not_kept_waiting() -> None:
    async with browser(make_system(samples.model())) as client:
        await client.get("/")
        answer = await client.head("/live?page=overview")
    assert answer.headers["content-type"].startswith("text/event-stream")


async def test_a_page_that_has_no_stream_is_not_found() -> None:
    async with browser(make_system(samples.model())) as client:
        await client.get("/")
        assert (await client.get("/live?page=nothing")).status_code == 404


async def test_one_session_leaves_room_for_the_others_and_what_ends_is_room_again() -> None:
    system = make_system(samples.model())
    desk = make_desk(system.services, TEMPLATES, STATIC)
    one, other = (request_of(system, desk, {"page": "overview"}, None) for _ in range(2))
    open_streams = [await live(desk, one) for _ in range(desk.streams.LIMIT_OF_ONE)]
    with pytest.raises(ApiError) as refused:
        await live(desk, one)
    assert (refused.value.status, refused.value.code) == (503, "too_many_pages")
    open_streams.append(await live(desk, other))
    system.services.changes.close()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        return

    for stream in open_streams:
        await stream({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
    assert desk.streams.count == 0
