"""What to change after a start that failed, if anything may help: the rungs of the ladder (06 §12). Pure.

Called by runtime.ladder. Changes accumulate: each rung starts from the line and the environment of the last
attempt. Each is used a bounded number of times, so that a climb ends. R1, which takes another plan, is
`tensor_abort`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from framework.engines import rewrites
from framework.engines.spec_args import DEFAULT_FLAG, without_speculation
from framework.planning.line_settings import owns_placement
from framework.runtime import rung_reasons
from framework.runtime.failures import classify
from framework.runtime.start_end import StartEnd
from framework.runtime.start_signs import (
    FILE_WORDS,
    V_CACHE_NEEDS_FLASH,
    aborted_at_split,
    blames_drafting,
    blames_projector,
    divides_tensors,
    drafting_types,
    drafts_with_model,
    holds_flag,
    is_diagnosed,
    is_same_everywhere,
    port_was_taken,
    rejected_flag,
)
from framework.values.plan import LaunchPlan, Section
from framework.values.reason import Reason

SPEC, USER, CONTEXT = "spec", "user", "context"
# Ends that no change of the line can cure, by class (06 §12.8), and what the user wrote himself.
FINAL = frozenset(
    {
        "cpu_unsupported",
        "flag_rejected",
        "health_timeout",
        "image_model",
        "library_missing",
        "port_conflict",
        "rpc_busy",
        "rpc_lost",
        "rpc_version_mismatch",
        "tensor_unsupported",
        "terminated",
        "user_flag_rejected",
    }
)
UNCLEAR = "start_failed"
# Of these nothing is known but that a projector was loaded before.
NO_CAUSE = frozenset({UNCLEAR, "gpu_driver", "vision_start"})
# Climbed right behind R2 or R3, these leave what those did as it is.
KEEPS_FLASH_OFF = frozenset({"P", "R2", "R3"})
FIT_FLAG = "--fit"


@dataclass(frozen=True)
class Trial:
    """What the next attempt is made with, and what it took to get there."""

    plan: LaunchPlan
    """With the line, environment, projector and speculation of that attempt."""
    rung: str = "S"
    """The change before it; words in runtime.attempts."""
    used: Mapping[str, int] = field(default_factory=dict)
    """How often each rung was climbed."""
    given_up: tuple[Reason, ...] = ()
    drafting_dropped: Reason | None = None
    """Why what was to draft is left out."""
    before_text_only: StartEnd | None = None
    """The end for which the projector was left out."""
    before_undrafted: StartEnd | None = None
    """The end for which what was to draft was left out."""
    with_flash: Trial | None = None
    """The trial whose flash attention was switched off to see whether that helps."""
    flash_end: StartEnd | None = None
    """The end for which that was done."""
    is_flash_back: bool = False
    """Flash attention was switched off, did not help, and was given back."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """The line by sections."""
        return self.plan.sections


Rung = Callable[[Trial, StartEnd], Trial | None]


def next_trial(trial: Trial, end: StartEnd) -> Trial | None:
    """The next attempt after this end; None when no rung is left (06 §12.2)."""
    # Of a model that is not known nothing is believed that would stand for a fault of the line.
    for name, most, rung in LINE_RUNGS if end.unknown_architecture is None else ():
        if trial.used.get(name, 0) < most and (changed := rung(trial, end)):
            return _climbed(trial, changed, name)
    if end.outcome == "incomplete" or classify(end).reason.code in FINAL:
        return None
    for name, most, rung in DECODE_RUNGS if end.was_healthy else START_RUNGS:
        if trial.used.get(name, 0) < most and (changed := rung(trial, end)):
            return _climbed(trial, changed, name)
    return None


def tensor_abort(end: StartEnd) -> Reason | None:
    """Why the launch has to be planned again without dividing tensors (R1); None where that is not the cause,
    or where no plan divides them but the user's own flags.

    To be asked before any other rung: without flash attention an engine cannot divide tensors, and the sign
    would be gone (06 §12.5).
    """
    is_planned = divides_tensors(replace(end.plan, sections=_ours(end.plan.sections), env={}))
    if is_planned and divides_tensors(end.plan) and aborted_at_split(end):
        return rung_reasons.tensor_abort(end)
    return None


def _climbed(before: Trial, after: Trial, name: str) -> Trial:
    used = {**before.used, name: before.used.get(name, 0) + 1}
    with_flash = after.with_flash if name in KEEPS_FLASH_OFF else None
    return replace(after, rung=name, used=used, with_flash=with_flash)


def _port(trial: Trial, end: StartEnd) -> Trial | None:
    """P: each attempt gets a port of its own, so trying again is all."""
    return trial if port_was_taken(end) else None


def _flag(trial: Trial, end: StartEnd) -> Trial | None:
    """U: drop the section of ours whose flag is refused. What the user wrote is not ours to drop."""
    flag = rejected_flag(end)
    if flag is None or any(holds_flag(section.tokens, flag) for section in _of_user(trial.sections)):
        return None
    for section in trial.sections:
        if section.kind == "optional" and flag in section.tokens:
            reason = rung_reasons.flag_rejected(end, flag, section)
            dropped = _with_line(trial, rewrites.without(trial.sections, section.name), reason)
            if section.name != SPEC:
                return dropped
            if (before := trial.before_undrafted) is not None:
                reason = rung_reasons.drafting_dropped(end, (), before)
            return _undrafted(dropped, (), reason)
    return None


def _fit_on(trial: Trial, end: StartEnd) -> Trial | None:
    """A: where we put everything on the GPUs, let the engine's fit step move what does not go there."""
    plan = trial.plan
    place = plan.placement
    is_whole = bool(place.devices) and place.gpu_layers is None and place.cpu_experts == 0
    may_move = plan.request.pool.offload == "allow" and plan.request.memory_mode == "auto"
    ours = not owns_placement(plan.request.extra_args, plan.env)
    if place.is_delegated or not (is_whole and may_move and ours and plan.caps.takes_value(FIT_FLAG)):
        return None
    if not _is_unclear(end) or divides_tensors(plan):
        return None
    return _with_line(trial, rewrites.fitted(trial.sections), rung_reasons.fit_on_retry(end))


