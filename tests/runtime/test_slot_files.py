"""The folder of saved slots: private, not followed elsewhere, and tidied at the start (07 §11.2)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from framework.planning.slot_saving.fingerprint import SlotFingerprint
from framework.planning.slot_saving.record import SavedSlot, encode
from framework.runtime import slot_files
from framework.values.request import LiveSettings, ModelRequest, ModelSource

NAMED, ORPHAN = "resume-00000000-slot0.bin", "resume-11111111-slot0.bin"
SOURCE = ModelSource(path=Path("m.gguf"))
RECORD = encode(SlotFingerprint("d", ("b", 1), "g", ((1, 1),), {}), [SavedSlot(0, NAMED, 5)])


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    return state


def a_folder(state: Path, name: str, *files: str) -> Path:
    """A folder with files of so many names."""
    folder = state / "slots" / name
    assert slot_files.open_folder(folder) is None
    for file in files:
        (folder / file).write_bytes(RECORD if file == "resume.json" else b"what was said")
    for path in folder.iterdir():
        path.chmod(0o600)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_both_folders_are_private_whatever_the_mask_says(state: Path) -> None:
    before = os.umask(0)
    try:
        folder = a_folder(state, "m.0")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)] == [0o700, 0o700]


def test_a_folder_that_others_may_enter_is_not_used(state: Path) -> None:
    folder = a_folder(state, "m.0")
    folder.chmod(0o755)
    reason = slot_files.open_folder(folder)
    assert reason is not None
    assert (reason.code, reason.severity) == ("slot_folder_unusable", "warning")
    assert str(folder) in reason.message


def test_a_folder_that_cannot_be_made_is_told_with_its_cause(state: Path) -> None:
    (state / "slots").write_text("a file")
    reason = slot_files.open_folder(state / "slots" / "m.0")
    assert reason is not None
    assert "cannot be used: Not a directory" in reason.message


def test_the_start_deletes_what_no_record_names(state: Path) -> None:
    folder = a_folder(state, "m.0", "resume.json", NAMED, ORPHAN, ".12.7.part")
    without = a_folder(state, "n.0", ORPHAN)
    slot_files.drop_orphans(state)
    assert (names(folder), names(without)) == ([NAMED, "resume.json"], [])


def test_the_start_deletes_a_record_that_is_damaged_and_its_files(state: Path) -> None:
    folder = a_folder(state, "m.0", "resume.json", NAMED)
    (folder / "resume.json").write_bytes(RECORD[:-5])
    slot_files.drop_orphans(state)
    assert names(folder) == []


def test_links_are_deleted_and_not_followed(state: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / ORPHAN).write_text("somebody else's")
    folder = a_folder(state, "m.0")
    (folder / ORPHAN).symlink_to(elsewhere / ORPHAN)
    (state / "slots" / "n.0").symlink_to(elsewhere)
    slot_files.drop_orphans(state)
    slot_files.drop_undeclared(state, [])
    assert not folder.exists()
    assert names(elsewhere) == [ORPHAN]


def test_a_start_without_any_saved_slots_has_nothing_to_do(state: Path) -> None:
    slot_files.drop_orphans(state)
    slot_files.drop_undeclared(state, [])
    assert names(state) == []


def test_what_belongs_to_no_declared_replica_goes(state: Path) -> None:
    folders = {
        name: a_folder(state, name, "resume.json", NAMED) for name in ("a.0", "a.1", "a.2", "b.0", "gone.0")
    }
    models = [
        ModelRequest("a", SOURCE, live=LiveSettings(replicas=2)),
        ModelRequest("b", SOURCE, slot_save=False),
    ]
    slot_files.drop_undeclared(state, models)
    assert [name for name, folder in folders.items() if folder.exists()] == ["a.0", "a.1"]
    assert names(folders["a.0"]) == [NAMED, "resume.json"]


def test_a_name_that_is_no_file_name_has_a_folder_of_its_own(state: Path) -> None:
    folder = slot_files.slot_folder(state, "../org/m:Q4", 1)
    assert folder.parent == state / "slots"
    assert folder.name.endswith(".1")


def test_a_record_is_taken_once(state: Path) -> None:
    folder = a_folder(state, "m.0", "resume.json", NAMED)
    assert slot_files.take_record(folder) is not None
    assert names(folder) == [NAMED]
    assert slot_files.take_record(folder) is None


def test_a_file_of_the_engine_is_closed_to_others(state: Path) -> None:
    folder = a_folder(state, "m.0", NAMED)
    (folder / NAMED).chmod(0o644)
    assert slot_files.seal(folder / NAMED) == len(b"what was said")
    assert stat.S_IMODE((folder / NAMED).stat().st_mode) == 0o600


def test_what_is_no_file_is_not_taken_for_a_saved_slot(state: Path) -> None:
    folder = a_folder(state, "m.0")
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to("/etc/hostname")
    assert [slot_files.seal(folder / name) for name in ("pipe", "fifo", "link", "none")] == [None] * 4
