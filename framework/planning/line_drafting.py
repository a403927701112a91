"""What a command line says of drafting, as far as memory depends on it (05 §10). Pure.

Read from the finished line, so that what is reserved is what is launched: there is no second test of whether
anything drafts. Called by line_settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.engines import spec_args
from framework.planning.line_reader import LineReader
from framework.planning.memory.settings import DraftPlan
from framework.values.speculation import MTP_TYPES, drafts_by_model

# Types of n-gram speculation, the flags of their longest draft (the newest spelling last), and what that is
# by default.
NGRAM_DRAFTS: Mapping[str, tuple[tuple[str, ...], int]] = {
    "ngram-mod": (("--draft-max", "--spec-ngram-mod-n-max"), 64),
    "ngram-simple": (("--spec-ngram-simple-size-m",), 48),
    "ngram-map-k": (("--spec-ngram-map-k-size-m",), 48),
    "ngram-map-k4v": (("--spec-ngram-map-k4v-size-m",), 48),
    "ngram-cache": ((), 8),
}
# Logits of more than a batch are never reserved.
LONGEST_DRAFT = 1 << 16
F16 = "f16"
# The native engine's, and as many as it keeps unasked.
COPIES_FLAG, COPIES_VARIABLE = "--spec-rs-snapshots", "SPEC_RS_SNAPSHOTS"
COPIES_UNASKED, MOST_COPIES = 8, 64
BY_A_MODEL = "draft-simple"


def speculations(line: LineReader) -> frozenset[str]:
    """Types of speculation, which add up over all flags; no child is given the variable of types."""
    return frozenset(spec_args.spec_types(line.argv))


def longest_draft(line: LineReader, usual_depth: int) -> int:
    """The longest draft of all types of speculation on the line, tokens."""
    lengths = [0]
    for name in speculations(line):
        if name in NGRAM_DRAFTS:
            flags, usual = NGRAM_DRAFTS[name]
            asked = [line.number((flag,), "") for flag in flags]
            lengths.append(max(0, next((number for number in reversed(asked) if number is not None), usual)))
        elif drafts_by_model(name):
            lengths.append(depth(line, usual_depth))
    return min(max(lengths), LONGEST_DRAFT)


def depth(line: LineReader, usual: int) -> int:
    """Tokens that a head or a drafter drafts at once."""
    asked = spec_args.depth(line.argv, line.env)
    return usual if asked is None else max(0, asked)


def draft_plan(line: LineReader, usual_depth: int, *, keeps_copies: bool) -> DraftPlan | None:
    """A head or a drafter that takes memory; n-grams take none. `keeps_copies`: the engine is one that keeps
    copies of running states for the drafts of a separate model.

    A drafter without any type that uses it counts: builds before b9106 load it all the same, and those from
    b10408 on read its type from its file.
    """
    types, named = speculations(line), spec_args.drafter(line.argv, line.env)
    has_head = not MTP_TYPES.isdisjoint(types)
    if named is None and not has_head:
        return None
    key_type, value_type = spec_args.draft_cache_types(line.argv, line.env)
    return DraftPlan(
        "head" if named is None else "model",
        depth(line, usual_depth),
        key_type or F16,
        value_type or F16,
        on_cpu=named is not None and spec_args.is_drafter_on_cpu(line.argv, line.env),
        copies=_copies(line, usual_depth) if keeps_copies and BY_A_MODEL in types else 0,
    )


def _copies(line: LineReader, usual_depth: int) -> int:
    asked = line.number((COPIES_FLAG,), COPIES_VARIABLE)
    if asked is None:
        return min(COPIES_UNASKED, depth(line, usual_depth))
    return min(MOST_COPIES, max(0, asked))


def drafter_naming(line: LineReader) -> str:
    """What names the drafter, with its value, such as `-md /d.gguf`; empty where nothing does."""
    naming, named = spec_args.drafter_naming(line.argv, line.env), spec_args.drafter(line.argv, line.env)
    if named is None:
        return ""
    return f"{naming} {named}" if naming.startswith("-") else f"{naming}={named}"


def drafter_file(line: LineReader) -> str | None:
    """The drafter's file; None where there is no drafter, or the engine gets it from a hub."""
    named = spec_args.drafter(line.argv, line.env)
    return named if named and spec_args.is_drafter_file(line.argv, line.env) else None
