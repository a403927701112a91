"""What the output and the line of a start that failed say about its cause (06 §12.3, 15 §1, §3, §7). Pure.

Called by runtime.rungs, which asks what may help, and by runtime.failures, which gives the cause a name.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from framework.engines.args import values_of
from framework.engines.spec_args import TYPE_FLAG, drafter, spec_types
from framework.runtime.allocation import too_large_tensor, was_short_of_memory
from framework.runtime.remote_devices import missing_servers
from framework.runtime.start_end import StartEnd
from framework.values.plain_text import brief
from framework.values.plan import LaunchPlan
from framework.values.speculation import MTP_TYPES, needs_drafter

# The parser says nothing in front of these words; a time and a level may stand there.
SAID = r"^(?:\d[\d.]* [A-Z] )?(?:error: *)?"
FLAG = re.compile(
    rf"{SAID}(?:invalid argument:? |unknown argument:? |error while handling argument [\"']) *(-[-\w]+)",
    re.IGNORECASE,
)
VARIABLE = re.compile(
    rf"{SAID}error while handling environment variable [\"'](\w{{1,100}})[\"']", re.IGNORECASE
)
NO_PORT = ("couldn't bind", "address already in use")
NO_TENSOR_SPLIT = "split_mode_tensor not implemented"
V_CACHE_NEEDS_FLASH = "v cache quantization requires flash_attn"
# The first of the words that any line has is quoted, so the most telling stand first.
DRAFTING_WORDS = (
    "doesn't contain mtp layers",
    "unknown speculative type",
    "unknown speculative decoding type",
    "failed to load draft model",
    "failed to initialize speculative",
    "failed to create mtp context",
    "failed to create draft context",
    "mtp context memory",
    "draft model memory",
)
PROJECTOR_WORDS = (
    "unknown projector type",
    "unsupported projector",
    "unsupported mmproj",
    "failed to load clip model",
    "failed to load multimodal model",
    "failed to get memory usage of mmproj",
)
NOT_KNOWN = ("unknown", "unsupported", "not supported")
# What is wrong with the file itself, or with another one on the line, is so on every device.
FILE_WORDS = (
    "failed to open gguf file",
    "invalid magic characters",
    "failed to read magic",
    "failed to read key-value pairs",
    "model is corrupted or incomplete",
    "failed to load lora adapter",
    "chat template is not supported",
)
# What MSVC's abort ends with.
ABORTED = 3
TENSOR = "tensor"
SPLIT_FLAGS = ("-sm", "--split-mode")
SPLIT_VARIABLE = "LLAMA_ARG_SPLIT_MODE"


def rejected_flag(end: StartEnd) -> str | None:
    """The flag the engine refused, when that is why it ended.

    Without its server a device has no name to the engine, which is no fault of `--device`.
    """
    found = _rejected(end, FLAG)
    return found if found is None or not missing_servers(end.plan, end.lines) else None


def rejected_variable(end: StartEnd) -> str | None:
    """The environment variable the engine refused, when that is why it ended."""
    return _rejected(end, VARIABLE)


def _rejected(end: StartEnd, pattern: re.Pattern[str]) -> str | None:
    """What was refused. A parser that refuses something ends by itself, before any model file is read."""
    if end.outcome != "exited" or not end.exit_code or end.is_hard:
        return None
    found = (pattern.match(line) for line in end.told_of_line)
    return next((match.group(1) for match in found if match), None)


def holds_flag(tokens: Collection[str], flag: str) -> bool:
    """Whether one of the tokens is the flag, or the flag and more in one piece, which no engine takes."""
    return any(re.split(r"[\s=]", token.strip(), maxsplit=1)[0] == flag for token in tokens)


def port_was_taken(end: StartEnd) -> bool:
    """Whether the port went to somebody else between the reservation and the start (rung P).

    Engines take their port before they look at any model file.
    """
    if end.outcome == "port_taken":
        return True
    return bool(end.exit_code) and any(word in line.lower() for line in end.told_of_line for word in NO_PORT)


def aborted_at_split(end: StartEnd) -> bool:
    """Whether it died because its tensors cannot be divided (06 §12.3). Only its abort may say so."""
    if not end.is_hard and end.exit_code != ABORTED:
        return False
    text = end.told_of_abort
    return "split_axis" in text and ("ggml_assert" in text or "ggml_abort" in text)


def blames_drafting(end: StartEnd) -> bool:
    """Whether it says that what was to draft could not be set up."""
    return end.says(*DRAFTING_WORDS)


def blames_projector(end: StartEnd) -> bool:
    """Whether it says that the projector could not be loaded."""
    return bool(said_of_projector(end))


def said_of_projector(end: StartEnd) -> str:
    """The line that blames the projector; empty when none does."""
    if found := end.line_with(*PROJECTOR_WORDS):
        return found
    told = ((line.lower(), whole) for line, whole in end.pairs)
    blaming = (whole for line, whole in told if "clip" in line and "projector" in line and _says_no(line))
    return next(map(brief, blaming), "")


def _says_no(line: str) -> bool:
    return any(no in line for no in NOT_KNOWN)


def blames_memory(end: StartEnd) -> bool:
    """Whether it says that memory was missing."""
    return was_short_of_memory(end.text) or too_large_tensor(end.told) is not None


def is_diagnosed(end: StartEnd) -> bool:
    """Whether it says something that a projector has nothing to do with (06 §12.3)."""
    known = end.unknown_architecture is not None or end.says(NO_TENSOR_SPLIT, *FILE_WORDS)
    return known or blames_memory(end)


def is_same_everywhere(end: StartEnd) -> bool:
    """Whether the cause is one that another placement cannot change (06 §12.3)."""
    fixed = is_diagnosed(end) or end.says(V_CACHE_NEEDS_FLASH)
    return fixed or blames_projector(end) or blames_drafting(end)


def divides_tensors(plan: LaunchPlan) -> bool:
    """Whether the line divides tensors over devices, the user's own flags included."""
    modes = list(values_of(plan.argv, SPLIT_FLAGS))
    return (modes[-1] if modes else plan.env.get(SPLIT_VARIABLE, "")) == TENSOR


def drafting_types(plan: LaunchPlan) -> tuple[str, ...]:
    """Types of speculation on the line, the user's own included."""
    return spec_types(plan.argv)


def drafts_with_head(plan: LaunchPlan) -> bool:
    """Whether MTP is in play (06 §12.7)."""
    return not MTP_TYPES.isdisjoint(drafting_types(plan))


def drafts_with_model(plan: LaunchPlan) -> bool:
    """Whether a head or a separate model is to draft. Builds without types draft with any drafter named."""
    if drafts_with_head(plan) or needs_drafter(drafting_types(plan)):
        return True
    has_types = plan.caps.has(TYPE_FLAG) or not plan.caps.conclusive
    return not has_types and drafter(plan.argv, plan.env) is not None
