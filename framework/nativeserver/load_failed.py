"""What ends a start behind the command line, and what may help. Pure; used by process, serving and checks."""

from __future__ import annotations


class LoadFailed(Exception):
    """A stage of loading failed; `code` is its code string (10 §3, table)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def last_line(self) -> str:
        """What the manager classifies by (10 §3.11)."""
        return f"error: load failed [{self.code}]: {self}"


CONTEXT = "context"
SHORTAGE = ("alloc", "out of memory", "outofdevicememory", "outofhostmemory")
"""In the library's errors: it asked for memory and got none."""
REMEDIES = {
    "draft-file-missing": "name a GGUF file that drafts with --model-draft",
    "type-not-built": "this build has no such type; --help lists its types after --spec-type",
}
"""Of drafting, under --spec-strict."""


def load_hint(code: str, message: str) -> str:
    """What to do about a load that the core gave up; empty when nothing is known."""
    text = message.lower()
    if code == CONTEXT and any(word in text for word in SHORTAGE):
        return "; make --ctx-size smaller, or set --cache-type-k and --cache-type-v to q8_0"
    return f"; {REMEDIES[code]}" if code in REMEDIES else ""
