"""One digest for "the same launch" (06 §6.7). Pure; shown and recorded, never part of the comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from framework.engines.redaction import is_secret_name
from framework.values.engine import FileId
from framework.values.plan import Section


def fingerprint(sections: Iterable[Section], env: Mapping[str, str], files: Iterable[FileId]) -> str:
    """SHA-256, in hex, over a line with its port still open, an environment without the key, and the files.

    `files` are the engine's entry, every shard, the projector, the drafter and the adapters, in that order.
    Of variables that sound like secrets only the names count.
    """
    facts = {
        "sections": [[section.name, section.kind, *section.tokens] for section in sections],
        "env": {name: None if is_secret_name(name) else value for name, value in env.items()},
        "files": [[str(file.path), file.size, file.mtime_ns] for file in files],
    }
    # As escapes, so that undecodable bytes in names and paths are no obstacle and stay distinct.
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
