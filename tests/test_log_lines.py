"""Log lines of `up`: in order, whole, and never in the way of what logs."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator

import pytest
from rich.console import Console

from framework.log_lines import MOST_WAITING, CleanFormatter, LogLines

JOIN_S = 10.0


class SlowReader(io.StringIO):
    """A terminal that takes nothing until `reads` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()
        self.asked = threading.Event()

    def write(self, text: str) -> int:
        self.asked.set()
        assert self.reads.wait(JOIN_S)
        return super().write(text)


@pytest.fixture
def reader() -> Iterator[SlowReader]:
    reader = SlowReader()
    yield reader
    reader.reads.set()


@pytest.fixture
def log(reader: SlowReader) -> Iterator[logging.Logger]:
    handler = LogLines(Console(file=reader))
    handler.setFormatter(CleanFormatter())
    logger = logging.Logger("lines")  # noqa: LOG001  outside of the tree, where pytest has handlers of its own
    logger.addHandler(handler)
    yield logger
    reader.reads.set()
    handler.flush()


def lines(reader: SlowReader) -> list[str]:
    """What was printed, without the times."""
    return [line.partition("Z ")[2] or line for line in reader.getvalue().splitlines()]


def test_lines_come_in_their_order(log: logging.Logger, reader: SlowReader) -> None:
    reader.reads.set()
    for number in range(100):
        log.info("line %d", number)
    log.handlers[0].flush()
    assert lines(reader) == [f"INFO    line {number}" for number in range(100)]


def test_a_reader_that_stands_still_holds_up_nobody(log: logging.Logger, reader: SlowReader) -> None:
    log.info("first")
    assert reader.asked.wait(JOIN_S)
    for number in range(MOST_WAITING + 5):
        log.info("line %d", number)
    reader.reads.set()
    log.handlers[0].flush()
    found = lines(reader)
    assert len(found) == 1 + MOST_WAITING + 1
    assert found[-1] == "5 further log lines were dropped, because nothing took those before them."


def test_a_line_says_what_was_so_when_it_was_logged(log: logging.Logger, reader: SlowReader) -> None:
    names = ["a"]
    log.info("names: %s", names)
    names.append("b")
    reader.reads.set()
    log.handlers[0].flush()
    assert lines(reader) == ["INFO    names: ['a']"]


def test_text_of_others_stays_on_its_line(log: logging.Logger, reader: SlowReader) -> None:
    reader.reads.set()
    log.warning("model %s", "a\n\x1b[31mERROR b")
    log.handlers[0].flush()
    (line,) = lines(reader)
    assert "\x1b" not in line


def test_a_trace_is_printed_with_its_line(log: logging.Logger, reader: SlowReader) -> None:
    reader.reads.set()
    try:
        raise KeyError("k")
    except KeyError:
        log.exception("it failed")
    log.handlers[0].flush()
    found = lines(reader)
    assert (found[0], found[-1]) == ("ERROR   it failed", "KeyError: 'k'")


def test_a_line_that_cannot_be_made_ends_nothing(
    log: logging.Logger, reader: SlowReader, capsys: pytest.CaptureFixture[str]
) -> None:
    reader.reads.set()
    log.info("%d", "no number")
    log.info("next")
    log.handlers[0].flush()
    assert lines(reader) == ["INFO    next"]
    assert "no number" in capsys.readouterr().err
