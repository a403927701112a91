"""What a code means, from every place where a reason is shown."""

from __future__ import annotations

import pytest

from framework.dashboard.urls import reason_url
from framework.values.reason import Reason
from tests.dashboard import samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.html import parse
from tests.dashboard.renders import GUIDE, all_pages, templates
from tests.dashboard.samples import HOSTILE


def system() -> FakeSystem:
    found = make_system(samples.degraded(), samples.failed())
    found.services.events.record("degraded", "", model="long-context", reason=samples.CONTEXT_CUT)
    found.services.events.record("state", "starting -> ready", model="long-context")
    return found


@pytest.mark.parametrize("path", ["/", "/models/big", "/models/long-context", "/events"])
async def test_a_reason_leads_to_its_explanation(path: str) -> None:
    async with browser(system()) as client:
        links = [a.attributes["href"] for a in (await page(client, path)).all("a", class_="reason-link")]
        assert links
        for link in set(links):
            assert (await client.get(link)).status_code == 200


def test_no_page_shows_a_reason_without_a_way_to_its_explanation() -> None:
    for name, one in all_pages():
        for head in parse(templates().page(one.template, one.value, one.viewer)).all("div", class_="reason"):
            assert list(head.all("a", class_="reason-link")), f"{name}: {head.text}"


async def test_it_says_what_it_means_what_to_do_and_who_has_it() -> None:
    async with browser(system()) as client:
        main = (await page(client, "/reasons/context_lowered")).one("main")
    assert main.one("h1").text == "context_lowered"
    meaning = main.one("dl", class_="explained").text
    assert "The engine allocated a shorter context than asked." in meaning
    assert "Free memory, or ask for what fits." in meaning
    hrefs = [link.attributes["href"] for link in main.one("ul", class_="bearers").all("a")]
    assert hrefs == ["/models/long-context", "/manifest/remedies?model=long-context"]
    (event,) = main.one("ol", class_="events").all("li")
    assert "degraded" in event.text


async def test_a_code_with_two_meanings_tells_both_and_where_else_it_is_named() -> None:
    async with browser(system()) as client:
        main = (await page(client, "/reasons/companion_unfit")).one("main")
        assert len(list(main.all("dl", class_="explained"))) == 2
        main = (await page(client, "/reasons/drafter_not_found")).one("main")
    assert any(a.text == "drafter_missing" for a in main.one("ul", class_="mentions").all("a"))


async def test_an_unknown_code_says_so_and_what_may_be_meant() -> None:
    async with browser(system()) as client:
        main = (await page(client, "/reasons/out_of_memry", status=404)).one("main")
        assert "no explanation of that code" in main.text
        assert any(a.attributes["href"] == "/reasons/out_of_memory" for a in main.all("a"))
        assert (await client.get("/reasons/")).headers["location"] == "/reasons"


@pytest.mark.parametrize("text", HOSTILE, ids=[f"hostile-{number}" for number in range(len(HOSTILE))])
async def test_a_hostile_code_is_text(text: str) -> None:
    found = make_system(samples.model())
    found.services.events.record("state", "x", reason=Reason(text, "A sentence.", "", "error"))
    async with browser(found) as client:
        events = await page(client, "/events")
        (link,) = (a.attributes["href"] for a in events.all("a", class_="reason-link"))
        assert link == reason_url(text)
        assert "A sentence." in (await page(client, link, status=404)).one("main").text


async def test_every_code_has_a_page_and_stands_in_the_list() -> None:
    async with browser(system()) as client:
        main = (await page(client, "/reasons")).one("main")
        listed = {a.attributes["href"] for table in main.all("table") for a in table.all("a")}
        assert {reason_url(code) for code in GUIDE.codes} <= listed
        for code in GUIDE.codes:
            assert (await client.get(reason_url(code))).status_code == 200
