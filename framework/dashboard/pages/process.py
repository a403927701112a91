"""One process in detail: identity, command line, attempts to start it. Pure; secrets are hidden."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from framework.api.shapes import started_argv
from framework.engines.command_line import fill_line
from framework.engines.redaction import redact_argv
from framework.runtime.attempts import OUTCOMES, RUNGS
from framework.runtime.failures import describe_exit
from framework.values.instance import ExitInfo, InstanceView
from framework.values.plan import Attempt, LaunchPlan


@dataclass(frozen=True)
class ProcessFacts:
    """Who the process is. None where there is no process, or no such fact yet."""

    id: str
    instance: str
    state: str
    since: datetime
    pid: int | None
    port: int | None
    in_flight: int
    restarts: int
    load_s: float | None
    last_exit: str
    engine_path: str
    engine_version: str


@dataclass(frozen=True)
class CommandLine:
    """What was or would be started; `variables` are names of declared environment variables."""

    id: str
    text: str
    variables: tuple[str, ...]


@dataclass(frozen=True)
class AttemptRow:
    """One try to start; `change` is what was changed before it. `exit` is empty while there is none."""

    number: int
    change: str
    outcome: str
    good: bool
    exit: str
    seconds: float
    log: str
    command: str


@dataclass(frozen=True)
class AttemptList:
    """All tries of one launch."""

    id: str
    rows: tuple[AttemptRow, ...]


def process_facts(element: str, instance: InstanceView) -> ProcessFacts:
    """The facts of an instance."""
    plan = instance.plan
    return ProcessFacts(
        id=element,
        instance=instance.instance,
        state=instance.state.value,
        since=instance.since,
        pid=instance.pid,
        port=instance.port,
        in_flight=instance.inflight,
        restarts=instance.restarts,
        load_s=instance.result.load_s if instance.result is not None else None,
        last_exit=exit_text(instance.last_exit),
        engine_path=str(plan.engine.entry) if plan is not None else "",
        engine_version=plan.caps.version if plan is not None else "",
    )


def command_line(element: str, instance: InstanceView) -> CommandLine | None:
    """The line an instance was started with, else that of its plan, ready for a shell; None before a plan."""
    plan = instance.plan
    if plan is None:
        return None
    argv = started_argv(instance)
    if argv is None:
        planned = plan.argv if instance.port is None else fill_line(plan.sections, port=instance.port)
        argv = redact_argv(planned)
    return CommandLine(element, shlex.join(argv), _variables(plan))


def attempt_list(element: str, attempts: Sequence[Attempt]) -> AttemptList:
    """The attempts of a launch."""
    return AttemptList(element, tuple(_attempt(attempt) for attempt in attempts))


def exit_text(info: ExitInfo | None) -> str:
    """How a process ended, empty when none has."""
    if info is None:
        return ""
    kind = "as planned" if info.planned else "unexpectedly"
    return f"{describe_exit(info.code)}, {kind}, after {info.seconds_ready:.0f} s ready"


def _variables(plan: LaunchPlan) -> tuple[str, ...]:
    declared = {*plan.request.engine.env, *plan.request.env, *plan.engine.env}
    return tuple(sorted(declared & set(plan.env) if plan.env else declared))


def _attempt(attempt: Attempt) -> AttemptRow:
    return AttemptRow(
        number=attempt.n,
        change=RUNGS.get(attempt.rung, attempt.rung),
        outcome=OUTCOMES.get(attempt.outcome, attempt.outcome),
        good=attempt.outcome == "healthy",
        exit="" if attempt.exit_code is None else describe_exit(attempt.exit_code),
        seconds=attempt.seconds,
        log=str(attempt.log),
        command=shlex.join(redact_argv(attempt.argv)),
    )
