"""What a changed speculation policy means for a running instance: by outcome, not by words (07 §3.6). Pure.

Called by reconcile.compare. Both policies are resolved on the facts of the launch, with nothing withheld.
Where one of them looks for a drafter that the launch did not look for, they cannot be called the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from framework.planning.placement.displacement import DISPLACED
from framework.planning.speculation.decide import decide_speculation
from framework.planning.speculation.drafter_source import has_drafter_of_its_own, takes_drafter
from framework.values.instance import InstanceView
from framework.values.plan import SpecDecision
from framework.values.request import ModelRequest, ModelSource
from framework.values.speculation import DrafterKind, SpecInputs

Looked = ModelSource | Literal["repository"] | None


def same_speculation(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> str:
    """Why the change does nothing, or ""."""
    return "both policies lead to the same flags" if same_decisions(old, new, running) else ""


def same_decisions(
    old: ModelRequest, new: ModelRequest, running: InstanceView | None
) -> tuple[SpecDecision, SpecDecision] | None:
    """What both requests come to, where that is the same flags."""
    wish = None if running is None or running.plan is None else running.plan.spec_inputs
    if running is None or wish is None or _ends_giving_way(running, new):
        return None
    wishes = [_with_policy(wish, running.request, request) for request in (old, new)]
    before, after = [None if one is None else decide_speculation(one) for one in wishes]
    if before is None or after is None or before.block != after.block:
        return None
    return before, after


def _ends_giving_way(running: InstanceView, new: ModelRequest) -> bool:
    """Whether a mode that keeps drafting at any price follows one that gave it up for room (SP-04)."""
    reason = None if running.plan is None else running.plan.spec.reason
    gave_way = reason is not None and reason.code == DISPLACED
    return gave_way and new.spec.mode != running.request.spec.mode


def _with_policy(wish: SpecInputs, launched: ModelRequest, request: ModelRequest) -> SpecInputs | None:
    """Another policy on the same facts; None where it looks for a drafter and the launch did not.

    A drafter that is named for the first time counts as one that the mode can use, which makes another line
    wherever it is used at all.
    """
    facts, looked = wish.facts, _looks_for(request)
    if looked is None:
        facts = replace(facts, drafter=None, drafter_kind=None, drafter_reasons=())
    elif looked == _looks_for(launched):
        pass
    elif looked == "repository":
        return None
    elif (stand_in := _stand_in(looked)) != facts.drafter:
        kind: DrafterKind = "mtp" if "mtp" in request.spec.mode else "plain"
        facts = replace(facts, drafter=stand_in, drafter_kind=kind)
    return replace(wish, policy=request.spec, args=request.extra_args, facts=facts)


def _looks_for(request: ModelRequest) -> Looked:
    """Where a start looks for a drafter: where the policy says, in the model's own repository, or nowhere."""
    if has_drafter_of_its_own(request):
        return "repository"
    return request.spec.drafter if takes_drafter(request) else None


def _stand_in(named: ModelSource) -> Path:
    """A path for a drafter that nobody has looked for yet."""
    return named.path or Path(f"{named.repo}:{named.file or named.variant}")
