"""Every reason that belongs to an instance, wherever it was found. Pure.

Read by the pages and by `/metrics`, so that what one of them shows is a label of the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from framework.values.instance import InstanceView, ModelView, State
from framework.values.reason import Reason
from framework.values.spec_yield import PLAIN


def told_of(instance: InstanceView) -> Iterator[Reason]:
    """Why it failed, what its start gave up, what was decided for it; the same one may come twice."""
    if instance.last_error is not None:
        yield instance.last_error
    if instance.result is not None and instance.result.failure is not None:
        yield instance.result.failure.reason
    if instance.state is State.STOPPED:
        # The rest is about a start that is over.
        return
    if instance.result is not None:
        yield from instance.result.degradations
        if instance.result.speculation_reason is not None:
            yield instance.result.speculation_reason
    if instance.plan is not None:
        if instance.plan.spec.reason is not None:
            yield instance.plan.spec.reason
        yield from instance.plan.spec.notes
        yield from instance.plan.reasons


def verdict_on(view: ModelView, instance: InstanceView) -> tuple[Reason, ...]:
    """What the yield watch of a model found, where it is about this process."""
    verdict, running = view.spec_yield.verdict, instance.running
    drafts = running is not None and (running.speculation or PLAIN) != PLAIN
    return (verdict,) if verdict is not None and drafts else ()
