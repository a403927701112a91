"""References of a JSON schema: only those that point into the schema itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from framework.chat.schema.visitor import SchemaError


def resolve(root: Any, reference: Any, path: str) -> Any:
    """What a JSON pointer like `#/$defs/node` points to."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise SchemaError(path, f"the reference {reference!r:.80} does not point into this schema (#/...)")
    node = root
    for part in reference.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and len(key) < 7 and int(key) < len(node):
            node = node[int(key)]
        else:
            raise SchemaError(path, f"the reference {reference!r:.80} points to nothing")
    return node
