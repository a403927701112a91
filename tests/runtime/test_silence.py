"""When silence is more than slowness, by numbers alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.runtime.process_work import Work
from framework.runtime.silence import DEFAULT_HEALTH, Silence, engine_hung
from framework.runtime.stall import fatal_line

IDLE = Work(10.0, 5, frozenset({7}), False)


def silence(*probes: tuple[float, bool, bool]) -> Silence:
    """Of probes that took so many seconds; whether the process worked, whether it was crowded."""
    made = Silence(DEFAULT_HEALTH)
    for seconds, worked, crowded in probes:
        made.missed(seconds, worked=worked, crowded=crowded)
    return made


DEAD, BUSY, CROWDED = (11.0, False, False), (11.0, True, False), (11.0, True, True)


@pytest.mark.parametrize(
    ("probes", "is_over"),
    [
        pytest.param([DEAD] * 2, False, id="two-are-no-row"),
        pytest.param([DEAD] * 3, True, id="half-a-minute-of-nothing"),
        pytest.param([(40.0, False, False)], False, id="one-long-probe-is-one-probe"),
        pytest.param([(0.5, False, False)] * 5, False, id="refused-at-once-is-no-half-minute"),
        pytest.param([DEAD, DEAD, BUSY, DEAD, DEAD], False, id="work-in-between-begins-anew"),
        pytest.param([BUSY] * 27, False, id="busy-for-just-under-five-minutes"),
        pytest.param([BUSY] * 28, True, id="busy-for-five-minutes"),
        pytest.param([CROWDED] * 100, False, id="all-threads-may-be-taken"),
        pytest.param([BUSY] * 20 + [CROWDED] + [BUSY] * 20, False, id="crowded-in-between-begins-anew"),
    ],
)
def test_when_it_is_over(probes: list[tuple[float, bool, bool]], is_over: bool) -> None:
    assert silence(*probes).is_over is is_over


@pytest.mark.parametrize(
    ("now", "goes_on"),
    [
        pytest.param(IDLE, False, id="nothing"),
        pytest.param(replace(IDLE, cpu_s=10.05), False, id="as-much-as-answering-takes"),
        pytest.param(replace(IDLE, cpu_s=10.2), True, id="computes"),
        pytest.param(replace(IDLE, page_ins=6), True, id="pages-come-in"),
        pytest.param(replace(IDLE, members=frozenset({7, 8})), True, id="a-helper-began"),
    ],
)
def test_what_counts_as_work_in_ten_seconds(now: Work, goes_on: bool) -> None:
    assert now.goes_on(IDLE, 10.0) is goes_on


def test_where_nothing_can_be_seen_nobody_is_blamed() -> None:
    assert IDLE.goes_on(None, 10.0)


def test_the_reason_says_what_it_did_meanwhile() -> None:
    assert "in 33 s and did no work;" in engine_hung(silence(*[DEAD] * 3), is_stopped=False).message
    assert "in 308 s and worked on;" in engine_hung(silence(*[BUSY] * 28), is_stopped=False).message


@pytest.mark.parametrize(
    ("line", "is_fatal"),
    [
        pytest.param("0.01.000.000 E ggml_vulkan: ErrorDeviceLost", True, id="lost"),
        pytest.param("0.01.000.000 W decode: failed to allocate compute buffers", True, id="no-memory"),
        pytest.param("0.01.000.000 I slot: out of memory, said the user", False, id="quoted"),
        pytest.param("out of memory", False, id="not-in-its-form"),
        pytest.param("0.01.000.000 E something else", False, id="another-error"),
    ],
)
def test_which_lines_are_fatal(line: str, is_fatal: bool) -> None:
    assert bool(fatal_line([line])) is is_fatal
