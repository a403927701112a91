"""Names that become part of file names (01 §2.12), and names of instances (07 §1.1)."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote

# Most file systems allow 255 bytes; the rest is left for what is put around a name.
LONGEST_BYTES = 100
DIGEST_HEX = 12


def file_name(name: str) -> str:
    """The name percent-encoded (all but letters, digits, `-`, `_`); a long one ends in a digest."""
    encoded = quote(name, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(encoded) <= LONGEST_BYTES:
        return encoded
    digest = sha256(name.encode()).hexdigest()[:DIGEST_HEX]
    return f"{encoded[: LONGEST_BYTES - DIGEST_HEX - 1]}-{digest}"


def instance_name(model: str, replica: int, generation: int) -> str:
    """`<model>.<replica>@<generation>`, as shown; see `instance_file_name` for paths."""
    return f"{model}.{replica}@{generation}"


def instance_in_file(name: str) -> str:
    """The `instance_file_name` of an instance, given the name that is shown; nonsense for nonsense."""
    replica, _, generation = name.rpartition("@")
    model, _, number = replica.rpartition(".")
    return f"{file_name(model)}.{number}@{generation}"


def instance_file_name(model: str, replica: int, generation: int) -> str:
    """The same, safe as one component of a path."""
    return f"{file_name(model)}.{replica}@{generation}"
