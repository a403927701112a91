"""The log tail and its search."""

from __future__ import annotations

from framework.dashboard.pages.log import SHOWN_LINES, LogQuery, log_fragment, log_view, matching
from framework.dashboard.updates import Grown, Sent, Whole
from framework.runtime.logs import LogLine


def lines(*texts: str) -> list[LogLine]:
    return [LogLine(number, text) for number, text in enumerate(texts, 1)]


def test_a_search_ignores_case() -> None:
    assert [line.seq for line in matching(lines("Loading", "warming up", "LOADED"), "load")] == [1, 3]


def test_only_the_newest_lines_are_shown() -> None:
    shown = matching(lines(*(str(n) for n in range(500))), "")
    assert (len(shown), shown[-1].text) == (SHOWN_LINES, "499")


def test_a_new_line_is_sent_alone() -> None:
    sent = Sent()
    sent.remember((log_fragment(log_view("m", lines("a"), LogQuery(), 1)),))
    (update,) = sent.changes((log_fragment(log_view("m", lines("a", "b"), LogQuery(), 1)),))
    assert isinstance(update, Grown)
    assert update.items == (LogLine(2, "b"),)


def test_a_line_that_does_not_match_is_not_sent() -> None:
    sent = Sent()
    sent.remember((log_fragment(log_view("m", lines("error"), LogQuery("error"), 1)),))
    assert sent.changes((log_fragment(log_view("m", lines("error", "fine"), LogQuery("error"), 1)),)) == []


def test_the_first_line_replaces_the_empty_box() -> None:
    sent = Sent()
    sent.remember((log_fragment(log_view("m", [], LogQuery(), 1)),))
    (update,) = sent.changes((log_fragment(log_view("m", lines("a"), LogQuery(), 1)),))
    assert isinstance(update, Whole)


def test_one_replica_needs_no_choice() -> None:
    assert log_view("m", [], LogQuery(), 1).replicas == ()


def test_a_replica_is_chosen_without_losing_the_search() -> None:
    links = log_view("a/b", [], LogQuery("x y", 1), 2).replicas
    assert [(link.url, link.chosen) for link in links] == [
        ("/models/a%2Fb?q=x+y#log", False),
        ("/models/a%2Fb?replica=1&q=x+y#log", True),
    ]
