"""The past of the pools: the memory of devices over time, and what was loaded when. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from framework.dashboard.charts.timeline import Timeline
from framework.dashboard.pages.figures import Figures, figures_fragment
from framework.dashboard.updates import Fragment


@dataclass(frozen=True)
class PoolsPast:
    """The last hour."""

    hour: Figures
    timeline: Timeline


def past_fragments(past: PoolsPast) -> tuple[Fragment, ...]:
    """Both are sent when they were drawn anew."""
    return (timeline_fragment(past.timeline), figures_fragment(past.hour))


def timeline_fragment(timeline: Timeline) -> Fragment:
    """The picture and its table change on their own, so that an opened table stays open."""
    rows = Fragment(f"{timeline.id}-rows", "_timeline_rows.html", "timeline", timeline)
    picture = Fragment(f"{timeline.id}-picture", "_timeline_picture.html", "timeline", timeline)
    return Fragment(
        timeline.id, "_timeline.html", "timeline", timeline, outline="timeline", parts=(picture, rows)
    )
