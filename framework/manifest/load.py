"""The way into the package: a manifest file to a `Manifest` value, or to every problem that it has.

Called by app, commands and the API. Nothing that is wrong with a file raises; a manifest without errors is
complete and needs no further checks. Steps, in order: (1) read the file and those it includes, (2) check each
table on its own, (3) overrides, (4) refusals, (5) names that tables use for each other, (6) combinations,
(7) files and secrets, (8) build. Each step notes what it finds and the next one goes on with the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framework.manifest.build import build_manifest
from framework.manifest.combinations import check_engine_args, check_model
from framework.manifest.document import Document, label_of, parse_document, read_document
from framework.manifest.environment import check_environment
from framework.manifest.files import Files
from framework.manifest.findings import Findings
from framework.manifest.includes import patterns_of, read_included
from framework.manifest.outside import read_outside
from framework.manifest.overrides import read_overrides
from framework.manifest.placeholders import note_placeholders
from framework.manifest.policies import check_policies
from framework.manifest.pools import check_pools
from framework.manifest.references import check_listener, check_origins, check_references
from framework.manifest.refusals import note_refusals
from framework.manifest.schema_model import DefaultsTable, ModelTable
from framework.manifest.schema_server import ServerTable
from framework.manifest.tables import Tables, read_tables
from framework.values.manifest import Manifest
from framework.values.override import Override
from framework.values.problem import Problem

NOTHING_EDITED: Mapping[str, bytes] = {}


@dataclass(frozen=True)
class Loaded:
    """What reading a manifest came to. `manifest` is None exactly when a problem is an error."""

    manifest: Manifest | None
    problems: tuple[Problem, ...]
    sha256: str
    """Over all files that were read, also when the manifest is bad."""
    files: tuple[Path, ...]
    """Everything that was looked at: the manifest first, whether it exists or not."""
    include_patterns: tuple[str, ...] = ()
    """Patterns of `include`, below the manifest's folder; files may come to match them."""
    sources: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """What was read of each TOML file, under the name that problems give it."""


def load_manifest(
    path: Path, environ: Mapping[str, str], *, overrides: Mapping[str, Override] | None = None
) -> Loaded:
    """Read a manifest. `environ` gives secrets and `HOME`; `overrides` are `[server]` keys."""
    findings = Findings()
    main = read_document(path.absolute(), label_of(path), findings)
    return _load(main, environ, overrides or {}, findings)


def check_text(
    path: Path,
    text: str,
    environ: Mapping[str, str],
    *,
    overrides: Mapping[str, Override] | None = None,
    file: str | None = None,
) -> Loaded:
    """The same with `text` in place of what a file holds now; for previews of an edit.

    `file` names an included one as problems do; None is the manifest itself.
    """
    findings = Findings()
    # A lone surrogate is then found by the decoder, with its place.
    raw = text.encode("utf-8", "surrogatepass")
    label = label_of(path)
    if file in (None, label):
        main = parse_document(path.absolute(), label, raw, findings)
        return _load(main, environ, overrides or {}, findings)
    main = read_document(path.absolute(), label, findings)
    return _load(main, environ, overrides or {}, findings, {file: raw})


@dataclass(frozen=True)
class ManifestReader:
    """One manifest, to be loaded again and again."""

    path: Path
    environ: Mapping[str, str] = field(repr=False)
    overrides: Mapping[str, Override]

    def __call__(self, text: str | None = None, file: str | None = None) -> Loaded:
        """As it is on disk, or with a text in place of one of its files."""
        if text is None:
            return load_manifest(self.path, self.environ, overrides=self.overrides)
        return check_text(self.path, text, self.environ, overrides=self.overrides, file=file)


def _load(
    main: Document,
    environ: Mapping[str, str],
    overrides: Mapping[str, Override],
    findings: Findings,
    edited: Mapping[str, bytes] = NOTHING_EDITED,
) -> Loaded:
    if findings.has_errors and not main.data:
        problems = findings.in_order([main.label])
        return Loaded(None, problems, _digest([main.raw]), (main.path,), sources={main.label: main.raw})
    patterns = patterns_of(main, findings)  # (1)
    documents = (main, *read_included(main, patterns, findings, edited))
    for document in documents:
        note_placeholders(document, findings)
    tables = read_tables(documents, findings)  # (2)
    server = _server(tables, overrides, findings)  # (3), (4)
    check_references(tables, findings)  # (5)
    check_engine_args(tables, findings)  # (6)
    check_policies(tables, findings)
    models = _merged(tables, findings)
    check_environment(tables, models, findings)
    files = Files(main.path.parent, environ)
    check_pools(tables, models, files, findings)
    outside = read_outside(tables, files, findings)  # (7)
    read = (*(document.path for document in documents), *dict.fromkeys(files.read))
    texts = (text.encode() for text in outside.templates.values())
    sha256 = _digest([*(document.raw for document in documents), *texts])
    globs = tuple(pattern for pattern, _ in patterns)
    manifest = None
    if not findings.has_errors:
        base = Manifest(main.path, sha256, read, globs)
        manifest = build_manifest(base, server, tables, models, files, outside)  # (8)
    sources = {document.label: document.raw for document in documents}
    return Loaded(manifest, findings.in_order([*sources]), sha256, read, globs, sources)


def _server(tables: Tables, overrides: Mapping[str, Override], findings: Findings) -> ServerTable:
    """`[server]` under its overrides, and all refusals, which may concern either."""
    given = read_overrides(overrides, findings)
    note_refusals((*tables.all(), *given.values()), findings)
    server = ServerTable() if tables.server is None else tables.server.table
    for entry in given.values():
        server = server.below(entry.table)
    owner = given.get("listen", tables.server)
    if owner is not None:
        check_listener(server.listen, owner.place.child("listen"), tables, findings)
    pages = given.get("cors", tables.server)
    if pages is not None:
        check_origins(server.cors, pages.place.child("cors"), tables, findings)
    return server


def _merged(tables: Tables, findings: Findings) -> dict[str, ModelTable]:
    """Each model with what it inherits, its combinations checked."""
    defaults = tables.defaults.table if tables.defaults else DefaultsTable()
    models = {}
    for name, entry in tables.models.items():
        models[name] = defaults.below(entry.table)
        check_model(models[name], entry, tables.defaults, findings)
    return models


def _digest(texts: Iterable[bytes]) -> str:
    """Of one file it is the SHA-256 of its bytes; several are kept apart by a byte that no text holds."""
    return hashlib.sha256(b"\0".join(texts)).hexdigest()
