"""Models that can be told apart by what they say: one file, and a template of its own for each.

A template ends in one word many times over, and this model goes on with it: every answer is that word as
often as tokens were asked for, and tells which process gave it, and whether any of it is missing or double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

OnExit = Literal["stop", "keep"]

# Each is one token with the blank before it.
WORDS = ("table", "water", "green")
SAID = 40
CHANGED = "green"
"""The model that edits of the manifest are about."""
SETTINGS = """
[speculation.plain]
mode = "off"

[defaults]
context = 1024
threads = 1
load = "at-start"
speculation = "plain"
slot_state = "off"
max_queue = 64
batch = { logical = 256, physical = 256 }
timeout = { load = "5m", queue = "5m", drain = "2m", first_token = "5m", stall = "2m" }
restart = { max_crashes = 1000, max_backoff = "2s" }
"""


@dataclass(frozen=True)
class Manifest:
    """The manifest of a run: `replicas` of the first model, `slots` and `aliases` of the edited one."""

    port: int
    source: Path
    on_exit: OnExit
    replicas: int = 2
    slots: int = 2
    aliases: Sequence[str] = ()
    note: str = ""

    @property
    def text(self) -> str:
        """As it stands in the file."""
        head = f'# {self.note}\n[server]\nlisten = "127.0.0.1:{self.port}"\non_exit = "{self.on_exit}"\n'
        return head + SETTINGS + "".join(self._table(word) for word in WORDS)

    def _table(self, word: str) -> str:
        lines = [f'[models.{word}]\nsource = "{self.source}"\ntemplate = "file:{word}.jinja"']
        if word == CHANGED:
            lines += [f"slots = {self.slots}", f"aliases = {list(self.aliases)!r}"]
        else:
            lines.append(f"slots = 2\nreplicas = {self.replicas if word == WORDS[0] else 1}")
        return "\n" + "\n".join(lines) + "\n"


def write_templates(folder: Path) -> None:
    """What makes the models differ, beside the manifest."""
    for word in WORDS:
        said = " ".join([word] * SAID)
        asked = "{%- for message in messages %}{{ message.content }}{% endfor %}"
        (folder / f"{word}.jinja").write_text(f"{asked}: {said}", encoding="utf-8")
