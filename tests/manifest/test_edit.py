"""Single values of a text are changed and everything else stays as it was typed."""

from __future__ import annotations

from typing import Any

import pytest
import tomli

from framework.manifest.edit import Change, EditImpossible, edited

TEXT = """# The night shift.
[defaults]
slots   =   2     # two

[models.a]  # chat
source = 'a.gguf'
context = 0x1000  # in hex
# about placement
[models.a.placement]
mode = "manual"

[models."org/m:Q4"]
source = "b.gguf"
"""


def change(path: str, value: object) -> Change:
    return Change(tuple(path.split(".")), value)


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        pytest.param("models.a.context", 8192, "0x1000  # in hex", "8192  # in hex", id="a-value"),
        pytest.param("defaults.slots", 4, "=   2     # two", "=   4     # two", id="with-its-blanks"),
        pytest.param("models.a.placement.mode", "auto", '"manual"', '"auto"', id="in-a-table-below"),
    ],
)
def test_only_the_value_changes(path: str, value: object, old: str, new: str) -> None:
    assert edited(TEXT, [change(path, value)]) == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("models.a.kv_cache", "q8_0", id="before-the-tables-below"),
        pytest.param("models.a.kv_cache", {"k": "q8_0", "v": "f16"}, id="a-table-on-one-line"),
        pytest.param("models.a.placement.split", "layer", id="in-a-table"),
        pytest.param("models.a.timeout.load", "20m", id="in-a-table-that-is-not-there"),
        pytest.param("models.a.source", None, id="taken-out"),
        pytest.param("models.a.nothing.there", None, id="nothing-taken-out"),
        pytest.param("pools.gpu.budget", "20GiB", id="in-a-new-section"),
        pytest.param("models.a.slots", 'x" \\ \n# no', id="hostile-text"),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "windows"])
def test_the_rest_means_what_it_meant(path: str, value: object, ends: str) -> None:
    text = edited(TEXT.replace("\n", ends), [change(path, value)])
    expected: dict[str, Any] = tomli.loads(TEXT)
    node, (*tables, name) = expected, path.split(".")
    if value is None:
        node["models"]["a"].pop(name, None)
    else:
        for table in tables:
            node = node.setdefault(table, {})
        node[name] = value
    assert tomli.loads(text) == expected
    comments = [line.partition("#")[2] for line in TEXT.splitlines() if "#" in line]
    assert all(comment in text for comment in comments)


def test_several_at_once_and_names_with_dots() -> None:
    path = ("models", "org/m:Q4", "slots")
    text = edited(TEXT, [Change(path, 1), change("models.a.context", "auto")])
    assert tomli.loads(text)["models"]["org/m:Q4"] == {"source": "b.gguf", "slots": 1}
    assert 'context = "auto"  # in hex' in text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param("no toml", "models.a.slots", id="no-toml"),
        pytest.param("models = 5\n", "models.a.slots", id="not-a-table"),
        pytest.param("[[models]]\n", "models.a.slots", id="a-list"),
        pytest.param("[models.a]\nslots = 1\n", "models.a.slots.x", id="below-a-value"),
    ],
)
def test_what_cannot_be_changed_is_said(text: str, path: str) -> None:
    with pytest.raises(EditImpossible, match="by hand"):
        edited(text, [change(path, 1)])


def test_a_value_that_no_toml_holds_is_said() -> None:
    with pytest.raises(EditImpossible):
        edited(TEXT, [change("models.a.slots", object())])


def test_a_text_that_would_take_minutes_is_left_to_people() -> None:
    lines = "".join(f"a.b.c.d.e.f.g{n} = 1\n" for n in range(20_000))
    with pytest.raises(EditImpossible, match="more than 262,144 characters"):
        edited(TEXT + lines, [change("models.a.slots", 1)])
