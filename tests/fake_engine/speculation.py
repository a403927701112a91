"""What comes of the speculation flags of a line: a refusal, an end, or slots that draft or do not (15 §3)."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fake_engine import eras
from tests.fake_engine.command_line import TYPES, known_flags, refuse
from tests.fake_engine.script import Script

Log = Callable[[str, str], None]
DRAFTER = "--model-draft"
FOREIGN = (
    "load_model: draft model vocab type must match target model to use speculation but vocab_type_dft = 1"
    " while vocab_type_tgt = 2",
    "load_model: the target and draft vocabs are not compatible",
    "load_model: failed to initialize speculative decoding context: no implementation",
)


def types(options: Mapping[str, str], name: eras.Name) -> tuple[str, ...]:
    """Types in force; ends the process for one that the era does not know."""
    era = eras.ERAS[name]
    found: list[str] = ["ngram-mod"] if "--spec-default" in options else []
    for value in options.get(TYPES, "").split():
        parts = [value.partition(":")[0]] if era.is_own_text else value.split(",")
        if not era.adds_types and len(parts) > 1:
            refuse(era.unknown_type.format(value))
        for part in parts:
            if part not in known_types(name):
                refuse(era.unknown_type.format(part))
        # Inside one value `none` switches the rest of it off; between values nothing does.
        found += [] if parts[0] == "none" else parts
    if not found and era.drafts_by_itself and DRAFTER in options:
        found = ["draft-simple"]
    return tuple(found)


def known_types(name: eras.Name) -> frozenset[str]:
    """Words that the help of an era lists as types."""
    flag = known_flags(name).get(TYPES)
    return frozenset() if flag is None else frozenset(re.findall(r"[a-z][a-z0-9-]+", flag.text))


def can_draft(options: Mapping[str, str], script: Script, log: Log) -> bool:
    """Whether slots will be able to draft; ends the process where the real build ends (15 §3)."""
    wanted = types(options, script.era)
    drafter = options.get(DRAFTER)
    if drafter is not None and wanted and not Path(drafter).is_file():
        log(f"srv    load_model: failed to load draft model, '{drafter}'", "E")
        raise SystemExit(1)
    if {"mtp", "draft-mtp"}.intersection(wanted) and not script.has_head and drafter is None:
        log(
            "srv    load_model: [spec] failed to measure MTP context memory: failed to create llama_context",
            "W",
        )
        log("llama_init_from_model: context type MTP requested but model doesn't contain MTP layers", "W")
        log("srv    load_model: failed to create MTP context", "E")
        raise SystemExit(1)
    if "draft-simple" in wanted and drafter is None:
        os.kill(os.getpid(), signal.SIGSEGV)
    return any(_works(one, drafter, script, log) for one in wanted)


def _works(one: str, drafter: str | None, script: Script, log: Log) -> bool:
    if one.startswith("ngram-") or one == "suffix":
        return True
    if one in ("mtp", "draft-mtp") and drafter is None:
        return True
    if drafter is not None and script.foreign_drafter:
        for line in FOREIGN:
            log(f"srv    {line}", "W" if "must match" in line else "E")
        return False
    return drafter is not None
