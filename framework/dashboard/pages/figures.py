"""Charts and the same numbers in a table, for whoever cannot see them or wants them exactly. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from framework.dashboard.charts.chart import Chart
from framework.dashboard.updates import Fragment


@dataclass(frozen=True)
class FigureRow:
    """One row in words; `cells` stand below the columns."""

    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class FigureTable:
    """`name` says what it is a table of, `first` what its rows are called by."""

    id: str
    name: str
    first: str
    columns: tuple[str, ...]
    rows: tuple[FigureRow, ...]


@dataclass(frozen=True)
class Figures:
    """Charts and their table. `note` says what there is to know besides, or why there are no charts."""

    id: str
    heading: str
    note: str
    charts: tuple[Chart, ...]
    table: FigureTable
    nested: bool = False
    """Whether they stand inside of another section."""


def figures_fragment(figures: Figures) -> Fragment:
    """Charts and rows change on their own, so that an open table stays open."""
    note = Fragment(f"{figures.id}-note", "_figures_note.html", "figures", figures, outline=figures.note)
    rows = Fragment(f"{figures.table.id}-rows", "_figure_rows.html", "table", figures.table)
    charts = tuple(Fragment(one.id, "_chart.html", "chart", one) for one in figures.charts)
    return Fragment(
        figures.id,
        "_figures.html",
        "figures",
        figures,
        outline=(
            figures.heading,
            tuple(one.id for one in figures.charts),
            figures.table.columns,
        ),
        parts=(note, *charts, rows) if charts else (note,),
    )
