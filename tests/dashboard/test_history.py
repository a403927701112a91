"""Sections of charts: what is known is drawn and stands in the table, what is not is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from framework.dashboard.pages.figures import figures_fragment
from framework.dashboard.pages.history import (
    AGO,
    QUIET,
    devices_section,
    draft_section,
    model_section,
    short_time,
)
from framework.dashboard.updates import Sent, Whole
from framework.values.history import STEPS, ModelHistory, ModelStep, nothing_known
from tests.dashboard import history_samples, pool_samples, samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import make_system
from tests.telemetry.samples import record


def test_a_model_that_nobody_asked_has_a_sentence_and_no_charts() -> None:
    for history in (history_samples.idle("a"), nothing_known("a")):
        section = model_section(history)
        assert (section.charts, section.note) == ((), QUIET)


def test_every_number_of_a_chart_stands_in_the_table() -> None:
    step = ModelStep(samples.NOW, answered=3, failed=1, first_token_p50_s=0.045, generation_tokens_per_s=41.2)
    section = model_section(ModelHistory("a", (step,)))
    assert [chart.title for chart in section.charts] == [
        "First token",
        "Generation",
        "Requests",
        "Busy slots and queue",
    ]
    (row,) = section.table.rows
    assert row.cells[:4] == ("3", "0", "0", "1")
    assert row.cells[4:7] == ("45 ms", "\u2013", "41.2 tokens/s")
    assert len(row.cells) == len(section.table.columns)
    assert section.note == "Known for 1 min; what was before is not."


def test_bars_say_when_and_what() -> None:
    step = ModelStep(samples.NOW, answered=3, failed=1)
    requests = model_section(ModelHistory("a", (step,))).charts[2]
    assert [bar.label for bar in requests.bars] == ["this minute: answered 3", "this minute: failed 1"]
    assert len(AGO) == STEPS


def test_drafts_are_told_where_there_were_any() -> None:
    assert draft_section(history_samples.idle("a")) is None
    told = draft_section(ModelHistory("a", (ModelStep(samples.NOW, drafted=200, accepted=130),)))
    assert told is not None
    assert told.table.rows[0].cells == ("200 tokens", "130 tokens", "65 %", "\u2013")
    accepted, depth = told.charts
    assert [tick.label for tick in accepted.y_ticks] == ["0 %", "50 %", "100 %"]
    assert depth.empty


def test_memory_is_drawn_against_all_of_the_device() -> None:
    section = devices_section(history_samples.devices([pool_samples.use("CUDA0")]))
    assert section.charts[0].y_ticks[-1].label == "30 GiB"
    assert "24 GiB" in section.charts[0].unit
    assert section.table.columns == ("CUDA0, taken", "CUDA0, planned")
    assert devices_section(()).note == "No device was seen yet."


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "\u2013"), (0.0, "0 s"), (0.0451, "45 ms"), (0.9, "900 ms"), (1.0, "1 s"), (75.0, "1 min 15 s")],
)
def test_short_times_are_told_in_milliseconds(seconds: float | None, text: str) -> None:
    assert short_time(seconds) == text


def test_a_new_minute_changes_pictures_and_rows_and_no_frame_around_them() -> None:
    steps = tuple(ModelStep(samples.NOW + timedelta(minutes=n), answered=1 + n) for n in range(STEPS + 1))
    sent = Sent()
    sent.remember((figures_fragment(model_section(ModelHistory("a", steps[:-1]))),))
    updates = sent.changes((figures_fragment(model_section(ModelHistory("a", steps[1:]))),))
    changed = [update.fragment.template for update in updates if isinstance(update, Whole)]
    assert changed == ["_chart.html", "_figure_rows.html"]


async def test_the_pages_show_what_was_counted() -> None:
    system = make_system(samples.model("chat"), samples.model("quiet"))
    history = system.services.history
    for status in (200, 200, 502):
        history.request_ended(record(1, status=status, drafted=10, accepted=7, generation_tokens_per_s=42.0))
    system.fleet.show(pool_samples.pool())
    history.looked(system.fleet.views(), system.fleet.pools())
    async with browser(system) as client:
        model, quiet = await page(client, "/models/chat"), await page(client, "/models/quiet")
        speculation = await page(client, "/speculation")
        pools = await page(client, "/pools")
    assert "this minute: failed 1" in model.text
    assert "42.0 tokens/s" in model.text
    assert "this minute: median of answers 42.0 tokens/s" in model.text
    rows = [row.text.split()[1:] for row in speculation.all("tr") if "21 tokens" in row.text]
    assert rows == [["30", "tokens", "21", "tokens", "70", "%", "\u2013"]]
    assert "Memory in the last hour" in pools.text
    assert "chat: loaded for 100 % of the time." in pools.one(id="timeline-picture").text
    assert "chat: loaded for 100 % of the time." in model.one(id="timeline-picture").text
    assert "chat" not in quiet.one(id="timeline-picture").text
