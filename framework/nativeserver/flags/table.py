"""All flags: by group for help and reference page, by spelling for the parser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from framework.nativeserver.flags import (
    cache,
    chat,
    context,
    depth,
    device,
    drafters,
    log,
    loop_guard,
    model,
    sampling,
    server,
    speculation,
    without_effect,
)
from framework.nativeserver.flags.flag import Flag

HELP, VERSION, LIST_DEVICES = "help", "version", "list-devices"


def _action(names: str, constant: str, text: str) -> Flag:
    return Flag(tuple(names.split()), text, "line.action", role="action", constant=constant)


@dataclass(frozen=True)
class Section:
    """A group under its heading."""

    title: str
    flags: tuple[Flag, ...]


ACTIONS = (
    _action("-h --help --usage", HELP, "print this text and exit"),
    _action("--version", VERSION, "print the version and exit"),
    _action("--list-devices", LIST_DEVICES, "print the names of the devices and exit"),
)

SECTIONS: tuple[Section, ...] = (
    Section("general", ACTIONS),
    Section("model", model.FLAGS),
    Section("context", context.FLAGS),
    Section("devices", device.FLAGS),
    Section("threads", device.THREADS),
    Section("cache", cache.FLAGS),
    Section("sampling", sampling.FLAGS),
    Section("chat", chat.FLAGS),
    Section("server", server.FLAGS),
    Section("log", log.FLAGS),
    Section("speculation", speculation.FLAGS),
    Section("draft model", drafters.MODEL),
    Section("n-grams", drafters.NGRAMS),
    Section("depth of drafts", depth.FLAGS),
    Section("loop guard", loop_guard.FLAGS),
    Section("accepted without effect", without_effect.IGNORED),
    Section("removed", without_effect.REMOVED),
)
"""What the help text lists."""

ALL: tuple[Flag, ...] = (*(flag for section in SECTIONS for flag in section.flags), *without_effect.REFUSED)

BY_SPELLING: Mapping[str, Flag] = {spelling: flag for flag in ALL for spelling in flag.spellings}
