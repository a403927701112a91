"""Where a process does not do at the end of the manager what `server.on_exit` says by now (07 §5.5).

A process keeps to what was set when it started: one that is tied to our life cannot be untied from
outside, and one that is not cannot be tied. So a change of `on_exit` holds for starts to come, and until
then the instance says what its process will really do. Called by runtime.fleet twice a second; records
each difference once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from framework.runtime.instance import Instance
from framework.telemetry.events import EventLog
from framework.values.reason import Reason

OnExit = Literal["stop", "keep"]
CODES = frozenset({"ends_with_up", "outlives_a_crash"})


def tell_differences(instances: Iterable[Instance], on_exit: OnExit, events: EventLog) -> None:
    """Bring the reasons of all instances up to date."""
    for instance in instances:
        result = instance.result
        if result is None or not instance.serving:
            continue
        told = next((reason for reason in result.degradations if reason.code in CODES), None)
        reason = _difference(instance, on_exit)
        if told == reason:
            continue
        others = tuple(one for one in result.degradations if one.code not in CODES)
        instance.result = replace(result, degradations=(*others, *([reason] if reason is not None else ())))
        events.touch()
        if reason is not None:
            model, replica = instance.request.id, instance.replica
            events.record("degraded", reason.message, model=model, replica=replica, reason=reason)


def _difference(instance: Instance, on_exit: OnExit) -> Reason | None:
    is_kept = instance.running is not None and instance.running.child.is_kept
    if is_kept == (on_exit == "keep"):
        return None
    name = instance.request.id
    if on_exit == "keep":
        return Reason(
            "ends_with_up",
            'The process ends with `paddock up`: it was started before on_exit = "keep", and such a process'
            " cannot be untied any more.",
            f"`paddock reload {name}` starts one that is kept.",
            "warning",
        )
    return Reason(
        "outlives_a_crash",
        'The process was started while on_exit was "keep": an orderly end of `paddock up` ends it too, but if'
        " `paddock up` is killed it goes on until the next one ends it.",
        f"`paddock reload {name}` starts one that dies with `paddock up`, however that ends.",
        "info",
    )
