"""Every page and every part of one: well-formed, escaped, accessible, and made of its page value alone."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from jinja2 import UndefinedError, nodes
from markupsafe import escape

from framework.dashboard import answers, session_pages
from framework.dashboard.charts import chart, timeline
from framework.dashboard.pages import (
    compare,
    device_list,
    event_rows,
    events,
    figures,
    file,
    files,
    log,
    manifest,
    memory_check,
    model,
    overview,
    pools,
    process,
    reason_pages,
    request,
    requests,
    shell,
    slots,
    spec_speeds,
    speculation,
    text_changes,
    waterfall,
)
from framework.dashboard.pages import outlook as manifest_outlook
from framework.dashboard.templating import FRAME
from framework.dashboard.tryout import lanes, talk
from framework.dashboard.tryout import page as tryout
from framework.dashboard.updates import Feed
from framework.runtime.logs import LogLine
from framework.values.plain_text import HIDDEN_IN_LINES, visible_lines
from tests.dashboard.fake_system import TEMPLATES
from tests.dashboard.html import Element, parse
from tests.dashboard.renders import (
    OPERATOR,
    WATCHER,
    Page,
    all_fragments,
    all_pages,
    hostile_pages,
    templates,
)
from tests.dashboard.samples import HOSTILE

PAGES = dict(all_pages())
HOSTILE_PAGES = dict(hostile_pages())
FRAGMENTS = {f"{fragment.template}-{number}": fragment for number, fragment in enumerate(all_fragments())}
TEMPLATE_NAMES = sorted(path.name for path in TEMPLATES.glob("*.html"))

# What each template prints: the name of its value and the type of it.
CONTEXTS: dict[str, tuple[str, type[Any]]] = {
    "overview.html": ("page", overview.OverviewPage),
    "model.html": ("page", model.ModelPage),
    "events.html": ("page", events.EventsPage),
    "sign_in.html": ("page", session_pages.SignInPage),
    "error.html": ("page", answers.ErrorPage),
    "files.html": ("page", files.FilesPage),
    "file.html": ("page", file.FilePage),
    "manifest.html": ("page", manifest.ManifestPage),
    "manifest_version.html": ("page", manifest.VersionPage),
    "manifest_ways.html": ("page", manifest.WaysPage),
    "_manifest_form.html": ("form", manifest.EditorForm),
    "_manifest_check.html": ("check", manifest.CheckList),
    "_manifest_preview.html": ("preview", manifest.Preview),
    "_manifest_outlook.html": ("outlook", manifest_outlook.OutlookTable),
    "_manifest_conflict.html": ("conflict", manifest.Conflict),
    "_manifest_history.html": ("history", manifest.VersionList),
    "_text_changes.html": ("changes", text_changes.TextChanges),
    "reasons.html": ("page", reason_pages.ReasonsPage),
    "reason.html": ("page", reason_pages.ReasonPage),
    "_banner.html": ("banner", shell.Banner),
    "_notice.html": ("notice", shell.Notice),
    "_summary.html": ("summary", overview.Summary),
    "_model_table.html": ("table", overview.ModelTable),
    "_model_row.html": ("row", overview.ModelRow),
    "_devices.html": ("devices", device_list.DeviceList),
    "pools.html": ("page", pools.PoolsPage),
    "_pools.html": ("pools", pools.PoolSections),
    "_pool.html": ("pool", pools.PoolSection),
    "_pool_devices.html": ("devices", pools.Devices),
    "_pool_waiting.html": ("waiting", pools.Waiting),
    "_pool_residents.html": ("residents", pools.Residents),
    "speculation.html": ("page", speculation.SpeculationPage),
    "_speculation.html": ("speculation", speculation.SpecSections),
    "_spec_row.html": ("row", speculation.SpecRow),
    "_spec_card.html": ("card", speculation.SpecCard),
    "_spec_instance.html": ("instance", speculation.SpecInstance),
    "_spec_speeds.html": ("speeds", spec_speeds.SpeedSection),
    "try.html": ("page", tryout.TryPage),
    "_try_choice.html": ("choice", tryout.Choice),
    "_try_lane.html": ("lane", lanes.Lane),
    "_try_state.html": ("state", lanes.LaneState),
    "_try_settings.html": ("form", tryout.TryForm),
    "_try_turn.html": ("turn", talk.Turn),
    "_try_answer.html": ("answer", talk.Answer),
    "_recent.html": ("recent", event_rows.RecentEvents),
    "_model_body.html": ("body", model.ModelBody),
    "_model_gone.html": ("gone", model.GoneModel),
    "_model_head.html": ("head", model.ModelHead),
    "_model_actions.html": ("buttons", model.ModelActions),
    "_instances.html": ("instances", model.InstanceSections),
    "_instance.html": ("section", model.InstanceSection),
    "_compare.html": ("compare", compare.CompareTable),
    "_reasons.html": ("reasons", model.ReasonList),
    "_slots.html": ("grid", slots.SlotGrid),
    "_slot_rates.html": ("rates", slots.SlotRates),
    "_slot.html": ("slot", slots.SlotCell),
    "_process.html": ("process", process.ProcessFacts),
    "_attempts.html": ("attempts", process.AttemptList),
    "_command.html": ("command", process.CommandLine),
    "_memory.html": ("memory", waterfall.MemorySection),
    "_waterfall.html": ("waterfall", waterfall.Waterfall),
    "_memory_check.html": ("check", memory_check.MemoryCheckSection),
    "_inspect_form.html": ("form", file.InspectForm),
    "requests.html": ("page", requests.RequestsPage),
    "_request_list.html": ("requests", requests.RequestList),
    "_request_row.html": ("row", requests.RequestRow),
    "_running.html": ("running", requests.RunningList),
    "_running_row.html": ("row", requests.RunningRow),
    "_running_age.html": ("age", requests.RunningAge),
    "request.html": ("page", request.RequestPage),
    "_request.html": ("body", request.RequestBody),
    "_request_ended.html": ("ended", request.EndedRequest),
    "_request_times.html": ("times", request.TimeWaterfall),
    "_chart.html": ("chart", chart.Chart),
    "_event_list.html": ("events", events.EventList),
    "_event.html": ("event", event_rows.EventRow),
}
# Printed from a value that has more to it than its page shows, or from none.
PARTIAL_VALUES: dict[str, tuple[str, type[Any]]] = {
    "_log_box.html": ("log", log.LogView),
    "_log_line.html": ("line", LogLine),
    "_version_revert.html": ("version", manifest.VersionRow),
    "_request_running.html": ("running", requests.RunningRow),
    "_timeline.html": ("timeline", timeline.Timeline),
    "_timeline_picture.html": ("timeline", timeline.Timeline),
    "_timeline_rows.html": ("timeline", timeline.Timeline),
    "_figures.html": ("figures", figures.Figures),
    "_figures_note.html": ("figures", figures.Figures),
    "_figure_rows.html": ("table", figures.FigureTable),
}
WITHOUT_VALUE = {FRAME, "macros.html", "_icons.html", "_guide_text.html", "_announce.html", "_live.html"}
INLINE = re.compile(r"^(on\w+|style)$")
PART_LINES = 60
# What is in a field must come back unchanged, hidden characters too.
FIELD_VALUES = re.compile(r'value="[^"]*"|<textarea[^>]*>[^<]*</textarea>')


def rendered(page: Page) -> str:
    return templates().page(page.template, page.value, page.viewer)


@cache
def tree_of(name: str) -> Element:
    return parse(rendered(PAGES[name]))


def printed_fields(template: str, variable: str) -> set[str]:
    """Attributes of `variable` that a template and what it extends name."""
    environment = templates().environment
    found: set[str] = set()
    for name in (template, FRAME) if not template.startswith("_") else (template,):
        source = (TEMPLATES / name).read_text(encoding="utf-8")
        for access in environment.parse(source).find_all(nodes.Getattr):
            if isinstance(access.node, nodes.Name) and access.node.name == variable:
                found.add(access.attr)
    return found


def test_every_template_is_known_here() -> None:
    assert set(TEMPLATE_NAMES) == {*CONTEXTS, *PARTIAL_VALUES, *WITHOUT_VALUE}


@pytest.mark.parametrize("template", CONTEXTS)
def test_a_template_prints_exactly_the_fields_of_its_value(template: str) -> None:
    variable, type_ = CONTEXTS[template]
    assert printed_fields(template, variable) == {field.name for field in dataclasses.fields(type_)}


@pytest.mark.parametrize("template", PARTIAL_VALUES)
def test_a_template_prints_no_field_that_is_not_there(template: str) -> None:
    variable, type_ = PARTIAL_VALUES[template]
    assert printed_fields(template, variable) <= {field.name for field in dataclasses.fields(type_)}


def test_every_value_is_frozen() -> None:
    assert all(
        type_.__dataclass_params__.frozen for _, type_ in (*CONTEXTS.values(), *PARTIAL_VALUES.values())
    )


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        templates().page("overview.html", object(), OPERATOR)


def test_nothing_is_ever_shown_as_none() -> None:
    with pytest.raises(TypeError, match="printed None"):
        templates().environment.from_string("{{ value }}").render(value=None)


@pytest.mark.parametrize("name", [name for name in TEMPLATE_NAMES if name.startswith("_")])
def test_parts_are_short(name: str) -> None:
    assert len((TEMPLATES / name).read_text(encoding="utf-8").splitlines()) < PART_LINES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed(name: str) -> None:
    assert tree_of(name).one("html").children


@pytest.mark.parametrize("name", PAGES)
def test_no_id_is_given_twice(name: str) -> None:
    ids = Counter(e.attributes["id"] for e in tree_of(name).all() if "id" in e.attributes)
    assert [id_ for id_, count in ids.items() if count > 1] == []


@pytest.mark.parametrize("name", PAGES)
def test_no_script_or_style_stands_in_a_page(name: str) -> None:
    tree = tree_of(name)
    assert [s for s in tree.all("script") if s.children or "src" not in s.attributes] == []
    assert list(tree.all("style")) == []
    assert [a for e in tree.all() for a in e.attributes if INLINE.match(a)] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_field_has_a_label(name: str) -> None:
    tree = tree_of(name)
    labelled = {label.attributes.get("for") for label in tree.all("label")}
    fields = [*tree.all("input"), *tree.all("select"), *tree.all("textarea")]
    shown = [field for field in fields if field.attributes.get("type") != "hidden"]
    assert [field.attributes for field in shown if field.attributes.get("id") not in labelled] == []


@pytest.mark.parametrize("name", PAGES)
def test_headings_of_tables_say_what_they_head(name: str) -> None:
    tree = tree_of(name)
    assert [th.attributes for th in tree.all("th") if th.attributes.get("scope") not in ("row", "col")] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_landmarks_and_one_heading(name: str) -> None:
    tree = tree_of(name)
    assert tree.one("main").attributes["id"] == "main"
    assert next(tree.all("a")).attributes["href"] == "#main"
    assert len(list(tree.all("h1"))) == 1


@pytest.mark.parametrize("name", PAGES)
def test_every_form_that_acts_proves_where_it_comes_from(name: str) -> None:
    tree = tree_of(name)
    posts = [form for form in tree.all("form", method="post") if form.attributes["action"] != "/sign-in"]
    assert [form for form in posts if not list(form.all("input", name="csrf_token"))] == []


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_is_one_element_that_names_its_place(name: str) -> None:
    fragment = FRAGMENTS[name]
    tree = parse(templates().fragment(fragment, OPERATOR))
    elements = [child for child in tree.children if isinstance(child, Element)]
    assert [e.attributes["id"] for e in elements] == [fragment.id]
    assert elements[0].attributes["hx-swap-oob"] == "true"


def test_the_items_of_a_feed_go_to_the_end_they_belong_to() -> None:
    feed = Feed("log-lines", "beforeend", "_log_line.html", "line", ())
    tree = parse(templates().feed(feed, (LogLine(1, "one"), LogLine(2, "<two>")), OPERATOR))
    assert tree.one("ol").attributes["hx-swap-oob"] == "beforeend:#log-lines"
    assert [li.text for li in tree.all("li")] == ["one", "<two>"]


@pytest.mark.parametrize("name", HOSTILE_PAGES)
def test_hostile_text_stays_text(name: str) -> None:
    html = rendered(HOSTILE_PAGES[name])
    tree = parse(html)
    assert not HIDDEN_IN_LINES.search(FIELD_VALUES.sub("", html))
    assert [e for e in tree.all("script") if "src" not in e.attributes] == []
    assert list(tree.all("img")) == []
    assert [a for e in tree.all() for a in e.attributes if INLINE.match(a)] == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    page = next(
        p for p in HOSTILE_PAGES.values() if text in repr(p.value) or visible_lines(text) in rendered(p)
    )
    assert str(escape(visible_lines(text))) in rendered(page)


@pytest.mark.parametrize("name", PAGES)
def test_who_may_only_view_sees_no_button_that_acts(name: str) -> None:
    page = PAGES[name]
    if page.template in ("overview.html", "model.html", "events.html"):
        tree = parse(templates().page(page.template, page.value, WATCHER))
        assert [form.attributes["action"] for form in tree.all("form", method="post")] == ["/sign-out"]
