"""The private directory of a manager: its place, its privacy, its lock, what lies in it (01 §2.11)."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from framework import state_dir
from framework.state_dir import StateDirError

NOBODY = 65534
HOLDER = """
import sys, time
from pathlib import Path
from framework import state_dir
with state_dir.hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory that was prepared."""
    path = tmp_path / "state"
    state_dir.prepare(path)
    return path


def fault_of(path: Path) -> str:
    """What is wrong with a directory; every fault has a remedy."""
    fault = state_dir.find_fault(path)
    assert fault is not None
    assert fault.remedy
    return fault.message


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_each_manifest_has_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, other = (state_dir.locate(tmp_path / name, None) for name in ("a.toml", "b.toml"))
    assert one != other
    assert one.parent == tmp_path / "paddock"
    assert re.fullmatch(r"[0-9a-f]{12}", one.name)


def test_links_to_one_manifest_share_a_directory(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").touch()
    (tmp_path / "link.toml").symlink_to("serve.toml")
    assert state_dir.locate(tmp_path / "link.toml", None) == state_dir.locate(tmp_path / "serve.toml", None)


def test_chosen_directory_is_taken(tmp_path: Path) -> None:
    assert state_dir.locate(tmp_path / "serve.toml", tmp_path / "here") == tmp_path / "here"


def test_new_directory_is_private(tmp_path: Path) -> None:
    state_dir.prepare(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700


def test_directory_that_others_may_enter_is_refused_with_the_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(StateDirError, match="chmod 700"):
        state_dir.prepare(tmp_path)


def test_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(StateDirError, match="state"):
        state_dir.prepare(tmp_path / "state")


def test_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    assert "not a directory" in fault_of(tmp_path / "state")


def test_directory_of_another_user_is_refused(directory: Path) -> None:
    foreign = Path("/")
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
        foreign = directory
    fault = state_dir.find_fault(foreign)
    assert fault is not None
    assert "another user, " in fault.message
    assert "sudo -u " in fault.remedy


def test_link_of_another_user_is_refused(directory: Path, tmp_path: Path) -> None:
    foreign = Path("/proc/self")
    if os.geteuid() == 0:
        foreign = tmp_path / "link"
        foreign.symlink_to(directory)
        os.chown(foreign, NOBODY, NOBODY, follow_symlinks=False)
    assert "another user" in fault_of(foreign)


def test_token_is_fresh_and_private(directory: Path) -> None:
    first, second = state_dir.new_token(directory), state_dir.new_token(directory)
    assert first != second
    assert state_dir.read_token(directory) == second
    assert mode(directory / "token") == 0o600
    assert len(second) >= 43


def test_nothing_but_the_token_is_left(directory: Path) -> None:
    state_dir.new_token(directory)
    assert [path.name for path in directory.iterdir()] == ["token"]


def test_link_in_place_of_the_token_is_replaced_not_followed(directory: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (directory / "token").symlink_to(victim)
    state_dir.new_token(directory)
    assert victim.read_text() == "untouched"
    assert not (directory / "token").is_symlink()


def test_link_in_place_of_the_token_is_not_read(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("secret")
    (directory / "token").symlink_to(tmp_path / "other")
    assert state_dir.read_token(directory) is None


def test_token_that_others_may_read_is_not_used(directory: Path) -> None:
    state_dir.new_token(directory)
    (directory / "token").chmod(0o644)
    assert state_dir.read_token(directory) is None


def test_token_in_an_open_directory_is_not_used(directory: Path) -> None:
    state_dir.new_token(directory)
    directory.chmod(0o755)
    assert state_dir.read_token(directory) is None


def remedy_of(directory: Path) -> str:
    fault = state_dir.find_reading_fault(directory)
    return "" if fault is None else f"{fault.message} {fault.remedy}"


@pytest.mark.parametrize("name", ["token", "listen"])
def test_file_that_others_may_read_is_named_with_the_remedy(directory: Path, name: str) -> None:
    state_dir.new_token(directory)
    state_dir.record_listener(directory, "127.0.0.1:1")
    file = directory / name
    file.chmod(0o640)
    assert remedy_of(directory) == f"Other users may read {file}. Run `chmod 600 {file}`."


def test_open_directory_is_named_with_the_remedy(directory: Path) -> None:
    directory.chmod(0o755)
    assert f"Run `chmod 700 {directory}`." in remedy_of(directory)


def test_link_in_place_of_a_file_is_named(directory: Path, tmp_path: Path) -> None:
    (directory / "token").symlink_to(tmp_path / "other")
    assert "is no file of yours" in remedy_of(directory)


def test_directory_that_is_fine_empty_or_missing_has_no_fault(directory: Path, tmp_path: Path) -> None:
    assert remedy_of(tmp_path / "gone") == remedy_of(directory) == ""
    state_dir.new_token(directory)
    assert remedy_of(directory) == ""


def test_missing_directory_has_no_token(tmp_path: Path) -> None:
    assert state_dir.read_token(tmp_path / "gone") is None


def test_pipe_in_place_of_the_token_does_not_hang(directory: Path) -> None:
    os.mkfifo(directory / "token", 0o600)
    assert state_dir.read_token(directory) is None


def test_address_is_left_and_forgotten(directory: Path) -> None:
    state_dir.new_token(directory)
    state_dir.record_listener(directory, "127.0.0.1:8080")
    assert state_dir.read_listener(directory) == "127.0.0.1:8080"
    state_dir.forget(directory)
    state_dir.forget(directory)
    assert (state_dir.read_listener(directory), state_dir.read_token(directory)) == (None, None)


def test_second_holder_is_told_the_process_of_the_first(directory: Path) -> None:
    with (
        state_dir.hold(directory),
        pytest.raises(StateDirError, match=rf"Process {os.getpid()} "),
        state_dir.hold(directory),
    ):
        pass


def test_directory_is_free_after_its_holder(directory: Path) -> None:
    with state_dir.hold(directory):
        pass
    with state_dir.hold(directory):
        pass


def test_what_was_deleted_is_put_back_and_held_again(directory: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "shown.pem"
    certificate.write_text("a certificate")
    with state_dir.hold(directory) as held:
        shutil.rmtree(directory)
        assert held.keep("a token", "https://127.0.0.1:1", "an id", certificate) == ""
        assert state_dir.read_token(directory) == "a token"
        assert (directory / "certificate.pem").read_text() == "a certificate"
        with pytest.raises(StateDirError, match=rf"Process {os.getpid()} "), state_dir.hold(directory):
            pass
        assert held.keep("a token", "https://127.0.0.1:1", "an id", certificate) == ""
    with state_dir.hold(directory):
        pass


def test_a_directory_that_somebody_else_has_taken_meanwhile_is_told(directory: Path) -> None:
    with state_dir.hold(directory) as held:
        shutil.rmtree(directory)
        state_dir.prepare(directory)
        with state_dir.hold(directory):
            theirs = state_dir.new_token(directory)
            assert "already runs this manifest" in held.keep("a token", "127.0.0.1:1", "an id")
            assert state_dir.read_token(directory) == theirs


def test_killed_holder_lets_go(directory: Path) -> None:
    arguments = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StateDirError, match=rf"Process {holder.pid} "), state_dir.hold(directory):
            pass
        holder.kill()
        holder.wait()
        with state_dir.hold(directory):
            pass


def test_lock_that_is_a_link_is_refused(directory: Path, tmp_path: Path) -> None:
    (directory / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateDirError), state_dir.hold(directory):
        pass
