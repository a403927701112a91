"""Readers of one page share what is worked out and printed, and nothing that is theirs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from framework.dashboard.live_source import LiveSource
from framework.dashboard.pages.overview import overview_fragments
from framework.dashboard.pages.shell import Viewer
from framework.dashboard.shared_pages import TOKEN_PLACE, SharedPages
from framework.dashboard.updates import Fragment, Sent
from framework.values.instance import ModelView, State
from tests.dashboard import samples
from tests.dashboard.renders import OPERATOR, WATCHER, overview, templates


class Page:
    """A page whose models, clock and version the test sets. `worked_out` counts how often it was made."""

    def __init__(self, *views: ModelView) -> None:
        self.views, self.version, self.now_s, self.worked_out = views, 1, 0.0, 0
        self.shared = SharedPages(templates(), clock=lambda: self.now_s)

    def source(self, key: str = "overview") -> LiveSource:
        return LiveSource(self.fragments, lambda: self.views, lambda: None, lambda: str(self.version), key)

    def fragments(self) -> tuple[Fragment, ...]:
        self.worked_out += 1
        return overview_fragments(overview(*self.views))


def page() -> Page:
    return Page(samples.model("a"), samples.model("b", State.STOPPED))


def test_fifty_readers_work_it_out_once() -> None:
    shown = page()
    sources = [shown.source() for _ in range(50)]
    with shown.shared.reader(sources[0]):
        moments = [shown.shared.look(source, holds_s=0.1) for source in sources]
    assert shown.worked_out == 1
    assert all(moment is moments[0] for moment in moments)


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(lambda shown: setattr(shown, "version", 2), id="something-changed"),
        pytest.param(lambda shown: setattr(shown, "now_s", 0.2), id="it-is-old"),
    ],
)
def test_it_is_worked_out_again_when(move: Callable[[Page], None]) -> None:
    shown = page()
    source = shown.source()
    with shown.shared.reader(source):
        first = shown.shared.look(source, holds_s=0.1)
        move(shown)
        assert shown.shared.look(source, holds_s=0.1) is not first


def test_another_page_is_another_matter_and_nothing_is_kept_for_nobody() -> None:
    shown = page()
    one, other = shown.source("one"), shown.source("other")
    with shown.shared.reader(one), shown.shared.reader(other):
        assert shown.shared.look(one, holds_s=9) is not shown.shared.look(other, holds_s=9)
    with shown.shared.reader(one):
        shown.shared.look(one, holds_s=9)
    assert shown.worked_out == 3


def test_each_reader_gets_his_own_token_and_what_his_role_may_see() -> None:
    shown = page()
    source = shown.source()
    others = Viewer("other", "token-of-another", may_operate=True, may_sign_out=True)
    with shown.shared.reader(source):
        moment = shown.shared.look(source, holds_s=9)
        updates = Sent().changes(moment.fragments)

        def told(viewer: Viewer) -> str:
            return "".join(shown.shared.html(moment, update, viewer) for update in updates)

        mine, theirs, watched = told(OPERATOR), told(others), told(WATCHER)
    assert OPERATOR.csrf in mine
    assert others.csrf not in mine
    assert others.csrf in theirs
    assert OPERATOR.csrf not in theirs + watched
    assert TOKEN_PLACE not in mine + theirs + watched
    assert "<form" not in watched
    assert len(moment.printed) == 2 * len(updates)


def test_a_token_is_escaped_where_it_is_put_in() -> None:
    shown = page()
    source = shown.source()
    with shown.shared.reader(source):
        moment = shown.shared.look(source, holds_s=9)
        viewer = replace(OPERATOR, csrf='"><script>')
        text = "".join(
            shown.shared.html(moment, update, viewer) for update in Sent().changes(moment.fragments)
        )
    assert "&lt;script&gt;" in text
    assert "<script>" not in text


def test_what_nothing_has_moved_in_is_not_compared() -> None:
    shown = page()
    source = shown.source()
    with shown.shared.reader(source):
        moment = shown.shared.look(source, holds_s=9)
        sent = Sent()
        sent.remember(moment.fragments)
        assert sent.changes(moment.fragments) == []
        again = Sent()
        assert again.changes(moment.fragments) != []
        assert again.changes(moment.fragments) == []
