"""What manager and download process say to each other, and progress made of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.models.hub import refusals
from framework.models.hub.progress import FetchProgress
from framework.models.hub.wire import Job, Note, Patience, answer_line, note_line, read_line, refusal_line
from framework.values.reason import Refused


def test_a_job_comes_through_as_it_was() -> None:
    job = Job("fetch", "o/r", "/c", variant="Q8_0", patience=Patience((1.0, 2.0), 3.0, 4.0))
    assert Job.from_line(job.to_line()) == job


def test_a_note_comes_through_as_it_was() -> None:
    note = Note("m.gguf", 3, 4)
    assert read_line(note_line(note).encode()) == note


def test_an_answer_comes_through_as_it_was() -> None:
    assert read_line(answer_line({"files": ["ü\n"]}).encode()) == {"files": ["ü\n"]}


def test_a_refusal_comes_through_as_it_was() -> None:
    sent = refusals.rate_limited("o/r", 7.0)
    got = read_line(refusal_line(sent).encode())
    assert isinstance(got, Refused)
    assert got.failure == sent.failure


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"3",
        b'{"note": {"x": 1}}',
        b'{"refused": 3}',
        b'{"answer": 3}',
        b"\xff",
        b"Traceback",
    ],
)
def test_junk_is_passed_over(line: bytes) -> None:
    assert read_line(line) is None


@given(st.binary(max_size=80))
def test_no_line_is_a_fault(line: bytes) -> None:
    read_line(line)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_progress_never_falls_and_never_passes_the_total(loaded: list[int]) -> None:
    seen = FetchProgress(monotonic_s=lambda: 0.0)
    shown = [seen.of(Note("m", here, 700)) for here in loaded]
    assert [p.loaded_bytes for p in shown] == sorted(p.loaded_bytes for p in shown)
    assert all(0.0 <= p.fraction <= 1.0 and p.loaded_bytes <= 700 for p in shown)


def test_the_time_left_comes_from_the_last_seconds() -> None:
    clock = iter([0.0, 10.0, 40.0])
    seen = FetchProgress(monotonic_s=lambda: next(clock))
    notes = [Note("m", here, 1000) for here in (0, 100, 400)]
    assert [seen.of(note).eta_s for note in notes] == [None, 90.0, 60.0]


def test_without_a_total_there_is_no_fraction() -> None:
    assert FetchProgress().of(Note("m", 5, 0)).fraction == 0.0
