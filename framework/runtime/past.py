"""What is left to say of an instance without a process once the manifest asks for something else. Pure.

Called by runtime.supervisor for every view, so that no reader puts what was granted once beside what is asked
now.
"""

from __future__ import annotations

from dataclasses import replace

from framework.values.instance import InstanceView, State
from framework.values.request import ModelRequest, same_launch

OVER = frozenset({State.STOPPED, State.FAILED, State.BACKOFF})


def as_asked(view: InstanceView, wanted: ModelRequest) -> InstanceView:
    """The instance beside the request of now: a launch of another request that is over is forgotten.

    Why it failed stays, since that is its state.
    """
    if view.state not in OVER or same_launch(view.request, wanted):
        return view
    error = None if view.state is State.STOPPED else view.last_error
    return replace(view, request=wanted, plan=None, result=None, last_error=error)


def roll_back_to(good: ModelRequest | None, wanted: ModelRequest) -> ModelRequest | None:
    """The request to go back to when `wanted` does not start, with live settings of now (07 §4.6)."""
    if good is None or not wanted.live.rollback or same_launch(good, wanted):
        return None
    return replace(good, live=wanted.live)
