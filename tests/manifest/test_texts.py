"""Names, secrets, sources, templates and variables as the manifest writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from framework.manifest.bad_value import BadValue
from framework.manifest.texts import (
    SecretRef,
    WrittenSource,
    parse_environment_name,
    parse_environment_pattern,
    parse_environment_value,
    parse_mode,
    parse_model_name,
    parse_name,
    parse_secret,
    parse_source,
    parse_state_dir,
    parse_template,
    parse_text,
)

PARSERS = [parse_environment_name, parse_environment_pattern, parse_environment_value, parse_mode, parse_name]
PARSERS += [parse_model_name]
PARSERS += [parse_secret, parse_source, parse_state_dir, parse_template, parse_text]  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["m", "org/m:Q4_K_M", "Größe 1", " m", "🦙", "x" * 200], ids=repr)
def test_a_name_is_almost_any_text(name: str) -> None:
    assert parse_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * 201, "a\nb", "a\0b", "a\x85b", "a\u2028b", 5, None], ids=repr
)
def test_some_names_are_refused(name: Any) -> None:
    with pytest.raises(BadValue):
        parse_name(name)


@pytest.mark.parametrize("name", [".", "..", "...", "", 5], ids=repr)
def test_a_model_cannot_be_named_by_dots_alone(name: Any) -> None:
    with pytest.raises(BadValue):
        parse_model_name(name)


@pytest.mark.parametrize("name", ["m", ".m", "..a", "a/../b", "v1."], ids=repr)
def test_dots_within_the_name_of_a_model_are_fine(name: str) -> None:
    assert parse_model_name(name) == name


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("env:PADDOCK_KEY", SecretRef("env", "PADDOCK_KEY")),
        ("file:/run/secrets/key", SecretRef("file", "/run/secrets/key")),
        ("file:a b", SecretRef("file", "a b")),
    ],
)
def test_a_secret_is_a_reference(text: str, ref: SecretRef) -> None:
    assert parse_secret(text) == ref


@pytest.mark.parametrize(
    "value", ["sk-123", "", "env:", "env:A B", "env:1A", "file:", "file: ", "ENV:A", 5, None], ids=repr
)
def test_a_literal_secret_is_refused_and_not_repeated(value: Any) -> None:
    with pytest.raises(BadValue) as caught:
        parse_secret(value)
    assert not caught.value.repeat
    assert "sk-123" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("models/a.gguf", WrittenSource(path="models/a.gguf")),
        ("/data/a:b.gguf", WrittenSource(path="/data/a:b.gguf")),
        ("hf:o/r:Q4_K_M", WrittenSource(repo="o/r", variant="Q4_K_M")),
        ("hf:o/r", WrittenSource(repo="o/r")),
        ("hf:o/r/sub/a.gguf", WrittenSource(repo="o/r", file="sub/a.gguf")),
    ],
)
def test_a_source_is_a_path_or_a_hub_reference(text: str, source: WrittenSource) -> None:
    assert parse_source(text) == source


@pytest.mark.parametrize(
    "value", ["", " ", "hf:", "hf:o", "hf:o/r:", "https://x/a.gguf", "a\0b", "x" * 4097, 5, []], ids=repr
)
def test_anything_else_is_no_source(value: Any) -> None:
    with pytest.raises(BadValue):
        parse_source(value)


@pytest.mark.parametrize(
    "value",
    [
        "hf:o/r/../../x.gguf",
        "hf:o/r/./x.gguf",
        "hf:o/r//x.gguf",
        "hf:o/r/sub/..",
        "hf:../r/x.gguf",
        "hf:o/..",
        "hf:o/r/notes.txt",
        "hf:o/r/model",
    ],
)
def test_a_file_of_a_repository_is_a_gguf_file_in_it(value: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_source(value)
    assert caught.value.code == "bad_source"


def test_a_template_is_a_file() -> None:
    assert parse_template("file:chat.jinja") == "chat.jinja"


@pytest.mark.parametrize(
    ("value", "suggestion"),
    [
        ("chat.jinja", '"file:chat.jinja"'),
        ("{{ x }}", ""),
        ("file:", ""),
        ("", ""),
        (5, ""),
        ("file:a\nb", ""),
    ],
)
def test_anything_else_is_no_template(value: Any, suggestion: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_template(value)
    assert caught.value.suggestion == suggestion


@pytest.mark.parametrize(("value", "path"), [("auto", None), ("/var/lib/x", "/var/lib/x")])
def test_a_state_directory_is_automatic_or_a_path(value: str, path: str | None) -> None:
    assert parse_state_dir(value) == path


@pytest.mark.parametrize("name", ["A", "_a1", "LLAMA_ARG_X"], ids=repr)
def test_variables_have_plain_names(name: str) -> None:
    assert parse_environment_name(name) == parse_environment_pattern(name) == name


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A B", "É", "A\n", 5], ids=repr)
def test_other_names_are_no_variables(name: Any) -> None:
    with pytest.raises(BadValue):
        parse_environment_name(name)


@pytest.mark.parametrize(
    ("pattern", "is_fine"), [("GGML_*", True), ("*", False), ("A*B", False), ("A**", False)]
)
def test_a_pattern_is_the_start_of_a_name(pattern: str, is_fine: bool) -> None:
    if is_fine:
        assert parse_environment_pattern(pattern) == pattern
    else:
        with pytest.raises(BadValue):
            parse_environment_pattern(pattern)


@pytest.mark.parametrize("value", ["", "a=b", "two\nlines", "é"], ids=repr)
def test_values_of_variables_are_any_text(value: str) -> None:
    assert parse_environment_value(value) == value


@pytest.mark.parametrize("parse", PARSERS)
@settings(max_examples=30)
@given(value=st.one_of(st.text(max_size=20), st.integers(), st.floats(), st.booleans(), st.lists(st.text())))
def test_any_value_is_taken_or_refused(parse: Callable[[Any], Any], value: Any) -> None:
    try:
        parse(value)
    except BadValue as bad:
        assert bad.must_be
