"""Speculation in the words of the pages: what was asked, what was chosen, what drafts (05 §1). Pure.

Used by the Speculation page, by the table of a model and by the overview, so that all say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from framework.api.shapes.plan import asked_mode
from framework.api.shapes.status import source_text
from framework.values.instance import InstanceView
from framework.values.plan import LaunchPlan, SpecDecision
from framework.values.reason import Reason
from framework.values.request import ModelRequest, SpecPolicy
from framework.values.spec_yield import PLAIN
from framework.values.speculation import drafts_by_model
from framework.values.units_text import UNKNOWN, tokens

AUTO = "automatic"
WORDS = {"auto": AUTO, "default": "the engine's own default", "user": "as engine_args say"}
"""For modes whose names say little; the others are called what the manifest and the engine call them."""
DEPTH_SOURCES = {"policy": "as the policy says", "default": "by default"}
HEAD = "draft-mtp"


@dataclass(frozen=True)
class SpecWords:
    """The three things that stay apart, and what belongs to them. What is not known is a dash."""

    asked: str
    resolved: str
    running: str
    depth: str
    drafter: str
    """Both of what was resolved."""
    runs_as_resolved: bool
    differs: bool
    """A reason says why drafting is not as it was wanted."""

    @property
    def running_depth(self) -> str:
        """The depth in use: after a fallback that of the plan says nothing."""
        return self.depth if self.runs_as_resolved else UNKNOWN

    @property
    def running_drafter(self) -> str:
        """The drafter in use."""
        return self.drafter if self.runs_as_resolved else UNKNOWN


def spec_words(request: ModelRequest, instance: InstanceView | None) -> SpecWords:
    """Asked, resolved and running; without a plan nothing was resolved, without a process nothing runs."""
    plan = instance.granted if instance is not None else None
    if plan is None:
        asked = _word(asked_mode(request) or "user")
        return SpecWords(asked, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, runs_as_resolved=False, differs=False)
    spec, running = plan.spec, running_value(instance)
    return SpecWords(
        asked=_word("user" if spec.requested is None else request.spec.mode),
        resolved=_resolved(spec.resolved, spec),
        running=UNKNOWN if running is None else _resolved(running, spec),
        depth=_depth(spec),
        drafter=_drafter(spec),
        runs_as_resolved=running == spec.resolved or (spec.resolved == "user" and drafts_by_model(running)),
        differs=next(fallback_reasons(instance), None) is not None,
    )


def running_value(instance: InstanceView | None) -> str | None:
    """What drafts in a process, `none` for nothing; None without a process."""
    result = instance.running if instance is not None else None
    return None if result is None else result.speculation or PLAIN


def fallback_reasons(instance: InstanceView | None) -> Iterator[Reason]:
    """Why drafting is not what was wanted, the newest first."""
    plan = instance.granted if instance is not None else None
    result = instance.running if instance is not None else None
    if result is not None and result.speculation_reason is not None:
        yield result.speculation_reason
    if plan is not None and plan.spec.reason is not None:
        yield plan.spec.reason


def asked_depth(policy: SpecPolicy) -> str:
    """The depth of a policy."""
    return "adaptive" if policy.is_adaptive else AUTO if policy.depth is None else tokens(policy.depth)


def asked_drafter(policy: SpecPolicy) -> str:
    """The drafter of a policy."""
    return AUTO if policy.drafter is None else source_text(policy.drafter)


def drafts_apart(policy: SpecPolicy, plan: LaunchPlan | None) -> bool:
    """Whether depth and drafter are worth a line: one was asked for, or a head or drafter is used."""
    asked = policy.depth is not None or policy.is_adaptive or policy.drafter is not None
    return asked or (plan is not None and plan.spec.depth is not None)


def _word(value: str) -> str:
    return WORDS.get(value, value)


def _resolved(value: str, spec: SpecDecision) -> str:
    behind = spec.is_chained and value == spec.resolved
    return f"{_word(value)}, behind n-grams" if behind else _word(value)


def _depth(spec: SpecDecision) -> str:
    if spec.depth is None:
        return UNKNOWN
    source = DEPTH_SOURCES.get(spec.depth_source or "")
    return f"{tokens(spec.depth)}, {source}" if source else tokens(spec.depth)


def _drafter(spec: SpecDecision) -> str:
    if spec.drafter is not None:
        # Of a file the name tells enough; its folder stands in the command line.
        return PurePath(spec.drafter).name if PurePath(spec.drafter).is_absolute() else spec.drafter
    return "in the model file" if spec.resolved == HEAD else UNKNOWN
