"""The pages that explain reasons: all of them, and one with where it applies now (docs/reasons.md). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from framework.api.reason_guide import Explanation, ReasonGuide, Section, Table
from framework.api.told import told_of, verdict_on
from framework.dashboard.pages.event_rows import EventRow, newest_first
from framework.dashboard.pages.reason_list import ways_url
from framework.dashboard.pages.shell import Shell
from framework.dashboard.urls import model_url, reason_url
from framework.planning.reason_edits import ways_for
from framework.proxy.model_choice import nearest_names
from framework.values.device import Device
from framework.values.event import Event
from framework.values.instance import ModelView
from framework.values.reason import Reason

# More says nothing new about a code.
SHOWN_EVENTS = 10


@dataclass(frozen=True)
class Span:
    """A piece of a text: `code` as a user types it; with a `url` it is the code of another reason."""

    text: str
    code: bool = False
    url: str = ""


Spans = tuple[Span, ...]


@dataclass(frozen=True)
class GuideRow:
    """A code, what it means and what to do; or a row of another table, as `cells`."""

    code: str
    url: str
    cells: tuple[Spans, ...]


@dataclass(frozen=True)
class GuideBlock:
    """A paragraph, or a table with its header."""

    text: Spans = ()
    header: tuple[str, ...] = ()
    rows: tuple[GuideRow, ...] = ()


@dataclass(frozen=True)
class GuideSection:
    """A part of the list."""

    id: str
    title: str
    blocks: tuple[GuideBlock, ...]


@dataclass(frozen=True)
class ReasonsPage:
    """Everything on `/reasons`."""

    shell: Shell
    sections: tuple[GuideSection, ...]
    codes: int


@dataclass(frozen=True)
class Meaning:
    """One way in which a reason comes about."""

    section: str
    section_url: str
    context: Spans
    means: Spans
    remedy: Spans


@dataclass(frozen=True)
class Bearer:
    """Who has the reason now: a model, or the devices. `ways_url` leads to edits that may help, if any."""

    name: str
    url: str
    reason: Reason
    ways_url: str = ""


@dataclass(frozen=True)
class ReasonPage:
    """Everything on `/reasons/CODE`. Without `meanings` the code is not known, and `near` may be meant."""

    shell: Shell
    code: str
    meanings: tuple[Meaning, ...]
    mentions: tuple[Spans, ...]
    bearers: tuple[Bearer, ...]
    events: tuple[EventRow, ...]
    near: tuple[tuple[str, str], ...]


def reasons_page(shell: Shell, guide: ReasonGuide) -> ReasonsPage:
    """All reasons, in the order of the documentation."""
    sections = tuple(_section(number, part, guide) for number, part in enumerate(guide.sections, 1))
    return ReasonsPage(shell, sections, len(guide.codes))


def reason_page(
    shell: Shell, guide: ReasonGuide, code: str, bearers: Iterable[Bearer], events: Sequence[Event]
) -> ReasonPage:
    """One reason. `events` are those to look through, oldest first."""
    found = guide.explain(code)
    said = [event for event in events if event.reason is not None and event.reason.code == code]
    near = () if found else tuple((hit, reason_url(hit)) for hit in nearest_names(code, guide.codes))
    return ReasonPage(
        shell=shell,
        code=code,
        meanings=tuple(_meaning(one, guide) for one in found),
        mentions=tuple(_spans(text, guide, besides=code) for text in guide.mentions(code)),
        bearers=tuple(one for one in bearers if one.reason.code == code),
        events=newest_first(said[-SHOWN_EVENTS:]),
        near=near,
    )


def bearers_of(
    views: Iterable[ModelView], devices: Iterable[Device], device_reasons: Iterable[Reason]
) -> Iterable[Bearer]:
    """Every reason that is in force now, with whom it is about; each once for a model."""
    for view in views:
        told = ((one, i.plan) for i in view.instances for one in (*told_of(i), *verdict_on(view, i)))
        for reason, plan in {(one.code, one.message): (one, plan) for one, plan in told}.values():
            helps = bool(ways_for(reason, view.request, plan))
            ways = ways_url(view.request.id) if helps else ""
            yield Bearer(view.request.id, model_url(view.request.id), reason, ways)
    names = ", ".join(device.name for device in devices)
    for reason in device_reasons:
        yield Bearer(f"devices ({names})" if names else "devices", "/pools", reason)


def _section(number: int, part: Section, guide: ReasonGuide) -> GuideSection:
    return GuideSection(_section_id(number), part.title, tuple(_block(one, guide) for one in part.blocks))


def _section_id(number: int) -> str:
    return f"part-{number}"


def _block(block: str | Table | tuple[Explanation, ...], guide: ReasonGuide) -> GuideBlock:
    if isinstance(block, str):
        return GuideBlock(text=_spans(block, guide))
    if isinstance(block, Table):
        rows = (GuideRow("", "", tuple(_spans(cell, guide) for cell in row)) for row in block.rows)
        return GuideBlock(header=block.header, rows=tuple(rows))
    explained = (
        GuideRow(one.code, reason_url(one.code), (_spans(one.means, guide), _spans(one.remedy, guide)))
        for one in block
    )
    return GuideBlock(header=("Code", "Means", "What to do"), rows=tuple(explained))


def _meaning(one: Explanation, guide: ReasonGuide) -> Meaning:
    number = next(n for n, part in enumerate(guide.sections, 1) if part.title == one.section)
    return Meaning(
        section=one.section,
        section_url=f"/reasons#{_section_id(number)}",
        context=_spans(guide.section(one.section).opening, guide),
        means=_sentence(one.means, guide),
        remedy=_sentence(one.remedy, guide),
    )


def _sentence(text: str, guide: ReasonGuide) -> Spans:
    """A cell of a table as a sentence of its own."""
    ended = text if text.endswith((".", "`")) or not text else f"{text}."
    return _spans(ended[:1].upper() + ended[1:], guide)


def _spans(text: str, guide: ReasonGuide, besides: str = "") -> Spans:
    """A text in pieces; codes of reasons lead to their pages, but for the one at hand."""
    pieces = text.split("`")
    return tuple(
        Span(piece, code=True, url=reason_url(piece) if piece in guide.codes and piece != besides else "")
        if number % 2
        else Span(piece)
        for number, piece in enumerate(pieces)
        if piece
    )
