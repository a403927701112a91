"""The outcomes of a decision as flags of a build (05 §7, §8). Pure; called by decide.

Flags are those that the build was seen to have. Each block holds at most one of `--spec-type` and
`--spec-default`, and a drafter is never on the line without a type, which would load it for nothing.
"""

from __future__ import annotations

from typing import Literal

from framework.engines.spec_args import DEFAULT_FLAG, TYPE_FLAG
from framework.planning.speculation import reasons
from framework.planning.speculation.native import MOST_ADAPTED, controller_flags
from framework.values.engine import Capabilities
from framework.values.plan import SpecDecision
from framework.values.reason import Reason
from framework.values.request import SpecPolicy
from framework.values.speculation import DrafterKind, SpecInputs

Notes = tuple[Reason, ...]
DepthSource = Literal["policy", "default"]
USUAL_DEPTH_FLAG, USUAL_DRAFTER_FLAG = "--spec-draft-n-max", "--model-draft"
LEGACY_DEPTH_FLAG = "--draft-max"
# 05 §8.2: measured; deeper drafts lose on prose, where few are accepted.
ACCELERATED_DEPTH, PLAIN_DEPTH = 2, 3
# How the flags for lengths of n-grams begin in every build.
LENGTH_FLAGS = "--spec-ngram-"
NGRAM, NGRAM_SIMPLE = "ngram-mod", "ngram-simple"
HEAD = "draft-mtp"
# Type of each drafting mode, and what builds before the renaming called it (14 §2).
TYPE_OF_MODE = {"draft": "draft-simple", "eagle3": "draft-eagle3", "dflash": "draft-dflash"}
MODE_OF_KIND: dict[DrafterKind | None, str] = {"eagle3": "eagle3", "dflash": "dflash"}


def uses_lengths(decision: SpecDecision) -> bool:
    """Whether lengths of n-grams are on the line."""
    return any(token.startswith(LENGTH_FLAGS) for token in decision.block)


def sets_lengths(policy: SpecPolicy) -> bool:
    """Whether a policy asks for lengths of n-grams other than those that hold without one."""
    return _lengths(policy) != _lengths(SpecPolicy())


def _lengths(policy: SpecPolicy) -> tuple[int, int, int]:
    return policy.ngram_match, policy.ngram_min, policy.ngram_max


def none(inputs: SpecInputs, reason: Reason | None = None, notes: Notes = ()) -> SpecDecision:
    """No drafting: nothing on the line is the only way to have it off."""
    return SpecDecision(inputs.policy.mode, "none", reason=reason, notes=notes)


def engine_default(inputs: SpecInputs, reason: Reason | None = None, notes: Notes = ()) -> SpecDecision:
    """What the engine does when asked for its default; builds from before that flag exit on it."""
    caps = inputs.caps
    if caps.conclusive and not caps.has(DEFAULT_FLAG):
        return none(inputs, reason, (*notes, reasons.spec_default_unsupported(caps)))
    return SpecDecision(inputs.policy.mode, "default", (DEFAULT_FLAG,), reason, notes)


def ngram(inputs: SpecInputs, reason: Reason | None = None, notes: Notes = ()) -> SpecDecision:
    """Repeat earlier text."""
    knobs = _ngram_knobs(inputs)
    if not knobs:
        notes = (*notes, reasons.ngram_knobs_missing(is_chain=False))
    argv = (TYPE_FLAG, NGRAM, *_ruled(inputs), *knobs)
    return SpecDecision(inputs.policy.mode, NGRAM, argv, reason, notes)


def ngram_simple(inputs: SpecInputs) -> SpecDecision:
    """Repeat earlier text, by the simple method."""
    return SpecDecision(inputs.policy.mode, NGRAM_SIMPLE, (TYPE_FLAG, NGRAM_SIMPLE, *_ruled(inputs)))


def without_drafter(inputs: SpecInputs, notes: Notes = ()) -> SpecDecision:
    """A drafter was wanted and there is none: n-grams instead, else the engine's default."""
    is_named = inputs.policy.drafter is not None
    reason = reasons.drafter_not_found(inputs.facts, inputs.policy.mode, is_named=is_named)
    if inputs.caps.ngram_flavour is not None:
        return ngram(inputs, reason, notes)
    return engine_default(inputs, reason, notes)


