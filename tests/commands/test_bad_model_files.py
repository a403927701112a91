"""A model file that cannot be served, as `inspect` and `plan` tell it: one line, its name, what is wrong."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from framework.values.plain_text import visible
from tests.commands.conftest import Paddock
from tests.support.bad_model_files import BAD_MODEL_FILES, Make

CASES = [pytest.param(*case, id=name) for name, case in BAD_MODEL_FILES.items()]
# The manifest itself refuses this one.
PLANNED = [case for case in CASES if case.id != "a name with hidden characters"]
MIB = 2**20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the bad file is made."""
    path = tmp_path / "models"
    path.mkdir()
    return path


def assert_one_line_about(text: str, path: Path, said: str) -> None:
    assert text.count("\n") == 1
    assert said in text
    assert visible(text[:-1]) == text[:-1]
    # The stem of a set, as it may be another file of it that is at fault.
    assert path.name.split("-0000")[0].splitlines()[0] in text


@pytest.mark.parametrize(("make", "said"), CASES)
def test_inspect_says_what_is_wrong(paddock: Paddock, folder: Path, make: Make, said: str) -> None:
    path = make(folder)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = paddock("inspect", str(path))
    assert (ended.code, ended.out) == (1, "")
    assert_one_line_about(ended.err, path, said)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 128 * MIB // 1024


@pytest.mark.parametrize(("make", "said"), PLANNED)
def test_plan_says_what_is_wrong(paddock: Paddock, folder: Path, place: Path, make: Make, said: str) -> None:
    path = make(folder)
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(f"[models.bad]\nsource = {json.dumps(str(path))}\n")
    ended = paddock("plan", "bad", "--json")
    assert ended.code == 1
    (instance,) = ended.json["instances"]
    (reason,) = instance["reasons"]
    assert said in reason["message"]
    assert reason["remedy"]
    assert instance["argv"] == []
