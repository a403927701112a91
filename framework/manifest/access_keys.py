"""Values behind `env:NAME` and `file:PATH`, taken when the manifest is read; only a digest leaves (01 §1).

No message repeats what was found.
"""

from __future__ import annotations

import hashlib

from framework.manifest.document import Unreadable
from framework.manifest.files import Files
from framework.manifest.findings import Findings, Place
from framework.manifest.texts import SecretRef

# A key or a token.
MAX_SECRET_BYTES = 2**16


def secret_digest(ref: SecretRef, place: Place, files: Files, findings: Findings) -> str | None:
    """SHA-256 in hex of the secret without surrounding blanks, or None after noting why there is none."""
    if ref.kind == "sha256":
        return ref.name
    read = _from_environment if ref.kind == "env" else _from_file
    value = read(ref, place, files, findings)
    if value is None:
        return None
    if not value.strip():
        where = f"the variable {ref.name}" if ref.kind == "env" else ref.name
        findings.add("secret_empty", place, f"{place.name}: {where} is empty", allowed="a key")
        return None
    return hashlib.sha256(value.strip().encode()).hexdigest()


def _from_environment(ref: SecretRef, place: Place, files: Files, findings: Findings) -> str | None:
    value = files.environ.get(ref.name)
    if value is None:
        message = f"{place.name}: the environment variable {ref.name} is not set"
        findings.add(
            "secret_missing",
            place,
            message,
            found="nothing",
            allowed=f"export {ref.name}=… where `paddock up` runs, then start it again",
        )
    return value


def _from_file(ref: SecretRef, place: Place, files: Files, findings: Findings) -> str | None:
    try:
        return files.text(ref.name, MAX_SECRET_BYTES)
    except Unreadable as error:
        code = "secret_missing" if error.code == "file_missing" else "secret_unreadable"
        findings.add(code, place, f"{place.name}: the file {ref.name} {error}", allowed="a file with one key")
        return None
