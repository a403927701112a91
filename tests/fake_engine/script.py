"""What a fake engine is told to do, and the record of what it was asked.

Read once per start from the JSON file named by FAKE_SCRIPT and, over it, from variables `FAKE_<FIELD>` with
JSON values. Beside the file lie `<file>.starts` and `<file>.requests`, one JSON object a line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from tests.fake_engine.eras import ERAS, Name

Help = Literal[Name, "empty", "fails", "hangs"]


@dataclass(frozen=True)
class Fault:
    """An end that depends on the line, as that of a build which breaks on one setting.

    A setting is a flag, or a flag and its value as they stand on the line: `--fit on`.
    """

    on: tuple[str, ...] = ()
    """Settings that must all be on the line; also `NAME=value` of the environment."""
    off: tuple[str, ...] = ()
    """Settings of which none may be."""
    stderr: tuple[str, ...] = ()
    exit_code: int | None = None
    exit_signal: str | None = None
    at_request: int = 0
    """It happens at this generation, counted from 1; 0 is before the model is loaded."""
    after_s: float = 0.0

    def applies(self, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
        """Whether a start with this line meets it."""
        line = f" {' '.join(argv)} "

        def is_set(setting: str) -> bool:
            name, equals, value = setting.partition("=")
            known = bool(equals) and not name.startswith("-")
            return environ.get(name) == value if known else f" {setting} " in line

        return all(map(is_set, self.on)) and not any(map(is_set, self.off))


@dataclass(frozen=True)
class Script:
    """What this engine does. Without arguments it is a healthy build b10068 that answers at once."""

    load_s: float = 0.0
    """Seconds of 503 before the server is healthy; negative: for ever."""
    exit_code: int | None = None
    exit_signal: str | None = None
    """End with this code, or by killing itself with this signal, `exit_after_s` seconds after the start."""
    exit_after_s: float = 0.0
    faulty_starts: int | None = None
    """The endings above happen only in the first so many starts; None: in all."""
    stderr: tuple[str, ...] = ()
    """Lines printed at the start, after the one that names the model."""
    flood_lines: int = 0
    flood_line_bytes: int = 200
    ignore_sigterm: bool = False
    grandchild: bool = False
    """Leave a process behind that inherits the listening socket and the output pipe."""
    hang: tuple[str, ...] = ()
    """Paths that are accepted and never answered."""
    goes_deaf_after_s: float = -1.0
    """So long after it is loaded it takes connections and answers none any more; negative: never."""
    works_deaf: bool = False
    """And takes all of a core meanwhile."""
    busy_while_silent: bool = False
    """It takes a core until the first token of a stream."""
    die_at_request: int | None = None
    """SIGKILL itself in the middle of this generation request, counted from 1."""
    port_outlives_s: float = 0.0
    """How long before that the request's connection is closed already, while the port takes new ones."""
    keeps_lost_clients: bool = False
    """A client that leaves in the middle of a stream leaves its slot busy for ever."""
    cut_at_token: int | None = None
    """Drop the connection after so many streamed tokens."""
    fail_status: int | None = None
    """Answer generation requests with this status and an error object."""
    model_path: str | None = None
    """What `/props` names instead of the model on the command line."""
    context: int | None = None
    """Tokens per slot that `/props` reports instead of what was asked."""
    reject_flags: tuple[str, ...] = ()
    """Flags that this build does not know."""
    help: Help = "new"
    """The era of the build (`tests.fake_engine.eras`; `new` is b10068), or how its help fails; `fails` has
    the text of b10068 and exit status 1."""
    version: str | None = None
    """What `--version` says; None is what builds of its era say."""
    faults: tuple[Fault, ...] = ()
    """Ends that depend on the line; the first that applies is met."""
    has_head: bool = True
    """The model can draft by itself (MTP)."""
    hears: bool = False
    """It takes sound, by `/props`; pictures it takes with a projector."""
    tells_drafting: bool = True
    """`/slots` says whether a slot can draft; a build may have no such field."""
    foreign_drafter: bool = False
    """Every drafter has another vocabulary than the model."""
    devices: tuple[str, ...] = ()
    """Lines of `--list-devices` below the heading, such as `Vulkan0: llvmpipe (2048 MiB, 2048 MiB free)`."""
    card_mib: float = 0.0
    """Weights that a start says it put on the first of them; 0 leaves it unsaid how large buffers are."""
    lost_devices: Literal["", "unseen", "unused"] = ""
    """Although devices are listed, a start does not see them, or sees them and puts nothing there."""
    tokens: int = 8
    token_interval_s: float = 0.0
    first_token_s: float = 0.0
    """Time between the headers and the first token."""
    token_ms: float = 0.125
    """What timings say of each token where nothing was drafted."""
    drafting_token_ms: float = 0.125
    """The same where something was."""
    drafted: int = 0
    """Tokens drafted for each answer, while slots can draft; 0 is none, so that timings do not say."""
    accepted: int = 0
    slot_bytes: int = 1000
    """Size of the file of a saved slot."""
    slot_faults: Mapping[str, Literal["refuses", "hangs up", "babbles"]] = field(default_factory=dict)
    """What happens instead of an answer to an action on a slot, such as `save 0`. A file was written then."""

    @property
    def era(self) -> Name:
        """The era of the build, also where its help fails."""
        return next((name for name in ERAS if name == self.help), "new")

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Script:
        """The script in force. An unknown name ends the program: a typo must not look like a healthy run."""
        values: dict[str, Any] = {}
        if path := environ.get("FAKE_SCRIPT"):
            values.update(json.loads(Path(path).read_text(encoding="utf-8")))
        for name, value in environ.items():
            if name.startswith("FAKE_") and name != "FAKE_SCRIPT":
                values[name.removeprefix("FAKE_").lower()] = json.loads(value)
        if unknown := values.keys() - {item.name for item in fields(cls)}:
            raise SystemExit(f"fake engine: no such fault: {', '.join(sorted(unknown))}")
        values["faults"] = [Fault(**_frozen(fault)) for fault in values.get("faults", ())]
        return cls(**_frozen(values))


def _frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def record(kind: Literal["starts", "requests"], value: Mapping[str, Any]) -> int:
    """Append a line to the record of that kind; returns its number of lines (1 without a script file)."""
    script = os.environ.get("FAKE_SCRIPT")
    if script is None:
        return 1
    path = Path(f"{script}.{kind}")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
    return len(path.read_text(encoding="utf-8").splitlines())
