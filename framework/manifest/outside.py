"""What the manifest points at outside itself: key material, template texts, and whether weights are there.

Called by `load.py`. Weights that are missing are a warning: that model is refused at its start, the others
serve (07 §14.2). A missing template or key is an error, because nothing can be built without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from framework.manifest.access_keys import secret_digest
from framework.manifest.document import Unreadable
from framework.manifest.files import Files
from framework.manifest.findings import Findings, Place
from framework.manifest.tables import Tables
from framework.values.manifest import Tls

# A chain of a dozen certificates.
MAX_PEM_BYTES = 2**18
NOT_A_PATH = frozenset({"none", "auto"})


@dataclass(frozen=True)
class Outside:
    """What was found."""

    digests: dict[str, str]
    """Name of the access table to the SHA-256 of its key."""
    templates: dict[str, str]
    """Path of a template as written to its text."""
    tls: Tls | None
    """The certificate of the listener, with the digest of its files."""
    secret_names: tuple[str, ...]
    """Environment variables that hold secrets."""


def read_outside(tables: Tables, files: Files, findings: Findings) -> Outside:
    """Read keys and templates and look for weights; everything that is not there is noted."""
    _note_missing_files(tables, files, findings)
    return Outside(
        digests=_digests(tables, files, findings),
        templates=_templates(tables, files, findings),
        tls=_tls(tables, files, findings),
        secret_names=tuple(_secret_names(tables)),
    )


def _digests(tables: Tables, files: Files, findings: Findings) -> dict[str, str]:
    digests: dict[str, str] = {}
    owners: dict[str, Place] = {}
    for name, entry in tables.access.items():
        if "key" not in entry.table.model_fields_set:
            continue
        place = entry.place.child("key")
        digest = secret_digest(entry.table.key, place, files, findings)
        if digest is None:
            continue
        if digest in owners:
            first = owners[digest]
            message = f"{place.name} is the same key as {first.name} ({first.location})"
            findings.add("key_shared", place, message, allowed="a key of its own")
        owners.setdefault(digest, place)
        digests[name] = digest
    return digests


def _tls(tables: Tables, files: Files, findings: Findings) -> Tls | None:
    table = tables.server.table.tls if tables.server is not None else None
    if tables.server is None or table is None:
        return None
    digest = hashlib.sha256()
    for name, ref in (("certificate", table.certificate), ("key", table.key)):
        place = tables.server.place.child("tls", name)
        try:
            digest.update(files.text(ref.name, MAX_PEM_BYTES).encode())
        except Unreadable as error:
            code = "secret_missing" if error.code == "file_missing" else "secret_unreadable"
            findings.add(
                code, place, f"{place.name}: the file {ref.name} {error}", allowed="a file in PEM form"
            )
    written = (table.certificate.name, table.key.name)
    return Tls(files.absolute(written[0]), files.absolute(written[1]), digest.hexdigest())


def _secret_names(tables: Tables) -> Iterator[str]:
    references = [entry.table.key for entry in tables.access.values()]
    return iter(dict.fromkeys(ref.name for ref in references if ref.kind == "env" and ref.name))


def _templates(tables: Tables, files: Files, findings: Findings) -> dict[str, str]:
    texts: dict[str, str] = {}
    for entry in tables.asking():
        written = entry.table.template
        if written is None or written in texts:
            continue
        try:
            texts[written] = files.template(written)
        except Unreadable as error:
            place = entry.place.child("template")
            code = "template_missing" if error.code == "file_missing" else "template_unreadable"
            findings.add(
                code, place, f"{place.name}: {written} {error}", found=written, allowed="a text file"
            )
    return texts


def _note_missing_files(tables: Tables, files: Files, findings: Findings) -> None:
    for engine in tables.engines.values():
        binary = engine.table.binary
        if "/" in binary:
            _note_if_missing(binary, "file_missing", engine.place.child("binary"), files, findings)
    for model in tables.models.values():
        source = model.table.source.path
        if source is not None:
            _note_if_missing(source, "model_missing", model.place.child("source"), files, findings)
    for policy in tables.speculation.values():
        drafter = policy.table.draft and policy.table.draft.path
        if drafter:
            place = policy.place.child("draft")
            _note_useless_drafter(drafter, place, files, findings)
    for entry in tables.asking():
        projector = entry.table.projector
        if projector is not None and projector not in NOT_A_PATH:
            _note_if_missing(projector, "file_missing", entry.place.child("projector"), files, findings)
        for index, adapter in enumerate(entry.table.adapters):
            if adapter.path:
                place = entry.place.child("adapters", index, "path")
                _note_if_missing(adapter.path, "file_missing", place, files, findings)


def _note_useless_drafter(written: str, place: Place, files: Files, findings: Findings) -> None:
    """A pipe or a device is never opened, and a folder holds several files."""
    fault = "" if "${" in written else files.fault(written)
    if fault:
        findings.add(
            "file_missing",
            place,
            f"{place.name}: {files.canonical(written)} {fault}; models run without this drafter until there"
            " is a file",
            found=f'"{written}"',
            allowed="an existing file",
            severity="warning",
        )


def _note_if_missing(written: str, code: str, place: Place, files: Files, findings: Findings) -> None:
    if "${" not in written and not files.exists(written):
        findings.add(
            code,
            place,
            f"{place.name}: there is no file {files.canonical(written)}; the model cannot start until it"
            " is there",
            found=f'"{written}"',
            allowed="an existing file",
            severity="warning",
        )
