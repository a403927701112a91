"""Applying a text and going back, on real files: order, refusals, what is kept and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.editing.documents import digest_of
from framework.editing.editor import Edit, Editor, summary_of
from framework.editing.history import FOLDER, History
from framework.editing.refusal import EditRefused
from framework.manifest.load import ManifestReader
from framework.reconcile.current import CurrentManifest
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.values.action import ActionKind, FieldChange, ModelAction
from framework.values.problem import Problem
from tests.dashboard.samples import NOW

MODEL = '[models.a]\nsource = "a.gguf"\n'
MAIN = f'# mine\ninclude = ["more/*.toml"]\n\n{MODEL}slots = 2\n'
MORE = '[models.b]\nsource = "b.gguf"\n'


class Desk:
    """An editor on a folder with a manifest and a file that it includes."""

    def __init__(self, folder: Path) -> None:
        self.main, self.more = folder / "serve.toml", folder / "more" / "b.toml"
        self.more.parent.mkdir()
        self.more.write_text(MORE)
        self.main.write_text(MAIN)
        reader = ManifestReader(self.main, {}, {})
        manifest = reader().manifest
        assert manifest is not None
        self.events = EventLog(Changes())
        self.history = folder / "state"
        self.history.mkdir()
        current = CurrentManifest(manifest, NOW)
        self.editor = Editor(reader, current, lambda: (), History(self.history), self.events)

    @property
    def base(self) -> str:
        return digest_of(self.main.read_bytes())

    async def refusal(self, edit: Edit) -> EditRefused:
        with pytest.raises(EditRefused) as caught:
            await self.editor.apply(edit, by="laptop")
        return caught.value


def errors_of(refusal: EditRefused) -> list[Problem]:
    """Without warnings: no model of these is there."""
    return [problem for problem in refusal.problems if problem.severity == "error"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_an_apply_writes_keeps_and_says(desk: Desk) -> None:
    text = MAIN.replace("slots = 2", "slots = 4")
    written = await desk.editor.apply(Edit(text, desk.base), by="laptop")
    assert desk.main.read_text() == text
    assert written.sha256 == desk.base
    (version,) = await desk.editor.versions()
    assert (version.by, version.file) == ("laptop", str(desk.main))
    assert await desk.editor.version(version.id) == (version, MAIN)
    assert written.event.message.startswith("serve.toml edited by laptop: adds a")
    assert written.event.data["version"] == version.id


@pytest.mark.parametrize(
    ("kind", "old", "new", "told"),
    [
        ("start", None, "declared", "adds and starts m"),
        ("record", None, "declared", "adds m"),
        ("stop", "declared", None, "removes m"),
        ("replace", 1, 2, "replaces m"),
        ("record", 1, 2, "changes m for its next start"),
        ("live", 1, 2, "changes m while it runs"),
        ("none", 1, 1, "changes no model"),
    ],
)
def test_an_apply_is_told_in_words(kind: ActionKind, old: object, new: object, told: str) -> None:
    field = "models.m" if "declared" in (old, new) else "slots"
    changes = (FieldChange(field, old, new, "restart", "why"),)
    assert summary_of([ModelAction("m", None, kind, changes)]) == told


async def test_the_digest_of_all_files_will_do_for_the_manifest_itself(desk: Desk) -> None:
    whole = (await desk.editor.check()).sha256
    assert whole != desk.base
    await desk.editor.apply(Edit(MAIN + "# more\n", whole), by="laptop")
    assert desk.main.read_text() == MAIN + "# more\n"
    more = Edit(MORE, (await desk.editor.check()).sha256, str(desk.more))
    assert (await desk.refusal(more)).reason.code == "manifest_changed"


async def test_a_text_with_errors_is_not_written_and_every_error_is_told(desk: Desk) -> None:
    refusal = await desk.refusal(Edit(MAIN + "slot = 1\ncontext = true\n", desk.base))
    assert refusal.reason.code == "manifest_invalid"
    assert [(problem.line, problem.path) for problem in errors_of(refusal)] == [
        (7, "models.a.slot"),
        (8, "models.a.context"),
    ]
    assert desk.main.read_text() == MAIN
    assert await desk.editor.versions() == ()


async def test_an_empty_text_is_taken_for_an_accident(desk: Desk) -> None:
    await desk.editor.apply(Edit("# nothing\n" + MODEL, desk.base), by="laptop")
    assert (await desk.refusal(Edit("", desk.base))).reason.code == "manifest_invalid"


async def test_an_edit_of_an_old_text_is_refused(desk: Desk) -> None:
    base = desk.base
    desk.main.write_text(MAIN + "# theirs\n")
    assert (await desk.refusal(Edit(MAIN, base))).reason.code == "manifest_changed"
    assert desk.main.read_text() == MAIN + "# theirs\n"


async def test_the_same_text_writes_nothing(desk: Desk) -> None:
    inode = desk.main.stat().st_ino
    written = await desk.editor.apply(Edit(MAIN.replace("\n", "\r\n"), desk.base, is_form=True), by="x")
    assert (written.version, desk.main.stat().st_ino) == (None, inode)


async def test_an_included_file_is_edited_and_checked_with_the_rest(desk: Desk) -> None:
    base = digest_of(MORE.encode())
    twice = Edit(MODEL, base, str(desk.more))
    (problem,) = errors_of(await desk.refusal(twice))
    assert problem.code == "duplicate_name"
    await desk.editor.apply(Edit(MORE + "slots = 1\n", base, str(desk.more)), by="laptop")
    assert desk.more.read_text() == MORE + "slots = 1\n"
    assert desk.main.read_text() == MAIN


async def test_a_file_that_is_none_of_the_manifest_is_not_touched(desk: Desk) -> None:
    other = desk.main.with_name("other.toml")
    other.write_text("x = 1\n")
    edit = Edit(MODEL, digest_of(b"x = 1\n"), str(other))
    assert (await desk.refusal(edit)).reason.code == "manifest_file_unknown"


async def test_a_text_that_is_too_large_is_refused_as_one(desk: Desk) -> None:
    refusal = await desk.refusal(Edit(MAIN + "#" * 2**20, desk.base))
    assert refusal.reason.code == "manifest_invalid"
    assert "at most" in refusal.reason.message


async def test_what_cannot_be_written_is_not_kept_either(desk: Desk) -> None:
    desk.main.chmod(0o444)
    assert (await desk.refusal(Edit(MODEL, desk.base))).reason.code == "manifest_read_only"
    assert await desk.editor.versions() == ()


async def test_what_cannot_be_kept_is_not_written(desk: Desk) -> None:
    (desk.history / FOLDER).write_text("a file in its place")
    assert (await desk.refusal(Edit(MODEL, desk.base))).reason.code == "manifest_unwritable"
    assert desk.main.read_text() == MAIN


async def test_going_back_is_an_apply_that_can_be_gone_back_from(desk: Desk) -> None:
    await desk.editor.apply(Edit(MODEL, desk.base), by="laptop")
    await desk.editor.revert(by="phone")
    assert desk.main.read_text() == MAIN
    assert [version.by for version in await desk.editor.versions()] == ["phone", "laptop"]
    await desk.editor.revert(by="phone")
    assert desk.main.read_text() == MODEL


async def test_going_back_does_not_drop_what_came_later(desk: Desk) -> None:
    await desk.editor.apply(Edit(MODEL, desk.base), by="laptop")
    desk.main.write_text(MODEL + "# theirs\n")
    with pytest.raises(EditRefused) as caught:
        await desk.editor.revert(by="laptop")
    assert caught.value.reason.code == "manifest_changed"
    await desk.editor.revert(1, desk.base, by="laptop")
    assert desk.main.read_text() == MAIN


async def test_going_back_to_what_is_wrong_by_now_is_refused(desk: Desk) -> None:
    await desk.editor.apply(Edit(MODEL, desk.base), by="laptop")
    desk.more.unlink()
    desk.more.parent.joinpath("c.toml").write_text(MODEL)
    with pytest.raises(EditRefused) as caught:
        await desk.editor.revert(1, desk.base, by="laptop")
    assert caught.value.reason.code == "manifest_invalid"


async def test_a_version_that_never_was_is_none(desk: Desk) -> None:
    with pytest.raises(KeyError):
        await desk.editor.revert(by="laptop")
    with pytest.raises(KeyError):
        await desk.editor.version(7)


async def test_a_hard_link_keeps_the_old_text_and_that_is_said(desk: Desk) -> None:
    copy = desk.main.with_name("backup.toml")
    copy.hardlink_to(desk.main)
    written = await desk.editor.apply(Edit(MAIN + "# more\n", desk.base), by="laptop")
    assert (desk.main.read_text(), copy.read_text()) == (MAIN + "# more\n", MAIN)
    assert "1 other name of the file (hard links) keeps the old text" in written.event.message