def _fit_off(trial: Trial, end: StartEnd) -> Trial | None:
    """B: an engine that breaks while its fit step is on may get through without it, with what was planned.

    Without that step everything goes to GPUs, so only where the plan has it there and counts it there.
    """
    plan = trial.plan
    is_on = plan.caps.takes_value(FIT_FLAG) and rewrites.has_fit_step(trial.sections)
    is_whole = plan.fit.fits is True and plan.fit.gpu_layers is None and plan.fit.cpu_experts == 0
    if not (is_on and is_whole) or "A" in trial.used or owns_placement(plan.request.extra_args, plan.env):
        return None
    if not (end.is_hard and _is_unclear(end)) or divides_tensors(plan):
        return None
    sections = rewrites.unfitted(trial.sections)
    if plan.fit.context and not any(section.name == CONTEXT for section in sections):
        # Without the step that would have found a context that fits.
        sections = (*_ours(sections), _context_of(plan.fit.context), *_of_user(sections))
    return _with_line(trial, sections, rung_reasons.fit_off_retry(end))


def _flash_off(trial: Trial, end: StartEnd) -> Trial | None:
    """R2: no flash attention, or where that is off already, no V cache that needs it.

    Not where tensors are divided: engines break there without flash attention, and there is no cure in it.
    """
    if divides_tensors(trial.plan) or is_diagnosed(end):
        return None
    if end.is_hard and _has_flash(trial):
        return replace(_without_flash(trial, end), with_flash=trial, flash_end=end)
    quantised = rewrites.has_quantised_values(trial.sections, trial.plan.env)
    if not quantised or not (end.is_hard or end.says(V_CACHE_NEEDS_FLASH)):
        return None
    return replace(_with_plain_values(trial, end), with_flash=trial, flash_end=end)


def _flash_off_again(trial: Trial, end: StartEnd) -> Trial | None:
    """R2 once more, where it was taken back and what took its place did not help either."""
    return _flash_off(trial, end) if trial.is_flash_back else None


def _flash_off_for_decoding(trial: Trial, end: StartEnd) -> Trial | None:
    """R3: it got ready and broke at the first tokens."""
    if not end.is_hard or not _has_flash(trial):
        return None
    return replace(_without_flash(trial, end), with_flash=trial, flash_end=end)


def _no_drafting(trial: Trial, end: StartEnd) -> Trial | None:
    """R4: without what was to draft, and then without the n-grams that took its place."""
    if not _may_be_drafting(end):
        return None
    base = _with_flash_back(trial, end)
    block, before = _instead(base.plan), trial.before_undrafted
    reason = rung_reasons.drafting_dropped(end, block, before)
    return replace(_undrafted(base, block, reason), before_undrafted=before or end)


def _may_be_drafting(end: StartEnd) -> bool:
    """Whether something drafts, and nothing else is known to be the cause: no speed is worth a model."""
    plan = end.plan
    with_model = drafts_with_model(plan)
    if not (with_model or drafting_types(plan)):
        return False
    if with_model:
        # It may be its architecture that is not known, and its memory that is missing.
        return blames_drafting(end) or not (end.says(*FILE_WORDS) or blames_projector(end))
    is_unclear = classify(end).reason.code in NO_CAUSE and not is_same_everywhere(end)
    return blames_drafting(end) or is_unclear


def _with_flash_back(trial: Trial, end: StartEnd) -> Trial:
    """The trial with flash attention as it was before that was switched off in vain."""
    if trial.with_flash is None or trial.flash_end is None:
        return trial
    before = trial.flash_end
    if before.was_healthy:
        # Where tensors are divided an engine may not even start without flash attention: then it comes back.
        # Where it started and still could not generate, it stays off, as every change does.
        is_vain = not end.was_healthy
    else:
        is_vain = not before.says(V_CACHE_NEEDS_FLASH) and _ended_alike(before, end)
    return replace(trial.with_flash, used=trial.used, is_flash_back=True) if is_vain else trial


