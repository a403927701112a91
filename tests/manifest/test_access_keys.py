"""Keys behind `env:` and `file:`: only their digest leaves the reading."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from framework.values.manifest import AccessKey
from framework.values.rate import Rate
from tests.manifest.conftest import Load
from tests.manifest.reading import read

ENV = '[access.a]\nkey = "env:PADDOCK_A"\n'
FILE = '[access.a]\nkey = "file:key.txt"\n'


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def test_a_key_from_the_environment_is_kept_as_its_digest() -> None:
    text = f'{ENV}models = ["*"]\ndashboard = "operate"\n'
    assert read(text, {"PADDOCK_A": "s3cret"}).manifest.access == (
        AccessKey("a", digest("s3cret"), ("*",), "operate"),
    )


def test_a_key_from_a_file_is_read_beside_the_manifest_without_its_line_end(load: Load) -> None:
    assert load(FILE, key_txt="s3cret\n").manifest.access[0].key_sha256 == digest("s3cret")


def test_a_key_from_an_absolute_path_is_read(load: Load, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("s3cret")
    assert load(f'[access.a]\nkey = "file:{tmp_path}/other"\n').manifest.access


def test_a_key_file_is_watched_like_the_manifest(load: Load, tmp_path: Path) -> None:
    assert load(FILE, key_txt="x").manifest.files == (tmp_path / "serve.toml", tmp_path / "key.txt")


def test_the_secret_is_nowhere_in_the_result() -> None:
    assert "s3cret" not in repr(read(ENV, {"PADDOCK_A": "s3cret"}).loaded)


def test_names_of_secret_variables_are_collected() -> None:
    text = f'{ENV}[access.b]\nkey = "env:B"\n[access.c]\nkey = "env:PADDOCK_A"\n'
    assert read(text, {"PADDOCK_A": "x", "B": "x"}).loaded.manifest is None
    assert read(f'{ENV}[access.b]\nkey = "env:B"\n', {"PADDOCK_A": "x", "B": "y"}).manifest.secret_names == (
        "PADDOCK_A",
        "B",
    )


def test_a_variable_that_is_not_set_is_named() -> None:
    problem = read(ENV).only
    assert (problem.code, problem.path, problem.line) == ("secret_missing", "access.a.key", 2)
    assert "PADDOCK_A" in problem.message


def test_a_file_that_is_not_there_is_named() -> None:
    problem = read(FILE).only
    assert problem.code == "secret_missing"
    assert "key.txt does not exist" in problem.message


@pytest.mark.parametrize("content", ["", " \n", "\n"])
def test_an_empty_key_is_refused(load: Load, content: str) -> None:
    assert load(ENV, {"PADDOCK_A": content}).only.code == "secret_empty"
    assert load(FILE, key_txt=content).only.code == "secret_empty"


def test_a_key_file_that_is_no_text_is_refused(load: Load) -> None:
    assert load(FILE, key_txt=b"\xff\xfe").only.code == "secret_unreadable"


def test_a_key_file_that_is_far_too_large_is_refused(load: Load) -> None:
    assert load(FILE, key_txt="x" * 100_000).only.code == "secret_unreadable"


def test_a_directory_is_no_key(load: Load) -> None:
    assert load('[access.a]\nkey = "file:."\n').only.code == "secret_unreadable"


def test_two_names_for_one_key_are_refused_with_both_places() -> None:
    problem = read(f'{ENV}[access.b]\nkey = "env:B"\n', {"PADDOCK_A": "x", "B": "x"}).only
    assert (problem.code, problem.path) == ("key_shared", "access.b.key")
    assert "access.a.key (/nowhere/serve.toml:2:7)" in problem.message


def test_a_digest_is_taken_as_it_is_and_needs_no_key_here() -> None:
    text = f'[access.a]\nkey = "sha256:{digest("s3cret").upper()}"\n'
    reading = read(text)
    assert reading.manifest.access[0].key_sha256 == digest("s3cret")
    assert reading.manifest.secret_names == ()


def test_a_digest_of_a_key_that_another_table_has_is_refused() -> None:
    text = f'{ENV}[access.b]\nkey = "sha256:{digest("x")}"\n'
    assert read(text, {"PADDOCK_A": "x"}).only.code == "key_shared"


@pytest.mark.parametrize("value", ["sha256:", "sha256:abc", f"sha256:{'g' * 64}", "pk-secret"])
def test_what_is_no_digest_is_not_repeated(value: str) -> None:
    problem = read(f'[access.a]\nkey = "{value}"\n').only
    assert problem.code == "literal_secret"
    assert value not in problem.sentence or value == "sha256:"
    assert "paddock key" in problem.sentence


def test_limits_are_read_and_absent_ones_are_none() -> None:
    text = f'{ENV}rate = "120/min"\nconcurrency = 8\ntokens = "2000000/day"\n'
    key = read(text, {"PADDOCK_A": "x"}).manifest.access[0]
    assert (key.rate, key.concurrency, key.tokens) == (Rate(120, 60.0), 8, Rate(2_000_000, 86400.0))
    bare = read(ENV, {"PADDOCK_A": "x"}).manifest.access[0]
    assert (bare.rate, bare.concurrency, bare.tokens) == (None, None, None)
