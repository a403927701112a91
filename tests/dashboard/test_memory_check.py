"""Planned, said by the engine, measured: the three numbers side by side (case MD-12)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from framework.dashboard.pages.memory_check import (
    UNACCOUNTED,
    CheckRow,
    DeviceCheck,
    MemoryCheckSection,
    is_too_far,
    memory_check_section,
)
from framework.engines.buffers_log import read_buffers
from framework.values.plan import FitPlan, LaunchResult
from tests.dashboard import fits, samples
from tests.dashboard.html import parse
from tests.dashboard.renders import OPERATOR, model_page, planned, templates
from tests.dashboard.samples import GIB, MIB

PLAN = fits.fit_of(
    fits.line("CUDA0", "weights", 15_010 * MIB),
    fits.line("CUDA0", "kv", 512 * MIB),
    fits.line("CUDA0", "compute", 570 * MIB),
)
LOG = """\
0.1 I load_tensors:        CUDA0 model buffer size = 15009.20 MiB
0.2 I llama_context: constructing llama_context
0.3 I llama_kv_cache:      CUDA0 KV buffer size =   512.00 MiB
0.4 I sched_reserve:      CUDA0 compute buffer size =   568.53 MiB
"""
BEFORE, AFTER = 1_790 * MIB, 17_900 * MIB


def check(held: Mapping[str, int], fit: FitPlan = PLAN, log: str = LOG) -> MemoryCheckSection:
    result = samples.result(buffers=read_buffers(log.splitlines()).lines)
    return memory_check_section("c", fit, result, held)


def device(section: MemoryCheckSection, name: str = "CUDA0") -> DeviceCheck:
    return next(one for one in section.devices if one.device == name)


def row(section: MemoryCheckSection, label: str) -> CheckRow:
    return next(one for one in device(section).rows if one.label == label)


def test_each_kind_of_memory_is_compared_and_the_rest_has_a_row() -> None:
    section = check({"CUDA0": AFTER - BEFORE})
    rows = {one.label: (one.planned, one.reported, one.difference) for one in device(section).rows}
    assert rows == {
        "weights": ("15 GiB", "15 GiB", "−819 KiB"),
        "KV cache and states": ("512 MiB", "512 MiB", "0 B"),
        "compute buffers": ("570 MiB", "569 MiB", "−1.5 MiB"),
        UNACCOUNTED: ("0 B", "–", "+20 MiB"),
    }
    assert (device(section).total.measured, device(section).total.difference) == ("16 GiB", "+18 MiB")
    assert section.reasons == ()


def test_a_sample_that_counts_the_driver_as_well_is_an_alert() -> None:
    section = check({"CUDA0": AFTER})
    assert row(section, UNACCOUNTED).alert
    (reason,) = section.reasons
    assert (reason.code, reason.severity) == ("memory_unaccounted", "warning")
    assert "1.8 GiB more on CUDA0" in reason.message


def test_what_was_planned_for_the_driver_is_accounted_for() -> None:
    fit = fits.fit_of(*PLAN.lines, fits.line("CUDA0", "runtime", 1_800 * MIB, "assumed"))
    section = check({"CUDA0": AFTER}, fit)
    assert (row(section, UNACCOUNTED).planned, row(section, UNACCOUNTED).alert) == ("1.8 GiB", False)
    assert section.reasons == ()


def test_a_plan_that_is_wrong_is_an_alert_without_any_sample() -> None:
    fit = fits.fit_of(fits.line("CUDA0", "weights", 12 * GIB), *PLAN.lines[1:])
    section = check({}, fit)
    assert row(section, "weights").alert
    assert "allocated 16 GiB on CUDA0, planned were 13 GiB" in section.reasons[0].message
    assert device(section).total.measured == "–"


@pytest.mark.parametrize(
    ("difference", "expected", "far"),
    [
        pytest.param(256 * MIB, 0, False, id="at the floor"),
        pytest.param(256 * MIB + 1, 0, True, id="above the floor"),
        pytest.param(-257 * MIB, GIB, True, id="less is far too"),
        pytest.param(500 * MIB, 10 * GIB, False, id="small of a large one"),
        pytest.param(600 * MIB, 10 * GIB, True, id="more than a twentieth"),
    ],
)
def test_too_far_is_beyond_both_limits(difference: int, expected: int, far: bool) -> None:
    assert is_too_far(difference, expected) is far


def test_a_drafter_is_counted_with_its_model_as_the_log_cannot_tell_them_apart() -> None:
    more = (fits.line("CUDA0", "drafter_weights", GIB), fits.line("CUDA0", "drafter_kv", 64 * MIB))
    section = check({}, fits.fit_of(*PLAN.lines, *more))
    assert row(section, "KV cache and states").planned == "576 MiB"


def test_pages_of_files_and_what_grows_later_are_left_out() -> None:
    log = "0.1 I load_tensors: CPU_Mapped model buffer size = 92.10 MiB\n"
    section = check({}, fits.ON_HOST, log + "0.2 I llama_kv_cache: CPU KV buffer size = 180.00 MiB\n")
    labels = [one.label for one in device(section, "CPU").rows]
    assert labels == ["KV cache and states", "compute buffers", "output buffer", UNACCOUNTED]


@pytest.mark.parametrize(
    ("result", "words"),
    [(None, "Nothing runs"), (samples.result(), "does not tell what the engine allocated")],
    ids=["stopped", "silent"],
)
def test_without_numbers_it_says_why(result: LaunchResult | None, words: str) -> None:
    section = memory_check_section("c", PLAN, result, {})
    assert (section.devices, words in section.absent) == ((), True)


def test_the_page_has_a_table_for_each_device_with_what_is_too_far() -> None:
    result = samples.result(buffers=fits.SAID_OF_TWO, held_bytes={"CPU": 2 * GIB})
    tree = parse(templates().page("model.html", model_page(planned("m", fits.ON_TWO, result)), OPERATOR))
    tables = list(tree.all("table", class_="check"))
    assert [table.one("caption").text for table in tables] == ["CUDA0", "CUDA1", "CPU"]
    far = [tr.one("th").text for table in tables for tr in table.all("tr", class_="differs")]
    assert far[0] == "weights too far off"
    assert any(UNACCOUNTED in text for text in far)
