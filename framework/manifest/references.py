"""Names that tables use for each other (01 §2.3).

They must exist, and no client's name may mean two models. Called by `load.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from framework.manifest.addresses import is_loopback
from framework.manifest.findings import Findings, Place
from framework.manifest.key_paths import quoted_key
from framework.manifest.origins import EVERY_ORIGIN
from framework.manifest.schema_model import ModelTable
from framework.manifest.spec_modes import ACCEPTED
from framework.manifest.suggest import nearest
from framework.manifest.tables import Entry, Tables
from framework.values.manifest import Listener

ALL_MODELS = "*"
REFERENCES = (("engine", "engines"), ("pool", "pools"), ("speculation", "speculation"))
"""Key of a model to the kind of table that it names."""
UNKNOWN = {
    "engines": "unknown_engine",
    "pools": "unknown_pool",
    "speculation": "unknown_speculation",
    "models": "unknown_model",
}
"""Kind of table to the code of a problem with a name that means none."""
MOST_LISTED = 20


def check_references(tables: Tables, findings: Findings) -> None:
    """Note every name that means nothing, or two things."""
    owners = _owners_of_names(tables, findings)
    for entry in tables.asking():
        for key, kind in REFERENCES:
            name = getattr(entry.table, key)
            if key in entry.table.model_fields_set and name is not None:
                implied = "default" if kind == "engines" or (kind == "pools" and not tables.pools) else None
                known = [*tables.of_kind(kind), *([implied] if implied else [])]
                _check_name(name, known, entry.place.child(key), kind, findings)
    for access in tables.access.values():
        for index, name in enumerate(access.table.models if "models" not in access.bad_keys else ()):
            if name != ALL_MODELS:
                _check_name(name, owners, access.place.child("models", index), "models", findings)
    _check_somebody_may_ask(tables, findings)
    for entry in tables.asking():
        if entry.table.overflow_to is not None and "overflow_to" in entry.table.model_fields_set:
            _check_name(entry.table.overflow_to, owners, entry.place.child("overflow_to"), "models", findings)
    _check_pools_are_chosen(tables, findings)


def _check_somebody_may_ask(tables: Tables, findings: Findings) -> None:
    """The first access table, made for a scraper perhaps, closes the endpoint to everybody without a key."""
    entries = list(tables.access.values())
    if not entries or not tables.models or any(e.bad_keys or e.table.models for e in entries):
        return
    place = entries[0].place.child("models")
    findings.add(
        "no_key_for_models",
        place.key,
        f"{place.name}: no [access] table may use a model, and without a key nobody gets in once there"
        " is one: every request to a model will be refused",
        allowed='another [access] table, with models = ["*"] or names, for each client',
        severity="warning",
    )


def check_listener(listen: Listener, place: Place, tables: Tables, findings: Findings) -> None:
    """An address that others reach needs keys."""
    if not is_loopback(listen.host) and not tables.access:
        message = f"{place.name} is {listen}, which other machines reach, and there is no [access] table"
        hint = "add [access.NAME] with a key, or listen on 127.0.0.1"
        findings.add(
            "open_listener", place, f"{message}: {hint}", found=str(listen), allowed="a loopback address"
        )


def check_origins(cors: list[str], place: Place, tables: Tables, findings: Findings) -> None:
    """Note an endpoint that every page in every browser of this machine could use without a key."""
    if EVERY_ORIGIN in cors and not tables.access:
        findings.add(
            "open_to_pages",
            place,
            f'{place.name}: with "*" any web page that somebody opens here could use the models, since '
            "there is no [access] table",
            found='"*"',
            allowed="the origins that may call, or [access] tables",
        )


def _check_name(name: str, known: Collection[str], place: Place, kind: str, findings: Findings) -> None:
    if name in known:
        return
    what = f'model or alias "{name}"' if kind == "models" else f"table [{kind}.{quoted_key(name)}]"
    listed = ", ".join(list(known)[:MOST_LISTED]) + (", …" if len(known) > MOST_LISTED else "")
    near = "" if findings.is_full else nearest(name, known)
    findings.add(
        UNKNOWN[kind],
        place,
        f"{place.name}: there is no {what}{_written_as(name, kind)}",
        found=f'"{name}"',
        allowed=listed or f"none is declared: add [{kind}.NAME]",
        suggestion=f'"{near}"' if near else "",
    )


def _written_as(name: str, kind: str) -> str:
    """What to write where a mode stands in place of the name of a policy."""
    word = name.strip().lower()
    if kind != "speculation" or word not in ACCEPTED:
        return ""
    key = quoted_key(word)
    return f'; a mode goes into a table: write [speculation.{key}] with mode = "{word}"'


def _check_pools_are_chosen(tables: Tables, findings: Findings) -> None:
    """With several pools every model says which one."""
    inherited = tables.defaults is not None and tables.defaults.table.pool is not None
    if len(tables.pools) < 2 or inherited or (tables.defaults and "pool" in tables.defaults.bad_keys):
        return
    for entry in tables.models.values():
        if entry.table.pool is None and "pool" not in entry.bad_keys:
            names = ", ".join(tables.pools)
            message = f"{entry.place.name} names no pool, and there are several: {names}"
            findings.add("pool_missing", entry.place.key, message, allowed=names)


def _owners_of_names(tables: Tables, findings: Findings) -> dict[str, Place]:
    """Every name by which clients reach a model, with the place where it is given."""
    owners = {name: entry.place.key for name, entry in tables.models.items()}
    for entry in tables.models.values():
        if "aliases" in entry.bad_keys:
            continue
        for index, alias in enumerate(entry.table.aliases):
            place = entry.place.child("aliases", index)
            if alias in owners:
                _note_collision(alias, entry, place, owners[alias], findings)
            else:
                owners[alias] = place
    return owners


def _note_collision(
    alias: str, entry: Entry[ModelTable], place: Place, first: Place, findings: Findings
) -> None:
    owner = first.path[1]
    if owner == entry.name:
        message = f'{place.name}: "{alias}" is a name of this model already ({first.location})'
    else:
        taken = "the name" if first.at == "key" else "an alias"
        message = (
            f'{place.name}: "{alias}" is {taken} of model "{owner}" ({first.location}), '
            f'so model "{entry.name}" cannot have it too'
        )
    findings.add("name_taken", place, message, found=f'"{alias}"')
