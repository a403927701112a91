"""Writes docs/manifest.md from the classes that read the manifest, so that the two cannot differ.

`python -m framework.manifest.reference docs/manifest.md`; a test compares the file with `render()`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from framework.manifest.allowed import allowed_text
from framework.manifest.json_schema import manifest_schema, resolved
from framework.values.request import LiveSettings, ModelRequest

INTRO = """# The manifest

<!-- Written by `python -m framework.manifest.reference docs/manifest.md`: edit the classes instead. -->

`serve.toml` says what is served. `paddock up` follows the file while it runs; `paddock check` names every
problem with its line and column; `paddock check --schema` prints a JSON Schema, with which editors complete
the file.

- **Sizes** are a number and one of `KiB MiB GiB KB MB GB`, **durations** a number and one of `ms s m h d`,
  both in quotes: `"64MiB"`, `"10m"`. A number without its unit is an error.
- **Paths** are relative to the manifest's directory; `~/` is the home directory.
- **Secrets** are references: `env:NAME` or `file:PATH`, never the secret itself.
- **Names** of models, pools, engines and policies are any text of 1 to 200 characters without control
  characters, in quotes where TOML wants them: `[models."org/m:Q4_K_M"]`. They are compared exactly. A model's
  name is more than dots, which addresses cannot hold.
- Nothing is substituted: `${NAME}` is an error.
- An unknown key is an error, and so is one whose feature is not in this version; nothing is ever ignored.
- `[server]` can be overridden: flags of `paddock up` come before `PADDOCK_` variables, those before the file.

The column *Change* says what an edit of the key does to what is running: `live` reaches it at once, `restart`
replaces the processes of the models concerned while their requests finish, `next up` waits for the next
`paddock up`, `next plan` for the next start of a model.
"""

TABLES = (
    ("", "ManifestTable"),
    ("server", "ServerTable"),
    ("access.NAME", "AccessTable"),
    ("engines.NAME", "EngineTable"),
    ("pools.NAME", "PoolTable"),
    ("speculation.NAME", "SpeculationTable"),
    ("models.NAME", "ModelTable"),
    ("defaults", "DefaultsTable"),
)
"""Headings in reading order, and the class behind each."""


def render() -> str:
    """The whole reference as Markdown."""
    schema = manifest_schema()
    parts = [INTRO]
    for heading, name in TABLES:
        table = schema if name == "ManifestTable" else schema["$defs"][name]
        if name == "DefaultsTable":
            rows = ["All keys of `[models.NAME]` but `source`, `aliases` and `display_name`."]
        else:
            rows = ["| Key | Takes | Default | Change | Meaning |", "|---|---|---|---|---|"]
            rows += [
                _row(*found) for found in _keys(table, "", model=name == "ModelTable", deep=bool(heading))
            ]
        title = f"## `[{heading}]`" if heading else "## Top level"
        parts.append("\n".join([title, "", table["description"], "", *rows]) + "\n")
    return "\n".join(parts)


def _keys(
    table: dict[str, Any], prefix: str, *, model: bool, deep: bool
) -> Iterator[tuple[str, dict[str, Any], bool, str]]:
    """Key, its node, whether it must be written, and the effect of a change.

    Keys that must be written come first; `deep`: those of a table inside follow its key.
    """
    effects = _effects() if model else {}
    required = table.get("required", ())
    for key in sorted(table["properties"], key=lambda one: one not in required):
        node, name = table["properties"][key], prefix + key
        effect = effects.get(name) or effects.get(prefix.rstrip(".")) or node.get("x-effect", "")
        yield name, node, key in required, effect
        inner = _table_in(node) if deep else None
        if inner is not None:
            yield from _keys(inner, f"{name}.", model=model, deep=deep)


def _table_in(node: dict[str, Any]) -> dict[str, Any] | None:
    """The table that a key holds, itself or in a list, when it is not one of the top-level kinds."""
    node = resolved(node)
    variants = [resolved(one) for one in node.get("anyOf", [node])]
    variants += [resolved(one["items"]) for one in variants if "items" in one]
    return next((one for one in variants if "properties" in one and "$schema" not in one), None)


def _effects() -> dict[str, str]:
    """Manifest name to effect, as the fields of a model request declare it."""
    fields = (*dataclasses.fields(ModelRequest), *dataclasses.fields(LiveSettings))
    return {one.metadata["manifest"]: one.metadata["effect"] for one in fields if one.metadata}


def _row(name: str, node: dict[str, Any], required: bool, effect: str) -> str:
    default = f"`{_toml(node['default'])}`" if "default" in node and not required else "-"
    cells = (
        f"`{name}`",
        allowed_text(node),
        "required" if required else default,
        effect or "-",
        node.get("description", ""),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _toml(value: Any) -> str:
    return "{}" if value == {} else json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
