"""Act on what the yield watch says: end drafting that does not pay, and try it again later (05 §11.7).

The engine cannot be told for one request not to draft, so it is done by a restart, when the instance has had
nothing to do for a while; meanwhile requests go to a replica that drafts nothing (runtime.routing). Called by
runtime.fleet, twice a second for every model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.planning.speculation.profit import UNPROFITABLE
from framework.runtime.instance import Instance
from framework.runtime.supervisor import Supervisor
from framework.telemetry.events import EventLog
from framework.values.reason import Reason

ENDED = "speculation does not pay"
AGAIN = "speculation is tried again"
# A restart may be refused, for want of a file or of memory; the instance serves on, each try is an event.
RETRY_S = 300.0


@dataclass
class YieldCare:
    """What was tried lately, by name of the instance that was to be replaced."""

    events: EventLog
    _tried_at_s: dict[str, float] = field(default_factory=dict)

    def look(self, model: Supervisor, now_s: float) -> None:
        """Mark the model where its drafting is a loss, and restart what runs otherwise than it should by now.

        One replica at a time: the others serve (07 §1.1).
        """
        if model.removed or model.stopped_by_command:
            return
        self._judge(model, now_s)
        if any(replica.busy for replica in model.replicas):
            return
        wanted = model.demotion.drafting(model.request)
        for replica in model.replicas:
            instance = replica.current
            if instance is None or not self._is_quiet(model, instance, now_s):
                continue
            has = instance.withheld.drafting
            cause = ""
            if _is_of_yield(wanted) and has is None and instance.is_drafting:
                cause = ENDED
            elif _is_of_yield(has) and wanted is None:
                cause = AGAIN
            if cause:
                self._tried_at_s[instance.name] = now_s
                replica.replace(cause, unconditional=True)
                return

    def _judge(self, model: Supervisor, now_s: float) -> None:
        """Keep drafting from the model for now, and say so once. What runs goes on until it is quiet."""
        if model.request.live.yield_watch != "switch-off":
            model.demotion.keep_drafting()
            return
        verdict = model.verdict()
        if verdict is None or model.demotion.drafting(model.request) is not None:
            return
        for instance in model.drafting_instances():
            by = instance.meter.drafting
            if by is None or by.running != verdict.evidence["running"]:
                continue
            model.demotion.does_not_pay(instance, verdict, for_s=model.watch.limits.again_after_s)
            model.watch.judged(by, now_s)
            self._say(model, instance, verdict, by.running)
            return

    def _say(self, model: Supervisor, instance: Instance, verdict: Reason, running: str) -> None:
        data = {"instance": instance.name, "from": running}
        name, replica = model.request.id, instance.replica
        self.events.record("demoted", verdict.message, model=name, replica=replica, reason=verdict, data=data)

    def _is_quiet(self, model: Supervisor, instance: Instance, now_s: float) -> bool:
        """Whether a restart would cut no answer and keep nobody waiting who is here already."""
        if not instance.serving or instance.leases or model.has_waiting:
            return False
        tried = {name: at for name, at in self._tried_at_s.items() if now_s - at < RETRY_S}
        self._tried_at_s = tried
        quiet_s = now_s - instance.idle_since_s
        return quiet_s >= model.watch.limits.quiet_s and instance.name not in tried


def _is_of_yield(reason: Reason | None) -> bool:
    return reason is not None and reason.code == UNPROFITABLE
