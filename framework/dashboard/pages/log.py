"""The end of a model's log, searched. Pure; lines come cleaned of terminal control (06 §8.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework.dashboard.updates import Feed, Fragment
from framework.dashboard.urls import model_url, with_query
from framework.runtime.logs import LogLine

SHOWN_LINES = 200
QUERY_LIMIT = 200


@dataclass(frozen=True)
class LogQuery:
    """Which lines of which replica. An empty `text` shows all."""

    text: str = ""
    replica: int = 0


@dataclass(frozen=True)
class ReplicaLink:
    """Another replica's log."""

    label: str
    url: str
    chosen: bool


@dataclass(frozen=True)
class LogView:
    """The newest lines that match, oldest first."""

    lines: tuple[LogLine, ...]
    query: LogQuery
    form_url: str
    all_url: str
    text_url: str
    replicas: tuple[ReplicaLink, ...]
    limit: int


def matching(lines: Iterable[LogLine], text: str) -> tuple[LogLine, ...]:
    """The newest lines that hold `text`, whatever its case; oldest first."""
    wanted = text.casefold()
    found = [line for line in lines if not wanted or wanted in line.text.casefold()]
    return tuple(found[-SHOWN_LINES:])


def log_view(model: str, lines: Iterable[LogLine], query: LogQuery, replicas: int) -> LogView:
    """The log of one replica. `lines` are all that are kept, oldest first."""
    url = model_url(model)
    return LogView(
        lines=matching(lines, query.text),
        query=query,
        form_url=url,
        all_url=with_query(url, {"replica": query.replica or ""}) + "#log",
        text_url=with_query(f"/api/v1{url}/logs", {"lines": 2000, "replica": query.replica or ""}),
        replicas=_replica_links(url, query, replicas),
        limit=SHOWN_LINES,
    )


def log_fragment(log: LogView) -> Fragment:
    """A list that grows at its end."""
    numbered = tuple((line.seq, line) for line in log.lines)
    feed = Feed("log-lines", "beforeend", "_log_line.html", "line", numbered)
    outline = (log.query, bool(log.lines))
    return Fragment("log-box", "_log_box.html", "log", log, outline=outline, feed=feed)


def _replica_links(url: str, query: LogQuery, replicas: int) -> tuple[ReplicaLink, ...]:
    if replicas <= 1:
        return ()
    return tuple(
        ReplicaLink(
            f"replica {number}",
            with_query(url, {"replica": number or "", "q": query.text}) + "#log",
            number == query.replica,
        )
        for number in range(replicas)
    )
