"""Files that keep what engines print: bounded, private, and safe to rotate; old ones go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from framework.runtime.log_file import LogFile
from framework.runtime.logs import LogBuffer
from framework.runtime.old_logs import remove_old_logs

DAY_S = 24 * 3600.0
# A limit of the process stands for a disk that is full; raising it, for one that has room again.
FULL = """
import resource, sys
from pathlib import Path
from framework.runtime import log_file
from framework.runtime.logs import LogBuffer
log_file.RETRY_S = 0.0
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
log = LogBuffer()
log.open_file(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
for number in range(5):
    log.append(f"line {number} " + "x" * 60)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
log.append("room again")
log.close_file()
print("\\n".join(line.text for line in log.last(20)))
"""


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def a_file(path: Path, *, limit_bytes: int = 2**20) -> tuple[LogFile, Clock]:
    clock = Clock()
    return LogFile(path, limit_bytes=limit_bytes, clock=clock), clock


def test_a_full_file_makes_room_and_the_newest_lines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.log"
    file, _ = a_file(path, limit_bytes=1000)
    for number in range(500):
        file.write(f"line {number}")
    file.close()
    older = path.with_name("a.log.1")
    text = older.read_text() + path.read_text()
    assert text.endswith("line 499\n")
    assert path.stat().st_size + older.stat().st_size <= 2 * 1000 + 10
    assert {entry.stat().st_mode & 0o777 for entry in (path, older)} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_was_moved_away_is_followed(tmp_path: Path) -> None:
    """As logrotate does with `nocreate`."""
    path = tmp_path / "a.log"
    file, clock = a_file(path)
    file.write("before")
    path.rename(tmp_path / "a.log.7")
    clock.now_s += 1.0
    file.write("after")
    file.close()
    assert (tmp_path / "a.log.7").read_text() == "before\n"
    assert path.read_text() == "after\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_truncated_has_no_hole(tmp_path: Path) -> None:
    """As logrotate does with `copytruncate`."""
    path = tmp_path / "a.log"
    file, _ = a_file(path)
    file.write("before")
    os.truncate(path, 0)
    file.write("after")
    file.close()
    assert path.read_bytes() == b"after\n"


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "a.log", tmp_path / "precious"
    other.write_text("mine\n")
    file, clock = a_file(path)
    path.unlink()
    path.symlink_to(other)
    clock.now_s += 1.0
    file.write("after")
    file.close()
    assert other.read_text() == "mine\n"
    assert file.fault


def test_a_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    lines = done.stdout.splitlines()
    assert sum("cannot be written (File too large)" in line for line in lines) == 1
    assert lines[-1] == "... the log file is written again"
    assert [line for line in lines if line.startswith("line ")] == [f"line {n} " + "x" * 60 for n in range(5)]
    assert path.read_text().endswith("room again\n")


def test_both_halves_of_the_oldest_starts_go(tmp_path: Path) -> None:
    log = LogBuffer()
    for number in range(12):
        log.open_file(tmp_path / f"{number}.log")
        (tmp_path / f"{number}.log.1").write_text("older")
        os.utime(tmp_path / f"{number}.log", (number, number))
    log.close_file()
    assert len(list(tmp_path.glob("*.log"))) == 10
    assert not (tmp_path / "0.log.1").exists()
    assert (tmp_path / "11.log.1").exists()


def logs_with(tmp_path: Path, **age_s: float) -> Path:
    """A folder of logs, and in it one for each name, last written so long before the second 1e9."""
    for name, age in age_s.items():
        folder = tmp_path / "logs" / name
        folder.mkdir(parents=True)
        for file in (folder / "a.log", folder / "a.log.1", folder / "b.log.2.gz"):
            file.write_text("lines")
            os.utime(file, (1e9 - age, 1e9 - age))
        os.utime(folder, (1e9 - age, 1e9 - age))
    return tmp_path / "logs"


def test_only_old_logs_of_models_that_nobody_declares_go(tmp_path: Path) -> None:
    logs = logs_with(tmp_path, gone=31 * DAY_S, declared=31 * DAY_S, recent=29 * DAY_S)
    assert remove_old_logs(logs, {"declared"}, now=lambda: 1e9) == ["gone"]
    assert sorted(entry.name for entry in logs.iterdir()) == ["declared", "recent"]


def test_one_fresh_file_keeps_the_folder(tmp_path: Path) -> None:
    logs = logs_with(tmp_path, gone=31 * DAY_S)
    os.utime(logs / "gone" / "a.log.1", (1e9, 1e9))
    assert remove_old_logs(logs, (), now=lambda: 1e9) == []


def test_what_is_not_ours_stays_and_links_are_not_followed(tmp_path: Path) -> None:
    logs = logs_with(tmp_path, gone=31 * DAY_S)
    (logs / "gone" / "notes.txt").write_text("mine")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.log").write_text("mine")
    (logs / "link").symlink_to(outside)
    assert remove_old_logs(logs, (), now=lambda: 1e12) == []
    assert (logs / "gone" / "notes.txt").exists()
    assert (outside / "a.log").exists()


def test_no_folder_is_no_trouble(tmp_path: Path) -> None:
    assert remove_old_logs(tmp_path / "none", ()) == []
