"""Pages over HTTP: what is answered to whom, with which headers."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from framework.dashboard.headers import CONTENT_SECURITY_POLICY
from framework.values.instance import State
from framework.values.manifest import AccessKey, Listener
from tests.dashboard import samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import make_system, set_access
from tests.dashboard.html import parse
from tests.dashboard.renders import PROBLEM
from tests.dashboard.samples import HOSTILE

NAMES = [pytest.param(name, id=f"hostile-{number}") for number, name in enumerate(HOSTILE)]
KEY = AccessKey("laptop", sha256(b"secret").hexdigest(), dashboard="operate")
PATHS = [
    "/",
    "/pools",
    "/speculation",
    "/events",
    "/models/smollm2",
    "/models/unknown",
    "/live?page=nothing",
    "/static/app.css",
]

PAGES = [path for path in PATHS if path.partition("?")[0] not in ("/live", "/static/app.css")]


def system(**fields: Any) -> Any:
    return make_system(samples.model(asked=samples.request(live={"aliases": ("small",)})), **fields)


@pytest.mark.parametrize("path", PATHS)
async def test_every_answer_is_guarded_by_the_same_policy(path: str) -> None:
    async with browser(system()) as client:
        headers = (await client.get(path)).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_the_policy_allows_no_inline_code_and_no_frame() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "frame-ancestors 'none'" in CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("path", PAGES)
async def test_pages_are_kept_nowhere_and_vary_by_who_asks(path: str) -> None:
    async with browser(system()) as client:
        headers = (await client.get(path)).headers
    assert headers["cache-control"] == "no-store"
    assert set(headers["vary"].split(", ")) >= {"HX-Request", "HX-Target"}


@pytest.mark.parametrize(
    ("path", "target"), [("/", "notice"), ("/models/smollm2", "log-part"), ("/events", "results")]
)
async def test_a_part_is_what_the_page_shows_at_the_same_address(path: str, target: str) -> None:
    async with browser(system()) as client:
        whole = await page(client, path)
        answer = await client.get(path, headers={"hx-request": "true", "hx-target": target})
    part = parse(answer.text)
    assert next(e.attributes["id"] for e in part.all() if "id" in e.attributes) == target
    assert part.one(id=target).text == whole.one(id=target).text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        pytest.param("/events?since=\u00b2", 400, "since: found", id="digit of another kind"),
        pytest.param("/events?before=-1", 400, "a whole number from 0", id="negative"),
        pytest.param("/events?kind=reday", 400, "allowed is", id="unknown kind"),
        pytest.param("/?state=raedy", 400, "ready, loading, waiting, failed, stopped", id="unknown state"),
        pytest.param("/models/smollm2?replica=-1", 400, "a whole number from 0", id="negative replica"),
        pytest.param("/models/smollm2?replica=7", 404, "it has 0", id="unknown replica"),
        pytest.param("/models/a%0Ab", 404, "There is no model", id="line end in a name"),
    ],
)
async def test_an_address_that_makes_no_sense_is_told_what_does(path: str, status: int, said: str) -> None:
    async with browser(system()) as client:
        assert said in (await page(client, path, status)).text


@pytest.mark.parametrize(
    "path", ["/events?model=&kind=&before=&since=", "/?state=", "/models/smollm2?replica=&q=", "/?from=mail"]
)
async def test_an_empty_field_and_a_mark_of_others_is_no_fault(path: str) -> None:
    async with browser(system()) as client:
        await page(client, path)


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_leads_to_its_page_whatever_it_holds(name: str) -> None:
    async with browser(make_system(samples.model(name))) as client:
        tree = await page(client, "/")
        link = next(tree.one("tbody").all("a"))
        answer = await client.get(link.attributes["href"])
    assert answer.status_code == 200
    assert answer.request.url.raw_path.decode().count("/") == 2


async def test_an_alias_leads_to_the_page_of_its_model() -> None:
    async with browser(system()) as client:
        answer = await client.get("/models/small")
    assert (answer.status_code, answer.headers["location"]) == (303, "/models/smollm2")


async def test_an_unknown_name_offers_the_nearest() -> None:
    async with browser(system()) as client:
        tree = await page(client, "/models/smolm2", 404)
    assert [a.text for a in tree.one("main").all("a", href="/models/smollm2")] == ["smollm2"]


async def test_a_broken_manifest_is_shown_on_every_page_until_it_is_good() -> None:
    running = system()
    running.current.problems = (PROBLEM,)
    async with browser(running) as client:
        for path in ("/", "/events", "/models/smollm2", "/models/unknown"):
            tree = parse((await client.get(path)).text)
            assert "serve.toml:14:1" in tree.one(id="banner").text
            assert "did you mean context" in tree.one(id="banner").text
        running.current.problems = ()
        assert (await page(client, "/")).one(id="banner").text == ""


async def test_warnings_of_the_manifest_are_no_errors() -> None:
    running = system()
    running.current.problems = (replace(PROBLEM, severity="warning"),)
    async with browser(running) as client:
        banner = (await page(client, "/")).one(id="banner").one("section", role="status")
    assert "was applied, with 1 warning" in banner.text
    assert [item.attributes["class"] for item in banner.all("li")] == ["problem tone-wait"]


async def test_without_models_the_page_says_what_to_do() -> None:
    async with browser(make_system()) as client:
        assert "source =" in (await page(client, "/")).one(id="models").text


async def test_three_hundred_models_are_all_there() -> None:
    models = [samples.model(f"m{n}", State.STOPPED) for n in range(300)]
    async with browser(make_system(*models)) as client:
        assert len(list((await page(client, "/")).all("tbody"))) == 300


async def test_a_filter_is_an_ordinary_link() -> None:
    async with browser(make_system(samples.model(), samples.failed())) as client:
        tree = await page(client, "/?state=failed")
    assert [row.text for row in tree.all("th", scope="row")] == ["big"]
    assert tree.one(id="show-failed").attributes["aria-current"] == "true"


async def test_a_log_is_searched_without_script() -> None:
    running = system()
    running.fleet.write("smollm2", "loading tensors", "listening", "tensor split")
    async with browser(running) as client:
        tree = await page(client, "/models/smollm2?q=TENSOR")
    assert [li.text for li in tree.one(id="log-lines").all("li")] == ["loading tensors", "tensor split"]
    assert tree.one(id="log-search").attributes["value"] == "TENSOR"


async def test_the_text_of_a_log_can_be_had_where_the_page_says() -> None:
    running = system()
    running.fleet.write("smollm2", "a line")
    async with browser(running) as client:
        tree = await page(client, "/models/smollm2")
        link = next(a for a in tree.one(id="log").all("a") if a.text == "As text")
        assert (await client.get(link.attributes["href"])).text == "a line\n"


async def test_exported_events_are_those_of_the_page() -> None:
    running = system()
    running.services.events.record("ready", "up", model="smollm2")
    running.services.events.record("state", "down", model="smollm2")
    async with browser(running) as client:
        tree = await page(client, "/events?kind=ready")
        link = next(a for a in tree.all("a") if a.text == "Export as JSON")
        exported = (await client.get(link.attributes["href"])).json()
    events = exported["events"] if isinstance(exported, dict) else exported
    assert [event["message"] for event in events] == ["up"]


async def test_events_are_paged_by_plain_links() -> None:
    running = system()
    for number in range(120):
        running.services.events.record("state", f"event {number}", model="smollm2")
    seen: list[str] = []
    async with browser(running) as client:
        path = "/events"
        while path:
            tree = await page(client, path)
            seen += [li.attributes["id"] for li in tree.one(id="event-rows").all("li")]
            path = next((a.attributes["href"] for a in tree.all("a") if a.text == "Older events"), "")
    assert seen == [f"event-{number}" for number in range(120, 0, -1)]


async def test_events_since_a_number_can_be_asked_for() -> None:
    running = system()
    for number in range(5):
        running.services.events.record("state", f"event {number}")
    async with browser(running) as client:
        tree = await page(client, "/events?since=3")
    assert [li.attributes["id"] for li in tree.one(id="event-rows").all("li")] == ["event-5", "event-4"]


async def test_without_the_fetched_scripts_nothing_claims_to_be_live(tmp_path: Path) -> None:
    for name in ("app.css", "icon.svg", "app.js"):
        (tmp_path / name).write_text("", encoding="utf-8")
    async with browser(system(static_dir=tmp_path)) as client:
        tree = await page(client, "/")
    assert list(tree.all("script")) == []
    assert list(tree.all(id="live")) == []
    assert tree.one(id="refresh").attributes["href"] == "/"


@pytest.mark.parametrize("path", ["/", "/events?kind=ready", "/models/smollm2?q=a%26b"])
async def test_with_access_a_page_asks_for_a_key_first(path: str) -> None:
    async with browser(system(access=[KEY])) as client:
        answer = await client.get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in?next=%2F")


async def test_a_script_without_session_is_led_to_the_sign_in_page() -> None:
    async with browser(system(access=[KEY])) as client:
        answer = await client.get("/", headers={"hx-request": "true", "hx-target": "notice"})
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/sign-in?next=%2F")


async def test_a_foreign_host_name_gets_no_page() -> None:
    async with browser(system()) as client:
        answer = await client.get("/", headers={"host": "evil.example:8080"})
    assert answer.status_code == 403
    assert "smollm2" not in answer.text


async def test_a_listener_on_the_network_without_access_is_not_open() -> None:
    async with browser(system(listen=Listener("192.0.2.7", 8080))) as client:
        assert (await client.get("/")).status_code == 303


async def test_access_that_arrives_later_ends_the_open_door() -> None:
    running = system()
    async with browser(running) as client:
        assert (await client.get("/")).status_code == 200
        set_access(running, KEY)
        assert (await client.get("/")).status_code == 303


async def test_looking_touches_no_model() -> None:
    running = make_system(samples.model("a", State.STOPPED), samples.model("b"))
    async with browser(running) as client:
        for path in ("/", "/models/a", "/models/b", "/speculation", "/events"):
            await client.get(path)
    assert running.fleet.asked == []


async def test_a_page_is_no_answer_to_other_methods() -> None:
    async with browser(system()) as client:
        answer: httpx.Response = await client.delete("/events")
    assert answer.status_code == 405


async def test_a_model_that_is_not_loaded_has_nothing_that_could_differ() -> None:
    async with browser(make_system(samples.model("idle", State.STOPPED))) as client:
        text = (await page(client, "/models/idle")).one("main").text
    assert "Not loaded: what differs from what was asked is told once it is." in text
    assert "what was asked for is what there is" not in text
