"""A new content for a file in one step, and why there is none."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from framework.editing.disk import replace_content, why_not_written
from framework.editing.documents import digest_of
from framework.editing.refusal import EditRefused

OLD, NEW = b"old\n", b"new\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "serve.toml"
    path.write_bytes(OLD)
    return path


def refusal(path: Path, raw: bytes = NEW, base: bytes = OLD) -> str:
    with pytest.raises(EditRefused) as caught:
        replace_content(path, raw, digest_of(base))
    reason = caught.value.reason
    assert reason.remedy
    assert reason.severity == "error"
    return reason.code


@contextmanager
def files_of_at_most(limit_bytes: int) -> Iterator[None]:
    """As a full disk: what is longer cannot be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_it_is_another_file_with_the_same_rights(file: Path) -> None:
    file.chmod(0o640)
    before = file.stat()
    replace_content(file, NEW, digest_of(OLD))
    after = file.stat()
    assert file.read_bytes() == NEW
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_owner_and_attributes_go_over_to_the_new_file(file: Path) -> None:
    os.setxattr(file, "user.comment", b"kept")
    if os.geteuid() == 0:
        os.chown(file, 1234, 2345)
    before = file.stat()
    replace_content(file, NEW, digest_of(OLD))
    assert os.getxattr(file, "user.comment") == b"kept"
    assert (file.stat().st_uid, file.stat().st_gid) == (before.st_uid, before.st_gid)


def test_a_link_stays_one_and_leads_to_the_new_text(file: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real = file.rename(tmp_path / "folder" / "real.toml")
    file.symlink_to("folder/real.toml")
    replace_content(file, NEW, digest_of(OLD))
    assert file.is_symlink()
    assert real.read_bytes() == NEW


def test_nothing_else_is_left_in_the_folder(file: Path) -> None:
    replace_content(file, NEW, digest_of(OLD))
    assert refusal(file) == "manifest_changed"
    assert [path.name for path in file.parent.iterdir()] == ["serve.toml"]


def test_what_somebody_else_wrote_is_not_overwritten(file: Path) -> None:
    file.write_bytes(b"theirs\n")
    assert refusal(file) == "manifest_changed"
    assert file.read_bytes() == b"theirs\n"


def test_a_read_only_file_is_left_alone(file: Path) -> None:
    file.chmod(0o444)
    assert refusal(file) == "manifest_read_only"
    assert file.read_bytes() == OLD


def test_without_room_the_old_file_stays(file: Path) -> None:
    with files_of_at_most(1024):
        assert refusal(file, b"x" * 5000) == "manifest_disk_full"
    assert [path.read_bytes() for path in file.parent.iterdir()] == [OLD]


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone" / "serve.toml") == "manifest_unwritable"


def test_a_loop_of_links_is_said(tmp_path: Path) -> None:
    loop = tmp_path / "serve.toml"
    loop.symlink_to(loop)
    assert refusal(loop) == "manifest_unwritable"


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "manifest_unwritable"


@pytest.mark.parametrize(
    ("number", "code", "help_"),
    [
        pytest.param(errno.ENOSPC, "manifest_disk_full", "Free space", id="full"),
        pytest.param(errno.EDQUOT, "manifest_disk_full", "Free space", id="quota"),
        pytest.param(errno.EROFS, "manifest_unwritable", "right to write into /etc", id="read-only-system"),
        pytest.param(errno.EACCES, "manifest_unwritable", "right to write into /etc", id="no-rights"),
        pytest.param(errno.EBUSY, "manifest_unwritable", "Mount the folder", id="mounted-alone"),
        pytest.param(errno.EIO, "manifest_unwritable", "/etc is there", id="anything-else"),
    ],
)
def test_every_trouble_has_its_remedy(number: int, code: str, help_: str) -> None:
    reason = why_not_written(Path("/etc/serve.toml"), OSError(number, os.strerror(number)))
    assert reason.code == code
    assert help_ in reason.remedy
    assert "Nothing was written." in reason.message
