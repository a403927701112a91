"""Turn a speculation policy into flags, or into a reason why not (05 §6.1).

Called by planning.launch for every plan, and by the comparison, which compares policies by what they come to.
Touches nothing. The first rule that applies decides; each is named where it stands.
"""

from __future__ import annotations

from dataclasses import replace

from framework.engines.spec_args import drafter as drafter_in
from framework.engines.spec_args import owns_speculation
from framework.manifest.spec_modes import MODES_WITH_DRAFTER
from framework.planning.speculation import emit, reasons
from framework.planning.speculation.detect import Detected, detect
from framework.planning.speculation.native import guard_flags, settings_in_use, settings_not_built
from framework.values.plan import SpecDecision
from framework.values.reason import Reason
from framework.values.speculation import SpecInputs, drafts_by_model


def decide_speculation(inputs: SpecInputs) -> SpecDecision:
    """The section of the command line for a policy, and why it is not what was wanted."""
    # D1: types only add up on the line, so ours must not stand beside the user's.
    if owns_speculation(inputs.args):
        drafter = None if inputs.withheld else drafter_in(inputs.args)
        return SpecDecision(None, "user", reason=inputs.withheld, drafter=drafter)
    decision = _with_own_drafter(_by_mode(inputs), inputs)
    unused_notes = (*_unused_drafter(decision, inputs), *_unused_lengths(decision, inputs))
    decision = replace(decision, notes=(*decision.notes, *unused_notes))
    told = _of_drafter(decision, inputs)
    if inputs.is_native:
        guard = guard_flags(inputs.policy, inputs.caps)
        unbuilt = settings_not_built(inputs.policy, inputs.caps)
        mark = (reasons.native_only(unbuilt, is_native=True),) if unbuilt else ()
        return replace(decision, block=(*decision.block, *guard), notes=(*told, *decision.notes, *mark))
    unused = settings_in_use(inputs.policy) if inputs.policy.mode != "off" else []
    mark = (reasons.native_only(unused),) if unused else ()
    return replace(decision, notes=(*told, *decision.notes, *mark))


def _of_drafter(decision: SpecDecision, inputs: SpecInputs) -> tuple[Reason, ...]:
    """What was found of the drafter, each once: `drafter_not_found` says the last one itself."""
    if inputs.policy.mode not in MODES_WITH_DRAFTER:
        return ()
    known, reason = inputs.facts.drafter_reasons, decision.reason
    return known[:-1] if reason is not None and reason.code == "drafter_not_found" else known


def _with_own_drafter(decision: SpecDecision, inputs: SpecInputs) -> SpecDecision:
    """A drafter in the user's arguments stands behind ours, and the last one counts."""
    own = drafter_in(inputs.args)
    return decision if own is None or decision.drafter is None else replace(decision, drafter=own)


def _unused_drafter(decision: SpecDecision, inputs: SpecInputs) -> tuple[Reason, ...]:
    """A note on a drafter in the user's arguments that nothing on the line uses. Nothing, where it
    is taken off the line since drafting is withheld."""
    own = drafter_in(inputs.args)
    if own is None or inputs.withheld is not None or drafts_by_model(decision.resolved):
        return ()
    return (reasons.drafter_unused(own, decision.resolved),)


def _unused_lengths(decision: SpecDecision, inputs: SpecInputs) -> tuple[Reason, ...]:
    """A note on lengths of n-grams that the policy sets and nothing on the line uses."""
    policy = inputs.policy
    is_off = policy.mode == "off" or inputs.withheld is not None
    told = {note.code for note in decision.notes} & {"ngram_knobs_missing", "ngram_shared_flag"}
    if is_off or told or emit.uses_lengths(decision) or not emit.sets_lengths(policy):
        return ()
    return (reasons.ngram_settings_unused(policy, decision.resolved),)


def _by_mode(inputs: SpecInputs) -> SpecDecision:
    mode, found = inputs.policy.mode, detect(inputs.policy, inputs.facts)
    # D2
    if inputs.withheld is not None:
        return emit.none(inputs, inputs.withheld)
    # D3
    if mode == "off":
        return emit.none(inputs)
    if mode == "ngram-simple":
        return _ngram_simple(inputs)
    if mode == "ngram":
        return _ngram(inputs)
    if mode in emit.TYPE_OF_MODE:
        return _draft(inputs, mode)
    if mode in ("mtp", "mtp+ngram"):
        return _forced(inputs, found, is_chained=mode == "mtp+ngram")
    return _auto(inputs, found)


def _ngram_simple(inputs: SpecInputs) -> SpecDecision:
    caps, mode = inputs.caps, inputs.policy.mode
    # D4
    if caps.conclusive and emit.NGRAM_SIMPLE not in caps.spec_types:
        return emit.none(inputs, notes=(reasons.ngram_unsupported(mode, caps),))
    # D5
    return emit.ngram_simple(inputs)


def _ngram(inputs: SpecInputs, notes: emit.Notes = ()) -> SpecDecision:
    caps, mode = inputs.caps, inputs.policy.mode
    # D6
    if caps.conclusive and caps.ngram_flavour is None and emit.NGRAM not in caps.spec_types:
        return emit.none(inputs, notes=(*notes, reasons.ngram_unsupported(mode, caps)))
    # D7
    return emit.ngram(inputs, notes=notes)


def _forced(inputs: SpecInputs, found: Detected, *, is_chained: bool) -> SpecDecision:
    policy, facts = inputs.policy, inputs.facts
    # D8, D12
    if not found.is_capable:
        instead = _ngram(inputs) if is_chained else emit.engine_default(inputs)
        note = reasons.model_not_mtp(facts, policy.mode, instead.resolved)
        return replace(instead, notes=(note, *instead.notes))
    # D9, D13
    if found.is_drafter_missing:
        return emit.without_drafter(inputs)
    # D10, D14; D11, D15
    small = (reasons.head_too_small_forced(facts, policy),) if found.is_too_small else ()
    return emit.head(inputs, is_chained=is_chained, notes=small)


def _auto(inputs: SpecInputs, found: Detected) -> SpecDecision:
    policy, facts, has_ngram = inputs.policy, inputs.facts, inputs.caps.ngram_flavour is not None
    # 05 §2.5: a drafter that is no head decides as the mode of its kind.
    if facts.drafter is not None and not found.has_head_drafter:
        return _draft(inputs, emit.MODE_OF_KIND.get(facts.drafter_kind, "draft"))
    # D16
    if found.is_latent:
        reason = reasons.mla_mtp_disabled(facts)
        return emit.ngram(inputs, reason) if has_ngram else emit.none(inputs, reason)
    # D22
    if not found.is_capable:
        notes = (reasons.name_without_head(facts),) if found.promises_head else ()
        return emit.engine_default(inputs, notes=notes)
    # D17, D19
    if found.is_drafter_missing:
        return emit.without_drafter(inputs)
    # D20, D21
    if found.is_too_small:
        notes = (reasons.head_too_small(facts, policy),)
        return emit.ngram(inputs, notes=notes) if has_ngram else emit.none(inputs, notes=notes)
    # D18
    return emit.head(inputs, is_chained=not inputs.is_accelerated)


def _draft(inputs: SpecInputs, mode: str) -> SpecDecision:
    # D23
    if inputs.facts.drafter is None:
        return emit.without_drafter(inputs)
    # D24, D25
    return emit.draft(inputs, mode)
