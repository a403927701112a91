"""What there is to say of an instance once the manifest asks for something else than it did. Pure.

Called by runtime.supervisor for every view, so that no reader puts what was granted once beside what is asked
now.
"""

from __future__ import annotations

from dataclasses import replace

from framework.reconcile.spec_changes import same_decisions
from framework.values.instance import InstanceView, State
from framework.values.request import ModelRequest, same_launch

OVER = frozenset({State.STOPPED, State.FAILED, State.BACKOFF})


def as_asked(view: InstanceView, wanted: ModelRequest) -> InstanceView:
    """The instance beside the request of now: a launch of another request that is over is forgotten.

    Why it failed stays, since that is its state. What runs is told with the policy of now, where that comes
    to the same flags.
    """
    if view.state not in OVER:
        return _with_policy(view, wanted)
    if same_launch(view.request, wanted):
        return view
    error = None if view.state is State.STOPPED else view.last_error
    return replace(view, request=wanted, plan=None, result=None, last_error=error)


def _with_policy(view: InstanceView, wanted: ModelRequest) -> InstanceView:
    """The same process as what another policy would have come to: its mode, its notes and its reason."""
    plan = view.plan
    if plan is None or view.request.spec == wanted.spec:
        return view
    both = same_decisions(view.request, wanted, view)
    if both is None:
        return view
    before, after = both
    spec = plan.spec
    # What was found out later, such as what a process showed, holds for any policy.
    later = tuple(note for note in spec.notes if note not in before.notes)
    told = replace(
        spec,
        requested=after.requested,
        reason=after.reason if spec.reason == before.reason else spec.reason,
        notes=(*after.notes, *later),
    )
    return replace(view, plan=replace(plan, spec=told))


def roll_back_to(good: ModelRequest | None, wanted: ModelRequest) -> ModelRequest | None:
    """The request to go back to when `wanted` does not start, with live settings of now (07 §4.6)."""
    if good is None or not wanted.live.rollback or same_launch(good, wanted):
        return None
    return replace(good, live=wanted.live)
