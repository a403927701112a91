"""Every table of the manifest's files, checked on its own against its class.

Called by `load.py`. A table with errors is still read without the keys that have them, so that the checks
between tables see everything else and one run reports all problems (01 §2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from framework.manifest.bad_value import BadValue
from framework.manifest.document import Document
from framework.manifest.findings import Findings, Place, shown
from framework.manifest.key_paths import KeyPath
from framework.manifest.known_keys import meant, table_class
from framework.manifest.schema import NAMED_TABLES, SINGLE_TABLES, ManifestTable
from framework.manifest.schema_engines import EngineTable, PoolTable, SpeculationTable
from framework.manifest.schema_model import DefaultsTable, ModelTable
from framework.manifest.schema_server import AccessTable, ServerTable
from framework.manifest.suggest import nearest
from framework.manifest.table import Table
from framework.manifest.texts import parse_model_name, parse_name
from framework.manifest.translate import NOT_SHOWN, add_errors
from framework.manifest.unavailable import NEVER_TABLES, UNAVAILABLE_TABLES

T = TypeVar("T", bound=Table)
T_co = TypeVar("T_co", bound=Table, covariant=True)
MODEL_ONLY = frozenset(ModelTable.model_fields) - frozenset(DefaultsTable.model_fields)


@dataclass(frozen=True)
class Entry(Generic[T_co]):
    """One table that is written somewhere."""

    kind: str
    name: str
    raw: Mapping[str, Any]
    place: Place
    table: T_co
    bad_paths: frozenset[KeyPath] = frozenset()
    """Keys below the table that have an error; `table` holds the defaults of those in the table itself."""

    @property
    def bad_keys(self) -> set[str]:
        """Keys of the table itself that have an error, or something below them."""
        return {str(path[0]) for path in self.bad_paths if path}


@dataclass
class Tables:
    """All tables of all files. Mappings keep the order of reading."""

    server: Entry[ServerTable] | None = None
    defaults: Entry[DefaultsTable] | None = None
    access: dict[str, Entry[AccessTable]] = field(default_factory=dict)
    engines: dict[str, Entry[EngineTable]] = field(default_factory=dict)
    pools: dict[str, Entry[PoolTable]] = field(default_factory=dict)
    speculation: dict[str, Entry[SpeculationTable]] = field(default_factory=dict)
    models: dict[str, Entry[ModelTable]] = field(default_factory=dict)

    def of_kind(self, kind: str) -> dict[str, Entry[Any]]:
        """The named tables of `[kind.NAME]`."""
        entries: dict[str, Entry[Any]] = getattr(self, kind)
        return entries

    def asking(self) -> tuple[Entry[DefaultsTable], ...]:
        """The tables that ask something of models: `[defaults]` and `[models.NAME]`."""
        own: tuple[Entry[DefaultsTable], ...] = tuple(self.models.values())
        return own if self.defaults is None else (self.defaults, *own)

    def all(self) -> Iterator[Entry[Any]]:
        """Every table that is written."""
        yield from (entry for entry in (self.server, self.defaults) if entry is not None)
        for kind in NAMED_TABLES:
            yield from self.of_kind(kind).values()


def read_tables(documents: Sequence[Document], findings: Findings) -> Tables:
    """Check all tables of the manifest, the first document, and of the files that it includes."""
    tables = Tables()
    main = documents[0]
    for document in documents:
        for key, value in document.data.items():
            place = Place(document, (key,))
            if key in NAMED_TABLES:
                _read_named(key, value, place, tables, findings)
            elif key not in SINGLE_TABLES and key != "include":
                _refuse_unknown(key, value, place, findings)
            elif document is not main:
                message = f"{key} must stand in the main file, not in one that it includes"
                findings.add("include_not_allowed", place.key, message, allowed=", ".join(NAMED_TABLES))
            elif key in SINGLE_TABLES and _is_table(value, place, findings):
                setattr(tables, key, read_table(key, "", value, place, SINGLE_TABLES[key], findings))
    return tables


def read_table(
    kind: str, name: str, raw: dict[str, Any], place: Place, table: type[T], findings: Findings
) -> Entry[T]:
    """Check one table against its class; with errors, what is left of it."""
    bad_paths: set[KeyPath] = set()
    if kind == "defaults":
        bad_paths = _note_model_only(raw, place, findings)
    _note_missing(table, raw, place, findings)
    usable = {key: value for key, value in raw.items() if (key,) not in bad_paths}
    try:
        return Entry(kind, name, raw, place, table.model_validate(usable), frozenset(bad_paths))
    except ValidationError as error:
        bad_paths |= add_errors(error, table, place, findings)
    bad_keys = {path[0] for path in bad_paths if path}
    rest = {key: value for key, value in raw.items() if key not in bad_keys}
    return Entry(kind, name, raw, place, table.model_validate(rest), frozenset(bad_paths))


def _read_named(kind: str, value: Any, place: Place, tables: Tables, findings: Findings) -> None:
    """The tables `[kind.NAME]` of one file."""
    if not isinstance(value, dict):
        meaning = f"[{kind}.NAME]" + (" with a name for each" if isinstance(value, list) else "")
        found = _shown(kind, value)
        message = f"{kind} must be written as tables {meaning}, but is {found}"
        findings.add("wrong_type", place.key, message, found=found, allowed=f"[{kind}.NAME]")
        return
    for name, raw in value.items():
        here = place.child(name)
        known = tables.of_kind(kind).get(name)
        if known is not None:
            message = f"{here.name} is declared twice; it stands first at {known.place.key.location}"
            findings.add("duplicate_name", here.key, message, found=name)
        elif _is_named_well(kind, name, here, findings) and _is_table(raw, here, findings, kind):
            tables.of_kind(kind)[name] = read_table(kind, name, raw, here, NAMED_TABLES[kind], findings)


def _is_named_well(kind: str, name: str, place: Place, findings: Findings) -> bool:
    parse = parse_model_name if kind == "models" else parse_name
    try:
        parse(name)
    except BadValue as bad:
        message = f"{place.name}: the table must have {bad.must_be}"
        findings.add("bad_name", place.key, message, found=shown(name), allowed=bad.must_be)
        return False
    return True


def _is_table(value: Any, place: Place, findings: Findings, kind: str = "") -> bool:
    if isinstance(value, dict):
        return True
    likely = f"[{kind}.NAME]" if kind else f"[{place.name}]"
    known = kind and str(place.path[-1]) in NAMED_TABLES[kind].model_fields
    hint = f"; keys like this one stand below {likely}" if known else ""
    found = _shown(kind, value)
    message = f"{place.name} must be a table {likely}, but is {found}{hint}"
    findings.add("wrong_type", place.key, message, found=found, allowed=likely)
    return False


def _shown(kind: str, value: Any) -> str:
    """A value in the place of a table; below `access` it may be a key."""
    return NOT_SHOWN if kind == "access" else shown(value)


def _refuse_unknown(key: str, value: Any, place: Place, findings: Findings) -> None:
    """A key that no manifest has at its top."""
    if key in UNAVAILABLE_TABLES:
        findings.add("not_available_yet", place.key, f"[{key}]: {UNAVAILABLE_TABLES[key]}", found=key)
        return
    if key in NEVER_TABLES:
        findings.add(
            "unknown_key", place.key, f"[{key}]: {NEVER_TABLES[key]}", found=key, suggestion="include"
        )
        return
    known = ", ".join(ManifestTable.model_fields)
    if findings.is_full:
        findings.add("unknown_key", place.key, f"{place.name} is not a known key")
        return
    near = nearest(key, ManifestTable.model_fields) if isinstance(value, dict | list) else ""
    suggestion = f"[{near}.NAME]" if near in NAMED_TABLES else near or meant(key, ManifestTable, ())
    message = f"{place.name} is not a known key"
    findings.add("unknown_key", place.key, message, found=key, allowed=known, suggestion=suggestion)


def _note_model_only(raw: Mapping[str, Any], place: Place, findings: Findings) -> set[KeyPath]:
    """Keys in `[defaults]` that belong to one model, which is an error."""
    for key in MODEL_ONLY.intersection(raw):
        message = f"defaults.{key} cannot be shared by models: write {key} in [models.NAME]"
        findings.add("not_inherited", place.child(key).key, message, found=key)
    return {(key,) for key in MODEL_ONLY.intersection(raw)}


def _note_missing(table: type[Table], raw: Mapping[str, Any], place: Place, findings: Findings) -> None:
    """Note keys that must be written and are not, in this table and in those below it."""
    for key in table.required:
        if key not in raw:
            spot = place.child(key).key
            meaning = " ".join((table.model_fields[key].description or "").split())
            meaning = meaning.partition(". ")[0].rstrip(".")
            findings.add("missing_key", spot, f"{spot.name} is missing: {meaning}", allowed=meaning)
    for key, inner in _with_required(table):
        value = raw.get(key)
        tables = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, one in tables:
            if isinstance(one, dict):
                spot = place.child(key) if index is None else place.child(key, index)
                _note_missing(inner, one, spot, findings)


@cache
def _with_required(table: type[Table]) -> tuple[tuple[str, type[Table]], ...]:
    """Keys of a table that hold tables with keys that must be written."""
    inner = ((name, table_class(field.annotation)) for name, field in table.model_fields.items())
    return tuple((name, one) for name, one in inner if one is not None and one.required)
