"""What a process prints into a file that is read, and emptied, under it (07 §8.7)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from framework.runtime.output_file import LAST_BYTES, LIMIT_BYTES, OutputFile, new_output


def taken(output: OutputFile) -> tuple[bytes, int]:
    """Everything that is there."""
    text, dropped = b"", 0
    while True:
        chunk, lost = output.take()
        if not chunk and not lost:
            return text, dropped
        text, dropped = text + chunk, dropped + lost


def test_it_stays_small_however_much_a_living_process_prints(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.out"
    writer = "import sys\nfor line in sys.stdin:\n  print('x' * 1023)\n  sys.stdout.flush()"
    handle = new_output(path)
    with subprocess.Popen(
        [sys.executable, "-c", writer], stdin=subprocess.PIPE, stdout=handle, text=True, bufsize=1
    ) as process:
        os.close(handle)
        output, read, largest = OutputFile(path), 0, 0
        assert process.stdin is not None
        wanted = LIMIT_BYTES * 5 // 4
        for _ in range(wanted // 2**20):
            process.stdin.write("\n" * 1024)
            process.stdin.flush()
            goal = read + 2**20
            while read < goal:
                text, dropped = taken(output)
                read += len(text) + dropped
                largest = max(largest, path.stat().st_size)
        process.stdin.close()
        assert process.wait(20) == 0
    output.close()
    assert read == wanted
    assert largest <= LIMIT_BYTES
    # The process went on at the start of the file, not where it was.
    assert path.stat().st_size < LIMIT_BYTES
    assert path.stat().st_blocks * 512 < LIMIT_BYTES


def test_what_nobody_can_read_so_fast_is_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.out"
    handle = new_output(path)
    output = OutputFile(path)
    os.write(handle, b"y" * (2 * LIMIT_BYTES))
    text, dropped = taken(output)
    assert len(text) + dropped == 2 * LIMIT_BYTES
    assert dropped > 0
    assert path.stat().st_size == 0
    os.write(handle, b"next\n")
    assert taken(output) == (b"next\n", 0)
    output.close()
    os.close(handle)


def test_a_later_reader_begins_with_a_whole_line_near_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.out"
    handle = new_output(path)
    os.write(handle, b"a line of the start\n" * LAST_BYTES)
    output = OutputFile(path, from_end=True)
    text, _ = taken(output)
    assert LAST_BYTES - 20 <= len(text) <= LAST_BYTES
    assert set(text.splitlines()) == {b"a line of the start"}
    output.close()
    os.close(handle)


def test_a_link_or_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("secret")
    link.symlink_to(target)
    os.mkfifo(pipe)
    for path in (link, pipe):
        with pytest.raises(OSError):
            OutputFile(path)
    handle = new_output(link)
    os.write(handle, b"line\n")
    os.close(handle)
    assert target.read_text() == "secret"
    assert not link.is_symlink()