def _ended_alike(one: StartEnd, other: StartEnd) -> bool:
    """Whether two tries broke the same way, as far as can be seen."""
    codes = {classify(end).reason.code for end in (one, other)}
    is_same = (one.outcome, one.exit_code) == (other.outcome, other.exit_code)
    return is_same and one.is_hard and not other.was_healthy and len(codes) == 1


def _text_only(trial: Trial, end: StartEnd) -> Trial | None:
    """R5: without the projector."""
    plan = trial.plan
    if not rewrites.has_projector(plan.sections, plan.env):
        return None
    if not blames_projector(end) and not (end.is_hard and not is_diagnosed(end)):
        return None
    text = replace(plan, projector=None, env=rewrites.without_projector(plan.env))
    changed = replace(trial, plan=text, before_text_only=end)
    return _with_line(changed, rewrites.text_only(plan.sections), rung_reasons.projector_given_up(end))


LINE_RUNGS: tuple[tuple[str, int, Rung], ...] = (("P", 3, _port), ("U", 2, _flag))
"""Name, how often at most, and the change; of those that answer what the engine said of its line."""
START_RUNGS: tuple[tuple[str, int, Rung], ...] = (
    ("A", 1, _fit_on),
    ("B", 1, _fit_off),
    ("R2", 1, _flash_off),
    ("R4", 2, _no_drafting),
    ("R2", 2, _flash_off_again),
    ("R5", 1, _text_only),
)
DECODE_RUNGS: tuple[tuple[str, int, Rung], ...] = (
    ("R3", 1, _flash_off_for_decoding),
    ("R4", 2, _no_drafting),
)


def _is_unclear(end: StartEnd) -> bool:
    """Whether the end has no known cause, so that another placement may help."""
    return classify(end).reason.code == UNCLEAR and not is_same_everywhere(end)


def _context_of(tokens: int) -> Section:
    return Section(CONTEXT, ("-c", str(tokens)))


def _ours(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    return tuple(section for section in sections if section.kind != USER)


def _of_user(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    return tuple(section for section in sections if section.kind == USER)


def _with_line(trial: Trial, sections: tuple[Section, ...], *reasons: Reason) -> Trial:
    plan = replace(trial.plan, sections=sections)
    return replace(trial, plan=plan, given_up=(*trial.given_up, *reasons))


def _has_flash(trial: Trial) -> bool:
    is_switch = rewrites.has_flash_switch(trial.plan.caps)
    return rewrites.has_flash_attention(trial.sections, is_switch=is_switch)


def _without_flash(trial: Trial, end: StartEnd) -> Trial:
    is_switch = rewrites.has_flash_switch(trial.plan.caps)
    off = rewrites.without_flash_attention(trial.sections, is_switch=is_switch)
    reasons = [rung_reasons.flash_attn_off(end)]
    if rewrites.has_quantised_values(trial.sections, trial.plan.env):
        reasons.append(rung_reasons.v_cache_f16(end))
    env = rewrites.without_flash_variable(rewrites.without_quantised_values(trial.plan.env))
    return _with_line(replace(trial, plan=replace(trial.plan, env=env)), off, *reasons)


def _with_plain_values(trial: Trial, end: StartEnd) -> Trial:
    env = rewrites.without_quantised_values(trial.plan.env)
    plain = rewrites.with_plain_values(trial.sections)
    changed = replace(trial, plan=replace(trial.plan, env=env))
    return _with_line(changed, plain, rung_reasons.v_cache_f16(end))


def _instead(plan: LaunchPlan) -> tuple[str, ...]:
    """What takes the place of our own speculation: the engine's default, where a model was to draft and the
    build has it. Nothing takes the place of the user's own, which cannot be switched off any other way."""
    own = next((section for section in plan.sections if section.name == SPEC), None)
    has_default = plan.caps.has(DEFAULT_FLAG) or not plan.caps.conclusive
    if own is None or not drafts_with_model(replace(plan, sections=(own,))) or not has_default:
        return ()
    return (DEFAULT_FLAG,)


def _undrafted(trial: Trial, block: tuple[str, ...], reason: Reason) -> Trial:
    """The trial with this block of speculation and no other."""
    plan = trial.plan
    lines = (replace(section, tokens=_undrafted_tokens(section, block)) for section in plan.sections)
    spec = replace(
        plan.spec,
        resolved="default" if block else "none",
        block=block,
        is_chained=False,
        depth=None,
        depth_source=None,
        drafter=None,
    )
    earlier = trial.drafting_dropped if trial.before_undrafted is not None else None
    given_up = tuple(told for told in trial.given_up if told != earlier)
    told = () if reason in given_up else (reason,)
    kept = tuple(section for section in lines if section.tokens)
    bare = replace(plan, spec=spec, env=rewrites.without_drafters(plan.env))
    undrafted = _with_line(replace(trial, plan=bare, given_up=given_up), kept, *told)
    return replace(undrafted, drafting_dropped=reason)


def _undrafted_tokens(section: Section, block: tuple[str, ...]) -> tuple[str, ...]:
    if section.name == SPEC:
        return block
    return without_speculation(section.tokens) if section.kind == USER else section.tokens
