"""`include`: which files are read, in which order, what they may hold, where a problem is (01 §2.4)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from framework.manifest.load import check_text, load_manifest
from tests.manifest.conftest import Load
from tests.manifest.reading import MODEL, Reading

INCLUDE = 'include = ["models.d/*.toml"]\n'


def model(name: str) -> str:
    return f'[models.{name}]\nsource = "{name}.gguf"\n'


def test_tables_of_all_files_are_one_manifest(load: Load) -> None:
    reading = load(INCLUDE + model("a"), models_d__c_toml=model("c"), models_d__b_toml=model("b"))
    assert list(reading.manifest.models) == ["a", "b", "c"]


def test_all_files_are_listed_in_reading_order(load: Load, tmp_path: Path) -> None:
    reading = load(INCLUDE, models_d__c_toml=model("c"), models_d__b_toml=model("b"))
    names = ["serve.toml", "models.d/b.toml", "models.d/c.toml"]
    assert reading.manifest.files == reading.loaded.files == tuple(tmp_path / name for name in names)
    assert reading.manifest.include_patterns == ("models.d/*.toml",)


def test_the_digest_of_one_file_is_that_of_its_bytes(load: Load) -> None:
    assert load(MODEL).manifest.sha256 == hashlib.sha256(MODEL.encode()).hexdigest()


def test_the_digest_covers_included_files(load: Load) -> None:
    before = load(INCLUDE, models_d__b_toml=model("b")).manifest.sha256
    assert load(INCLUDE, models_d__b_toml=model("b") + "# x").manifest.sha256 != before


def test_every_kind_of_named_table_may_be_included(load: Load) -> None:
    tables = '[pools.p]\ndevices = ["cpu"]\n[engines.e]\nbinary = "x"\n[speculation.s]\nmode = "off"\n'
    manifest = load(INCLUDE, {"K": "k"}, models_d__x_toml=f'{tables}[access.a]\nkey = "env:K"\n').manifest
    assert [*manifest.pools, *manifest.engines, *manifest.speculation, manifest.access[0].name] == [
        *["p", "e", "default", "s", "a"]
    ]


@pytest.mark.parametrize(
    "text", ["[server]\nlisten = '127.0.0.1:1'", "include = ['x']", "[defaults]\nslots = 1"]
)
def test_some_tables_stand_in_the_main_file_only(load: Load, text: str) -> None:
    problem = load(INCLUDE, models_d__x_toml=text).only
    assert problem.code == "include_not_allowed"
    assert problem.file.endswith("models.d/x.toml")


def test_the_defaults_reach_included_models(load: Load) -> None:
    assert load(f"{INCLUDE}[defaults]\nslots = 7\n", models_d__b_toml=model("b")).request("b").slots == 7


def test_a_name_in_two_files_is_refused_with_both_places(load: Load, tmp_path: Path) -> None:
    problem = load(INCLUDE, models_d__a_toml=f"\n{model('x')}", models_d__b_toml=model("x")).only
    assert (problem.code, problem.path) == ("duplicate_name", "models.x")
    assert problem.location == f"{tmp_path}/models.d/b.toml:1:9"
    assert f"stands first at {tmp_path}/models.d/a.toml:2:9" in problem.message


def test_a_problem_has_its_place_in_the_included_file(load: Load, tmp_path: Path) -> None:
    problem = load(INCLUDE, models_d__a_toml=f"{model('a')}slots = 0\n").only
    assert problem.location == f"{tmp_path}/models.d/a.toml:3:9"


def test_an_included_file_is_named_relative_to_the_manifest_as_given(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(INCLUDE, models_d__a_toml="x = 1")
    monkeypatch.chdir(tmp_path)
    assert Reading(load_manifest(Path("serve.toml"), {})).only.location == "models.d/a.toml:1:1"


def test_one_bad_file_does_not_hide_the_problems_of_the_others(load: Load) -> None:
    reading = load(
        f"{INCLUDE}x = 1\n", models_d__a_toml="= 1", models_d__b_toml="y = 1", models_d__c_toml=b"\xff"
    )
    assert reading.codes == ["unknown_key", "toml_syntax", "unknown_key", "not_utf8"]


def test_a_bad_file_still_belongs_to_the_files(load: Load, tmp_path: Path) -> None:
    assert tmp_path / "models.d/a.toml" in load(INCLUDE, models_d__a_toml=b"\xff").loaded.files


def test_a_pattern_that_matches_nothing_is_a_warning(load: Load) -> None:
    reading = load(INCLUDE)
    assert [(one.code, one.path, one.line, one.column) for one in reading.warnings] == [
        ("include_empty", "include[0]", 1, 12)
    ]
    assert reading.errors == []


@pytest.mark.parametrize("pattern", ["serve.toml", "*.toml", "./serve.toml"])
def test_a_pattern_that_matches_the_manifest_alone_says_so(load: Load, pattern: str) -> None:
    reading = load(f'include = ["{pattern}"]\n{model("a")}')
    assert [one.code for one in reading.warnings] == ["include_empty"]
    assert "cannot include itself" in reading.warnings[0].message
    assert reading.errors == []


def test_the_manifest_is_known_by_any_spelling_of_its_path(load: Load, tmp_path: Path) -> None:
    load(f'include = ["*.toml"]\n{model("a")}', b_toml=model("b"), models_d__x_toml="")
    reading = Reading(load_manifest(tmp_path / "models.d" / ".." / "serve.toml", {}))
    assert list(reading.manifest.models) == ["a", "b"]


def test_the_manifest_does_not_include_itself(load: Load) -> None:
    assert list(load(f'include = ["*.toml"]\n{model("a")}', b_toml=model("b")).manifest.models) == ["a", "b"]


def test_a_file_that_two_patterns_match_is_read_once(load: Load) -> None:
    include = 'include = ["models.d/*.toml", "models.d/b.toml", "./models.d/../models.d/b*"]\n'
    assert load(include, models_d__b_toml=model("b")).errors == []


@pytest.mark.parametrize(
    ("include", "path"),
    [
        ('"x.toml"', "include"),
        ("[1]", "include[0]"),
        ('["a", ""]', "include[1]"),
        ('["**/*.toml"]', "include[0]"),
    ]
    + [('["a\\u0000b"]', "include[0]"), ("{ a = 1 }", "include")],
)
def test_include_is_a_list_of_patterns(load: Load, include: str, path: str) -> None:
    assert load(f"include = {include}").only.path == path


def test_directories_are_left_out(load: Load, tmp_path: Path) -> None:
    (tmp_path / "models.d" / "old.toml").mkdir(parents=True)
    assert load(INCLUDE, models_d__b_toml=model("b")).errors == []


def test_more_files_than_anybody_writes_are_refused(load: Load, tmp_path: Path) -> None:
    (tmp_path / "models.d").mkdir()
    for number in range(1001):
        (tmp_path / "models.d" / f"{number}.toml").touch()
    assert load(INCLUDE).only.code == "include_too_many"


def test_a_file_whose_name_is_no_text_is_called_by_one_and_can_be_edited(tmp_path: Path) -> None:
    main = tmp_path / "serve.toml"
    main.write_text('include = ["*.toml"]\n')
    (tmp_path / os.fsdecode(b"b\xff.toml")).write_text(model("b"))
    names = [str(main), str(tmp_path / "b\\xff.toml")]
    assert list(load_manifest(main, {}).sources) == names
    edited = check_text(main, model("c"), {}, file=names[1])
    assert edited.manifest is not None
    assert list(edited.manifest.models) == ["c"]