def head(inputs: SpecInputs, *, is_chained: bool = False, notes: Notes = ()) -> SpecDecision:
    """An embedded head, or the drafter that stands in for one; with `is_chained`, n-grams before it."""
    caps, facts = inputs.caps, inputs.facts
    token = caps.mtp_token
    if token is None:
        if caps.conclusive:
            return engine_default(inputs, reasons.binary_no_mtp(caps), notes)
        return engine_default(inputs, notes=(*notes, reasons.probe_inconclusive(caps)))
    knobs, dropped = _chain(inputs) if is_chained else ((), ())
    drafter = str(facts.drafter) if facts.drafter is not None and facts.drafter_kind == "mtp" else None
    depth = inputs.policy.depth or (ACCELERATED_DEPTH if inputs.is_accelerated else PLAIN_DEPTH)
    if inputs.is_native and inputs.policy.depth is None:
        depth = MOST_ADAPTED
    return _drafting(
        inputs,
        HEAD,
        f"{NGRAM},{token}" if knobs else token,
        drafter=drafter,
        depth=depth,
        knobs=knobs,
        notes=(*notes, *dropped),
    )


def draft(inputs: SpecInputs, mode: str) -> SpecDecision:
    """A separate model drafts. Depth is the engine's own unless the policy names one."""
    resolved = TYPE_OF_MODE[mode]
    word = _type_word(mode, resolved, inputs.caps)
    if word is None:
        return none(inputs, reasons.binary_no_draft_type(resolved, inputs.caps))
    return _drafting(inputs, resolved, word, drafter=str(inputs.facts.drafter), depth=inputs.policy.depth)


def _type_word(mode: str, resolved: str, caps: Capabilities) -> str | None:
    """What this build calls the type; None where it is known to have none."""
    if not caps.conclusive or resolved in caps.spec_types:
        return resolved
    return mode if mode in caps.spec_types else None


def _drafting(
    inputs: SpecInputs,
    resolved: str,
    value: str,
    *,
    drafter: str | None,
    depth: int | None,
    knobs: tuple[str, ...] = (),
    notes: Notes = (),
) -> SpecDecision:
    caps, policy = inputs.caps, inputs.policy
    flag = caps.depth_flag or (None if caps.conclusive else USUAL_DEPTH_FLAG)
    if depth is not None and flag is None:
        depth, notes = None, (*notes, reasons.depth_flag_missing())
    file = (caps.drafter_flag or USUAL_DRAFTER_FLAG, drafter) if drafter is not None else ()
    pair = (flag, str(depth)) if flag is not None and depth is not None else ()
    origin: DepthSource = "default" if policy.depth is None else "policy"
    return SpecDecision(
        policy.mode,
        resolved,
        (*file, TYPE_FLAG, value, *pair, *_ruled(inputs), *knobs),
        notes=notes,
        is_chained=bool(knobs),
        depth=depth,
        depth_source=None if depth is None else origin,
        drafter=drafter,
    )


def _ruled(inputs: SpecInputs) -> tuple[str, ...]:
    return controller_flags(inputs.policy, inputs.caps) if inputs.is_native else ()


def _chain(inputs: SpecInputs) -> tuple[tuple[str, ...], Notes]:
    """Knobs of n-grams in front of a head; where one flag would set two lengths, the head goes alone."""
    caps = inputs.caps
    if caps.ngram_flavour == "legacy" and caps.depth_flag == LEGACY_DEPTH_FLAG:
        return (), (reasons.ngram_shared_flag(),)
    knobs = _ngram_knobs(inputs)
    return knobs, () if knobs else (reasons.ngram_knobs_missing(is_chain=True),)


def _ngram_knobs(inputs: SpecInputs) -> tuple[str, ...]:
    match, low, high = map(str, _lengths(inputs.policy))
    if inputs.caps.ngram_flavour == "new":
        prefix = "--spec-ngram-mod-n-"
        return (f"{prefix}match", match, f"{prefix}min", low, f"{prefix}max", high)
    if inputs.caps.ngram_flavour == "legacy":
        return ("--spec-ngram-size-n", match, "--draft-min", low, LEGACY_DEPTH_FLAG, high)
    return ()
