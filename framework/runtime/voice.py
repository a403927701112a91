"""What a replica says in the event log, in one place: kinds, sentences and reasons of 07 §14.

Called by runtime.replica and runtime.ending. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from framework.models.hub.facts import ResolvedSource, hub_text, source_text
from framework.runtime.adoption import LeftBehind
from framework.runtime.attempts import OUTCOMES, RUNGS
from framework.runtime.failures import describe_exit
from framework.runtime.generations import Generations
from framework.runtime.instance import Instance
from framework.runtime.plan_changes import sentence
from framework.telemetry.events import EventLog
from framework.values.instance import ExitInfo, LoadProgress
from framework.values.plan import Attempt, LaunchPlan, LaunchResult
from framework.values.reason import Failure, Reason
from framework.values.request import ModelSource, RestartPolicy
from framework.values.units_text import counted, duration, size

GB = 1e9
Strategy = Literal["surge", "stop_first"]
"""How one instance takes the place of another: beside it, or after it (07 §4.3, §4.4)."""


class Voice:
    """The events of one replica. `instances` tells which one is meant where nothing else is said, and which
    command it belongs to."""

    def __init__(self, events: EventLog, model: str, replica: int, instances: Generations) -> None:
        self._events = events
        self._model = model
        self._replica = replica
        self._instances = instances

    def say(
        self, kind: str, message: str, *, reason: Reason | None = None, data: Mapping[str, Any] | None = None
    ) -> None:
        """Record an event of this replica; of its newest instance, unless the data name another."""
        self._events.record(
            kind,
            message,
            model=self._model,
            replica=self._replica,
            reason=reason,
            data={"instance": self._instances.newest, "epoch": self._instances.epoch(), **(data or {})},
        )

    def fetching(self, sources: Sequence[ModelSource], progress: LoadProgress) -> None:
        """A download begins, or goes on where it stopped."""
        missing = (progress.total_bytes - progress.loaded_bytes) / GB
        data = {
            "file": progress.file,
            "loaded_bytes": progress.loaded_bytes,
            "total_bytes": progress.total_bytes,
            "from_cache": False,
            "error": None,
        }
        text = " and ".join(map(source_text, sources))
        self.say("download", f"fetching {text}, {missing:.1f} GB are missing", data=data)

    def fetched(self, source: ResolvedSource) -> None:
        """A download is complete."""
        data = {
            "file": source.main.name,
            "count": len(source.files),
            "fetched_bytes": source.fetched_bytes,
            "seconds": round(source.elapsed_s, 1),
            "revision": source.revision,
            "from_cache": False,
            "error": None,
        }
        amount = f"{source.fetched_bytes / GB:.1f} GB in {source.elapsed_s:.0f} s"
        self.say("download", f"fetched {hub_text(source)}, {amount}", data=data)

    def planned(self, plan: LaunchPlan) -> None:
        """A plan was made, with everything that was not granted as asked."""
        tokens = plan.fit.context or plan.context
        data = {
            "devices": list(plan.placement.devices),
            "needs_bytes": dict(plan.placement.counted_bytes),
            "context": tokens,
            "slots": plan.slots,
            "cache_types": list(plan.cache_types),
            "split": plan.placement.split,
            "speculation": plan.spec.resolved,
            "speculation_asked": plan.spec.requested,
            "notes": [reason.code for reason in (*_fallback(plan), *plan.spec.notes, *plan.reasons)],
            "fingerprint": plan.fingerprint,
        }
        context = f"{tokens} tokens of context" if tokens else "as much context as fits"
        self.say("planned", f"{context}, {plan.slots} slots, speculation {plan.spec.resolved}", data=data)
        for reason in (*plan.reasons, *_fallback(plan), *plan.spec.notes):
            if reason.severity != "info":
                self.say("planned", reason.message, reason=reason)

    def attempted(self, attempt: Attempt) -> None:
        """One try of the ladder ended."""
        data = {
            "rung": attempt.rung,
            "n": attempt.n,
            "argv": list(attempt.argv),
            "exit_code": attempt.exit_code,
            "outcome": attempt.outcome,
            "seconds": attempt.seconds,
            "log": str(attempt.log),
        }
        change = RUNGS.get(attempt.rung, attempt.rung)
        outcome = OUTCOMES.get(attempt.outcome, attempt.outcome)
        self.say("attempt", f"attempt {attempt.n}, {change}, {outcome}", data=data)

    def ready(self, instance: str, result: LaunchResult, *, pid: int, port: int) -> None:
        """An instance serves; each thing it does not do as planned is told before."""
        for reason in result.degradations:
            self.say("degraded", reason.message, reason=reason)
        data = {
            "instance": instance,
            "seconds": result.load_s,
            "pid": pid,
            "port": port,
            "context": result.context,
            "slots": result.slots,
            "speculation": result.speculation,
            "offload": result.offload,
        }
        self.say("ready", f"ready after {result.load_s or 0:.1f} s on port {port}", data=data)

    def replaced(self, old: str, new: str, seconds: float, strategy: Strategy) -> None:
        """A replacement took over."""
        data = {"strategy": strategy, "from": old, "to": new, "seconds": round(seconds, 3)}
        self.say("replaced", f"{old} by {new} in {seconds:.1f} s", data=data)

    def replanned(self, instance: str, changes: Sequence[Mapping[str, Any]]) -> None:
        """What serves was planned anew; without changes it serves on."""
        text = f"replaced, as another plan has {sentence(changes)}" if changes else "the plan is the same"
        data = {"instance": instance, "changes": list(changes), "replaces": bool(changes)}
        self.say("replanned", text, data=data)

    def waits_for(self, leaving: Sequence[Instance]) -> None:
        """A replacement waits until those that were replaced before have answered."""
        answers = sum(len(instance.leases) for instance in leaving)
        names = " and ".join(instance.name for instance in leaving)
        reason = Reason(
            "waiting_for_answers",
            f"{names} was replaced already and still gives {counted(answers, 'answer')}; the next replacement"
            " starts after that, and the one before it serves meanwhile.",
            "Nothing: timeout.drain of the model bounds the wait. `paddock unload MODEL --mode now` ends it.",
            evidence={"leaving": [instance.name for instance in leaving], "answers": answers},
        )
        self.say("waiting", reason.message, reason=reason)

    def rolled_back(self, reason: Reason | None) -> None:
        """The replacement failed and the earlier settings serve again."""
        text = reason.message if reason else "the new settings failed to start"
        self.say("rolled_back", f"back on the settings before: {text}", reason=reason)

    def not_beside(self, reason: Reason) -> None:
        """The new instance failed beside the old one in a way that it may not fail in its place."""
        self.say(
            "degraded", f"not started beside the old one, which ends first: {reason.message}", reason=reason
        )

    def replacement_failed(self, reason: Reason) -> None:
        """The replacement came to nothing; the serving instance was not touched."""
        self.say("replacement_failed", reason.message, reason=reason)

    def failed(self, failure: Failure, result: LaunchResult | None, *, refused: bool) -> None:
        """A start failed, with (`start_failed`) or without (`refused`) a process; `result` has attempts."""
        data: dict[str, Any] = {"class": failure.reason.code, "detail": failure.detail}
        if not refused:
            last = result.attempts[-1] if result is not None and result.attempts else None
            data["exit_code"] = last.exit_code if last is not None else None
            data["log"] = str(last.log) if last is not None else None
        kind = "refused" if refused else "start_failed"
        self.say(kind, failure.reason.message, reason=failure.reason, data=data)

    def exited(self, instance: str, exit_info: ExitInfo, cause: Reason | None = None) -> Reason:
        """The process ended by itself while it served; the reason to show: the `cause` where one is known."""
        reason = cause or Reason(
            "child_exited",
            f"The engine ended by itself with {describe_exit(exit_info.code)}"
            f" after {exit_info.seconds_ready:.0f} s of service.",
            "It is started again; look at `paddock logs` if this repeats.",
            "warning",
            {"exit_code": exit_info.code, "hard": exit_info.hard},
        )
        data = {
            "instance": instance,
            "exit_code": exit_info.code,
            "hard": exit_info.hard,
            "planned": exit_info.planned,
            "seconds_ready": round(exit_info.seconds_ready, 3),
        }
        self.say("exited", reason.message, reason=reason, data=data)
        return reason

    def demoted(self, instance: Instance, reason: Reason) -> None:
        """It goes on without speculation."""
        was = instance.result.speculation if instance.result is not None else None
        self.say("demoted", reason.message, reason=reason, data={"instance": instance.name, "from": was})

    def crash_loop(self, instance: Instance, policy: RestartPolicy, count: int) -> Reason:
        """Too many crashes, the last of which the instance shows; the reason to show in its place."""
        last = f" {instance.last_error.message}" if instance.last_error is not None else ""
        reason = Reason(
            "crash_loop",
            f"The engine crashed {count} times in {policy.window_s:.0f} s and is not started again.{last}",
            "Look at `paddock logs`, change the model's settings or the engine, then `paddock reload`.",
            "error",
            {"count": count, "window_s": policy.window_s},
        )
        data = {"instance": instance.name, "count": count, "window_s": policy.window_s}
        self.say("crash_loop", reason.message, reason=reason, data=data)
        return reason

    def respawn(self, instance: Instance, delay_s: float, *, demoted: bool) -> None:
        """The process of an instance crashed, or did not get ready: another one is started, `demoted` without
        speculation."""
        number = instance.restarts + 1
        data = {"instance": instance.name, "n": number, "delay": delay_s, "demoted": demoted}
        self.say("respawn", f"restart {number}", data=data)

    def drained(self, instance: str, inflight: int, waited_s: float, cancelled: int) -> None:
        """Requests were waited for, and some perhaps cut off."""
        data = {
            "instance": instance,
            "inflight": inflight,
            "waited": round(waited_s, 3),
            "cancelled": cancelled,
        }
        text = f"{inflight} requests finished in {waited_s:.1f} s"
        if cancelled:
            text = f"{cancelled} of {inflight} requests cut off after {waited_s:.1f} s"
        self.say("drain", text, data=data)

    def slots_saved(self, count: int, tokens: int, size_bytes: int, seconds: float) -> None:
        """What slots held was saved for the next instance."""
        data = {"count": count, "tokens": tokens, "bytes": size_bytes, "seconds": round(seconds, 3)}
        text = f"{counted(count, 'slot')} with {counted(tokens, 'token')}, {size(size_bytes)}"
        self.say("slots_saved", f"saved {text} in {duration(seconds)}", data=data)

    def slots_restored(self, count: int, of: int, tokens: int, size_bytes: int, seconds: float) -> None:
        """An instance was given what the one before it had in its slots."""
        data = {"count": count, "of": of, "tokens": tokens, "bytes": size_bytes, "seconds": round(seconds, 3)}
        some = f"{count} of {counted(of, 'slot')}" if count < of else counted(count, "slot")
        text = f"{some} with {counted(tokens, 'token')}, {size(size_bytes)}"
        self.say("slots_restored", f"restored {text} in {duration(seconds)}", data=data)

    def slots_discarded(self, count: int, size_bytes: int, reason: Reason) -> None:
        """What slots held is not carried over."""
        data = {"count": count, "bytes": size_bytes, "why": reason.message}
        self.say("slots_discarded", reason.message, reason=reason, data=data)

    def stopped(
        self, instance: str, cause: str, mode: str, code: int | None, seconds: float, signals: tuple[str, ...]
    ) -> None:
        """A process was ended on purpose."""
        data = {
            "instance": instance,
            "mode": mode,
            "seconds": round(seconds, 3),
            "signals": list(signals),
            "exit_code": code,
        }
        self.say("stopped", f"{cause}; {describe_exit(code)}", data=data)

    def left(self, instance: str, pid: int) -> None:
        """A process goes on without this manager."""
        text = f"{instance} is kept as process {pid}; the next `paddock up` takes it over"
        self.say("kept", text, data={"instance": instance, "pid": pid})

    def adopted(self, instance: str, left: LeftBehind) -> None:
        """A process that an earlier manager left behind serves on."""
        pid, port = left.record.pid, left.record.port
        told = "" if left.is_as_asked else "; the manifest asks for something else by now"
        data = {"instance": instance, "pid": pid, "port": port, "digest_equal": left.is_as_asked}
        self.say("adopted", f"took over {instance}, process {pid}, on port {port}{told}", data=data)

    def unkillable(self, instance: str, pids: tuple[int, ...]) -> None:
        """Processes outlived SIGKILL (07 §5.4)."""
        reason = Reason(
            "unkillable",
            f"Processes {', '.join(map(str, pids))} outlived SIGKILL; they may still hold memory.",
            "They end when the driver or file system lets go of them; restarting the machine may be needed.",
            "error",
            {"pids": list(pids)},
        )
        data = {"instance": instance, "pids": list(pids)}
        self.say("unkillable", reason.message, reason=reason, data=data)


def _fallback(plan: LaunchPlan) -> tuple[Reason, ...]:
    """Why speculation is not what was asked, where it is not."""
    return (plan.spec.reason,) if plan.spec.reason else ()


def still_serving(reason: Reason) -> Reason:
    """What a model shows whose new settings came to nothing while the earlier ones serve (07 §4.6)."""
    message = f"The settings before the last edit still serve; the new ones failed: {reason.message}"
    return replace(reason, message=message, severity="warning")
