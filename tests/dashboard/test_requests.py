"""The pages of requests: who sees them, what they say, ending one, and that chart and table agree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from framework.api.request_routes import CSV
from framework.dashboard.pages.request import ended_body, time_waterfall
from framework.dashboard.pages.requests import PAGE_ROWS, request_row, requests_fragments, running_list
from framework.proxy.inflight import InFlight
from framework.proxy.records import ActiveRequest
from framework.telemetry.events import utc_now
from framework.values.manifest import AccessKey
from framework.values.request_record import RequestTexts
from tests.dashboard import samples
from tests.dashboard.client import SAME_ORIGIN, browser, page, submit
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.html import Element
from tests.dashboard.renders import shell
from tests.dashboard.request_renders import ROWS, kept, requests, view
from tests.telemetry.samples import life, record

VIEWER = AccessKey("night", sha256(b"look").hexdigest(), dashboard="view")
OPERATOR = AccessKey("laptop", sha256(b"act").hexdigest(), dashboard="operate")


@asynccontextmanager
async def served(
    folder: Path, *records: Any, mode: str = "metadata", **options: Any
) -> AsyncIterator[tuple[FakeSystem, httpx.AsyncClient]]:
    """A system whose request log has these, and a browser."""
    with life(folder) as one:
        system = make_system(samples.model("chat"), samples.model("other"), kept=one, **options)
        log = system.services.request_log
        log.adopt(mode)  # type: ignore[arg-type]
        for each in records:
            log.keep(each)
        one.until(lambda: len(one.store.find_requests(limit=9999)) == len(records), "the request log")
        async with browser(system) as client:
            yield system, client


async def sign_in(client: httpx.AsyncClient, key: str) -> None:
    answer = await client.post("/sign-in", data={"key": key, "next": "/"}, headers=SAME_ORIGIN)
    assert answer.status_code == 303


def serve_one(system: FakeSystem, request_id: str, **fields: Any) -> ActiveRequest:
    active = ActiveRequest(request_id, utc_now(), "/v1/chat/completions", 0.0, **{"model": "chat", **fields})
    in_flight = system.services.requests
    assert isinstance(in_flight, InFlight)
    in_flight.add(active)
    return active


def ids(tree: Element) -> list[str]:
    """Requests of the table, newest first."""
    rows = tree.one("tbody", id="request-rows")
    return [next(row.all("a")).attributes["href"].rpartition("/")[2] for row in rows.all("tr")]


async def test_chart_and_table_have_the_same_requests(tmp_path: Path) -> None:
    """MD-05: 200 requests with speeds from 1 to 200 tokens/s, ten of them without."""
    records = [
        record(n, at=utc_now(), generation_tokens_per_s=None if n % 20 == 0 else float(n))
        for n in range(1, 201)
    ]
    async with served(tmp_path, *records) as (_, client):
        tree = await page(client, "/requests?model=chat&last_s=3600")
    shown = [cell.text for cell in tree.one("tbody", id="request-rows").all("td") if "tokens/s" in cell.text]
    bars = [bar.text for bar in tree.one(id="speeds").all("title") if "requests" in bar.text]
    counts = [int(text.rpartition(" ")[2]) for text in bars]
    rows = [int(row.text.split()[-1]) for row in tree.one(id="speeds-table-rows").all("tr")]
    assert len(ids(tree)) == 200
    assert sum(counts) == sum(rows) == len(shown) == 190
    assert "190 of the 200 requests in the list have a speed" in tree.one(id="speeds").text


async def test_a_request_is_told_with_what_is_known_and_dashes(tmp_path: Path) -> None:
    whole = record(1, prompt_tokens_per_s=200.0, generation_tokens_per_s=50.0, queue_s=8.0, total_s=10.0)
    bare = record(2, prompt_tokens=None, cached_tokens=None, generated_tokens=None, stop_reason=None)
    async with served(tmp_path, whole, bare) as (_, client):
        tree = await page(client, "/requests")
    rows = [row.text for row in tree.one(id="request-rows").all("tr")]
    assert "200.0 tokens/s" in rows[1]
    assert "50.0 tokens/s" in rows[1]
    assert "8 s" in rows[1]
    assert "tokens/s" not in rows[0]
    assert rows[0].count("\u2013") == 3
    assert "cached" not in rows[0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["req-5", "req-4", "req-3", "req-2", "req-1"]),
        ("model=other", ["req-3"]),
        ("key=phone", ["req-4"]),
        ("status=failed", ["req-5", "req-2"]),
        ("status=404", ["req-2"]),
        ("status=5xx", ["req-5"]),
        ("status=answered&key=laptop", ["req-3", "req-1"]),
        ("last_s=600", ["req-5", "req-4", "req-3", "req-2"]),
        ("took_s=60", ["req-5", "req-4"]),
        ("took_s=61&status=failed", ["req-5"]),
        ("before=3", ["req-2", "req-1"]),
    ],
)
async def test_filters_leave_what_passes(tmp_path: Path, query: str, expected: list[str]) -> None:
    records = (
        record(1, at=utc_now() - timedelta(hours=2)),
        record(2, at=utc_now(), status=404),
        record(3, at=utc_now(), model="other"),
        record(4, at=utc_now(), key="phone", total_s=60.0),
        record(5, at=utc_now(), status=502, total_s=900.5),
    )
    async with served(tmp_path, *records) as (_, client):
        assert ids(await page(client, f"/requests?{query}")) == expected


@pytest.mark.parametrize(
    "query", ["status=600", "status=ok", "last_s=0", "last_s=x", "took_s=-1", "before=-1"]
)
async def test_a_filter_that_makes_no_sense_is_refused_with_what_is_allowed(
    tmp_path: Path, query: str
) -> None:
    async with served(tmp_path) as (_, client):
        tree = await page(client, f"/requests?{query}", 400)
    assert "allowed is" in tree.one("main").text


async def test_pages_follow_each_other_and_exports_have_the_same_filter(tmp_path: Path) -> None:
    records = [record(n, at=utc_now()) for n in range(1, PAGE_ROWS + 4)]
    async with served(tmp_path, *records) as (_, client):
        first = await page(client, "/requests?model=chat")
        links = {link.text: link.attributes["href"] for link in first.all("a")}
        second = await page(client, links["Older requests"])
        text = (await client.get(links["Export as CSV"])).text
        found = (await client.get(links["Export as JSON"])).json()
    assert (len(ids(first)), len(ids(second))) == (PAGE_ROWS, 3)
    assert not set(ids(first)) & set(ids(second))
    assert len(text.splitlines()) == len(found["requests"]) + 1 == PAGE_ROWS + 4


async def test_who_may_only_look_is_told_why_there_is_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, record(1, key="secret-name"), access=(VIEWER, OPERATOR)) as (system, client):
        serve_one(system, "req-live", key="secret-name")
        await sign_in(client, "look")
        for path in ("/requests", "/requests/req-1", "/requests/req-live"):
            tree = await page(client, path, 403)
            assert 'dashboard = "operate"' in tree.one("main").text
            assert "secret-name" not in tree.text
        stream = await client.get("/live?page=requests")
        assert (stream.status_code, "secret-name" in stream.text) == (403, False)
        refused = await submit(client, "/requests/req-live/cancel")
        assert refused.status_code == 403
        await sign_in(client, "act")
        assert ids(await page(client, "/requests")) == ["req-1"]


async def test_a_running_request_is_ended_and_the_page_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as (system, client):
        active = serve_one(system, "req-live")
        tree = await page(client, "/requests?model=chat")
        form = next(tree.one(id="running").all("form"))
        sent = {field.attributes["name"]: field.attributes["value"] for field in form.all("input")}
        answer = await submit(client, form.attributes["action"], **sent)
        assert answer.status_code == 303
        assert active.scope.cause == "cancelled"
        assert answer.headers["location"].startswith("/requests?model=chat&done=")
        tree = await page(client, answer.headers["location"])
    assert "cancel of request req-live accepted" in tree.one(id="notice").text


@pytest.mark.parametrize(
    ("token", "request_id", "status"), [("wrong", "req-live", 403), (None, "req-gone", 404)]
)
async def test_a_cancel_needs_the_token_of_the_page_and_a_request(
    tmp_path: Path, token: str | None, request_id: str, status: int
) -> None:
    async with served(tmp_path) as (system, client):
        active = serve_one(system, "req-live")
        await page(client, "/requests")
        fields = {} if token is None else {"csrf_token": token}
        answer = await submit(client, f"/requests/{request_id}/cancel", **fields)
    assert (answer.status_code, active.scope.cause) == (status, None)


async def test_one_request_is_told_in_full(tmp_path: Path) -> None:
    texts = RequestTexts({"messages": [{"content": "<b>hi</b>"}]}, {"content": "<script>"}, True)
    whole = record(1, prompt_s=0.25, prompt_tokens_per_s=812.5)
    async with served(tmp_path, whole.__class__(**{**vars(whole), "texts": texts}), mode="full") as (
        _,
        client,
    ):
        tree = await page(client, "/requests/req-1")
        missing = await page(client, "/requests/nothing", 404)
    text = tree.one("main").text
    assert "waited for an instance 250 ms" in text
    assert "the answer 1.5 s" in text
    assert "250 ms, 812.5 tokens/s" in text
    assert '"content": "<b>hi</b>"' in text
    assert "cut to what the log keeps" in text
    assert 'No request "nothing" is running or in the request log.' in missing.one("main").text


async def test_a_running_request_has_a_page_too(tmp_path: Path) -> None:
    async with served(tmp_path) as (system, client):
        serve_one(system, "req-live", phase="streaming")
        tree = await page(client, "/requests/req-live")
    assert "is answered" in tree.one(id="request").text
    assert tree.one("button", id=next(tree.all("button", type="submit")).attributes["id"]).text.startswith(
        "Cancel"
    )


async def test_a_log_that_is_off_says_how_to_turn_it_on(tmp_path: Path) -> None:
    async with served(tmp_path, mode="off") as (_, client):
        tree = await page(client, "/requests")
    assert 'request_log = "metadata"' in tree.one(id="requests").text


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, ["250 ms", "250 ms", "1.5 s"], id="all"),
        pytest.param({"first_token_s": None}, ["250 ms", "1.8 s"], id="no-first-token"),
        pytest.param({"queue_s": 0.0, "first_token_s": 0.0}, ["0 s", "0 s", "2 s"], id="at-once"),
        pytest.param(
            {"queue_s": 9.0, "first_token_s": 5.0}, ["2 s", "0 s", "0 s"], id="parts-beyond-the-whole"
        ),
        pytest.param(
            {"queue_s": 0.0, "first_token_s": 0.0, "total_s": 0.0}, ["0 s", "0 s", "0 s"], id="no-time-at-all"
        ),
    ],
)
def test_the_parts_of_a_time_add_up(fields: dict[str, Any], expected: list[str]) -> None:
    picture = time_waterfall(record(1, **fields))
    assert [step.time for step in picture.steps] == expected
    assert all(0 <= step.start_share < 1 and 0 < step.width_share <= 1 for step in picture.steps)


def test_a_long_request_is_told_in_minutes() -> None:
    assert request_row(kept(1, total_s=185.0)).total == "3 min 5 s"


def test_a_row_stays_while_its_age_goes_on() -> None:
    (before,), (later,) = (
        running_list([view(1)], samples.NOW + timedelta(seconds=seconds), "/requests").rows
        for seconds in (1, 2)
    )
    assert before.age != later.age
    old, new = (
        next(f for f in requests_fragments(requests(shell(), running=[view(1)])) if f.id == "running")
        for _ in range(2)
    )
    assert old.parts[0].compared == new.parts[0].compared


def test_what_is_hidden_in_texts_of_a_request_does_not_make_it_fail() -> None:
    texts = RequestTexts({"n": 1, "nothing": None, "list": []}, {"content": ""}, False)
    body = ended_body(record(1).__class__(**{**vars(record(1)), "texts": texts}), "full")
    assert body.ended is not None
    assert [one.name for one in body.ended.asked] == ["n", "nothing", "list"]
    assert body.ended.answered == ()


def test_the_samples_hold_every_look() -> None:
    assert {request_row(row).tone for row in ROWS} == {"ok", "idle", "wait", "bad"}
    assert CSV == "text/csv"
