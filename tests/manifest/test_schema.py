"""The classes, their JSON Schema and the reference say the same, about every key."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framework.manifest.allowed import allowed_text
from framework.manifest.json_schema import manifest_schema, node_at
from framework.manifest.known_keys import all_keys, keys_below
from framework.manifest.reference import TABLES, render
from framework.manifest.schema import ManifestTable
from framework.manifest.schema_model import DefaultsTable, ModelTable
from framework.manifest.schema_server import ServerTable
from framework.manifest.unavailable import UNAVAILABLE
from framework.values.request import LiveSettings, ModelRequest
from tests.manifest.reading import MODEL, read, read_model

REFERENCE = Path(__file__).parents[2] / "docs" / "manifest.md"
SCHEMA = manifest_schema()


def nodes(value: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from nodes(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from nodes(inner, f"{path}/{index}")


def test_the_schema_is_json_and_names_its_dialect() -> None:
    assert json.loads(json.dumps(SCHEMA))["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    targets = {node["$ref"] for _, node in nodes(SCHEMA) if isinstance(node.get("$ref"), str)}
    assert targets
    assert all(target.removeprefix("#/$defs/") in SCHEMA["$defs"] for target in targets)


def test_the_schema_uses_types_of_json_schema_only_and_never_null() -> None:
    types = {node["type"] for _, node in nodes(SCHEMA) if isinstance(node.get("type"), str)}
    assert types == {"object", "array", "string", "integer", "number", "boolean"}


def test_every_table_of_the_schema_refuses_unknown_keys() -> None:
    tables = [one for _, one in nodes(SCHEMA) if "properties" in one and one.get("type") == "object"]
    assert len(tables) >= 15
    assert all(one["additionalProperties"] is False for one in tables)


def test_every_key_of_the_schema_is_described() -> None:
    for path, node in nodes(SCHEMA):
        for key, inner in (
            node.get("properties", {}).items() if isinstance(node.get("properties"), dict) else ()
        ):
            assert inner["description"], f"{path}: {key}"


def test_keys_that_are_refused_are_marked_in_the_schema() -> None:
    marked = [node["x-not-available"] for _, node in nodes(SCHEMA) if "x-not-available" in node]
    assert set(marked) == {row.sentence for row in UNAVAILABLE}


def test_the_schema_is_a_fresh_value_each_time() -> None:
    manifest_schema().clear()
    assert manifest_schema()["$defs"]


@pytest.mark.parametrize(
    ("table", "path", "text"),
    [
        ("ModelTable", ("slots",), "a whole number from 1 to 256"),
        ("ModelTable", ("context",), '"auto" or a whole number from 1 to 16,777,216'),
        ("ModelTable", ("rollback",), "true or false"),
        ("ModelTable", ("load",), '"at-start", "on-demand" or "manual"'),
        ("ModelTable", ("aliases",), "a list of texts"),
        ("ModelTable", ("adapters", 0, "scale"), "a number from -100 to 100"),
        ("ModelTable", ("adapters",), "a list of tables"),
        ("ModelTable", ("timeout", "load"), 'a number and one of ms s m h d, as in "10m"'),
        ("ModelTable", ("kv_cache",), "text in quotes or a table"),
        ("ModelTable", ("environment", "ANY"), "text in quotes"),
        ("ModelTable", ("no", "such"), ""),
        ("SpeculationTable", ("loop_guard",), '"off", "stop" or "force-close" or a table'),
    ],
)
def test_what_a_key_takes_is_said_in_words(table: str, path: tuple[str | int, ...], text: str) -> None:
    assert allowed_text(node_at(table, path)) == text


# Defaults


def defaults_of(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Documented default of every key of a table and of the tables in it."""
    for key, node in table["properties"].items():
        name = f"{prefix}{key}"
        if "default" in node and key not in table.get("required", ()):
            yield name, node["default"]
        inner = SCHEMA["$defs"].get(node.get("$ref", "").rpartition("/")[2])
        if inner is not None and "properties" in inner:
            yield from defaults_of(inner, f"{name}.")


def written(value: Any) -> str:
    return "{}" if value == {} else json.dumps(value)


REFUSED = {row.key for row in UNAVAILABLE if row.table == "models" and row.fine is None}
MODEL_DEFAULTS = [one for one in defaults_of(SCHEMA["$defs"]["ModelTable"]) if one[0] not in REFUSED]
SERVER_DEFAULTS = list(defaults_of(SCHEMA["$defs"]["ServerTable"]))


@pytest.mark.parametrize(("key", "default"), MODEL_DEFAULTS, ids=[one[0] for one in MODEL_DEFAULTS])
def test_writing_the_documented_default_of_a_model_changes_nothing(key: str, default: Any) -> None:
    if key in ("placement.gpu_layers", "placement.cpu_experts", "placement.tensor_split"):
        manual = read_model('placement.mode = "manual"').request()
        assert read_model(f'placement.mode = "manual"\n{key} = {written(default)}').request() == manual
    else:
        assert read_model(f"{key} = {written(default)}").request() == read(MODEL).request()


@pytest.mark.parametrize(("key", "default"), SERVER_DEFAULTS, ids=[one[0] for one in SERVER_DEFAULTS])
def test_writing_the_documented_default_of_the_server_changes_nothing(key: str, default: Any) -> None:
    assert read(f"[server]\n{key} = {written(default)}").manifest.server == read("").manifest.server


OF_OTHER_TABLES = {"NAME", "speculation.yield_watch"}
"""The name of the model's own table, and a key of the policy that it names."""


def test_every_key_of_a_model_is_a_field_of_its_request_or_refused() -> None:
    fields = (*dataclasses.fields(ModelRequest), *dataclasses.fields(LiveSettings))
    declared = {field.metadata["manifest"] for field in fields if field.metadata} - OF_OTHER_TABLES
    keys = {".".join(map(str, path)) for path in keys_below(ModelTable)}
    leaves = {key for key in keys if not any(other.startswith(f"{key}.") for other in keys)}
    partly = {row.key for row in UNAVAILABLE if row.table == "models"}
    covered = {
        leaf for leaf in leaves if any(leaf == d or leaf.startswith(f"{d}.") for d in declared | partly)
    }
    assert leaves == covered
    assert declared <= keys


def test_the_defaults_table_has_every_key_of_a_model_but_its_own() -> None:
    assert set(ModelTable.model_fields) - set(DefaultsTable.model_fields) == {
        "source",
        "aliases",
        "display_name",
    }


def test_every_key_of_the_server_says_what_a_change_of_it_does() -> None:
    for name in ServerTable.model_fields:
        assert node_at("ServerTable", (name,)).get("x-effect") or name == "tls"


# The reference


def test_the_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == render(), (
        "run: python -m framework.manifest.reference docs/manifest.md"
    )


def test_every_key_is_in_the_reference() -> None:
    text = render()
    for heading, name in TABLES:
        if heading and name != "DefaultsTable":
            section = text.split(f"## `[{heading}]`")[1].partition("\n## ")[0]
            depth = len(heading.split("."))
            for path in all_keys():
                if path[:depth] == tuple(heading.split(".")) and len(path) > depth:
                    assert f"| `{'.'.join(map(str, path[depth:]))}` |" in section


def test_every_table_is_in_the_reference() -> None:
    assert [heading.partition(".")[0] for heading, _ in TABLES[1:]] == [
        *["server", "access", "engines", "pools", "speculation", "models", "defaults"]
    ]
    assert set(ManifestTable.model_fields) == {"include"} | {h.partition(".")[0] for h, _ in TABLES[1:]}
