"""Act on what the yield watch says: end drafting that does not pay, and try it again later (05 §11.7).

The engine cannot be told for one request not to draft, so it is done by a restart, when the instance has had
nothing to do for a while; meanwhile requests go to a replica that drafts nothing (runtime.routing). Called by
runtime.fleet, twice a second for every model.
"""

from __future__ import annotations

from framework.runtime.instance import Instance
from framework.runtime.replica import Replica
from framework.runtime.supervisor import Supervisor
from framework.telemetry.events import EventLog
from framework.values.reason import Reason

UNPROFITABLE = "speculation_unprofitable"
ENDED = "speculation does not pay"
AGAIN = "speculation is tried again"


def care(model: Supervisor, events: EventLog, now_s: float) -> None:
    """Mark the model where its drafting is a loss, and restart what runs otherwise than it should by now."""
    if model.removed or model.stopped_by_command:
        return
    if model.request.live.yield_watch != "switch-off":
        model.demotion.keep_drafting()
    elif (verdict := model.watch.verdict()) is not None:
        _judge(model, verdict, events, now_s)
    wanted = model.demotion.withheld(model.request).drafting
    for replica in model.replicas:
        instance = replica.current
        if instance is None or not _is_quiet(model, replica, instance, now_s):
            continue
        if _is(wanted) and instance.withheld.drafting is None and instance.is_drafting:
            replica.replace(ENDED, unconditional=True)
        elif _is(instance.withheld.drafting) and wanted is None:
            replica.replace(AGAIN, unconditional=True)


def _judge(model: Supervisor, verdict: Reason, events: EventLog, now_s: float) -> None:
    """Keep drafting from the model for now. What runs goes on until it is quiet."""
    for replica in model.replicas:
        instance = replica.current
        by = instance.meter.drafting if instance is not None and instance.serving else None
        if instance is None or by is None or by.running != verdict.evidence["running"]:
            continue
        model.demotion.does_not_pay(instance, verdict, for_s=model.watch.limits.again_after_s)
        model.watch.judged(by, now_s)
        data = {"instance": instance.name, "from": by.running}
        events.record(
            "demoted",
            verdict.message,
            model=model.request.id,
            replica=replica.index,
            reason=verdict,
            data=data,
        )
        return


def _is(reason: Reason | None) -> bool:
    return reason is not None and reason.code == UNPROFITABLE


def _is_quiet(model: Supervisor, replica: Replica, instance: Instance, now_s: float) -> bool:
    """Whether a restart would cut no answer and keep nobody waiting who is here already."""
    if replica.busy or not instance.serving or instance.leases or model.has_waiting:
        return False
    return now_s - instance.idle_since_s >= model.watch.limits.quiet_s
