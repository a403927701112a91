"""The recovery ladder: try, change one thing, try again, or give up with a class (06 §12).

What is changed is decided in runtime.rungs; here attempts are made and bounded. Called by runtime.starting; a
cancelled climb leaves no process behind.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from framework.engines.child_env import spawn_environment
from framework.engines.command_line import fill_line
from framework.engines.redaction import redact_argv
from framework.runtime import launch
from framework.runtime.attempts import LABELS, RUNGS
from framework.runtime.decode_probe import can_decode, needs_probe
from framework.runtime.failures import TOLD_WITH_MEMORY, classify
from framework.runtime.launch import Answer, Running, Site
from framework.runtime.port_holder import port_holder
from framework.runtime.private import made_at
from framework.runtime.readback import read_back
from framework.runtime.remote_devices import missing_servers
from framework.runtime.rungs import Trial, next_trial, tensor_abort
from framework.runtime.smaller import SERVER_LOST
from framework.runtime.start_end import Outcome, StartEnd
from framework.runtime.start_notes import start_notes
from framework.runtime.start_signs import port_was_taken
from framework.values.plan import Attempt, LaunchPlan, LaunchResult
from framework.values.reason import Failure

KEY_BYTES = 32
# 06 §12.8: however the rungs fall, one launch takes at most this many load time-outs.
TIMEOUTS_PER_LAUNCH = 3
# What a launch comes to is the same behind these rungs.
ALIKE = frozenset({"P", "U"})
# A server that has no room for what is on its way to it hangs up.
OF_DEVICE_MEMORY = TOLD_WITH_MEMORY | {SERVER_LOST}


@dataclass(frozen=True)
class Climb:
    """What came of a launch; `running` and `plan` are set exactly when the result is `ready`."""

    result: LaunchResult
    running: Running | None
    plan: LaunchPlan | None = None
    """As the last attempt left it."""


@dataclass
class Tries:
    """What one launch has used up, over all the plans that it took."""

    attempts: list[Attempt] = field(default_factory=list)
    spent_s: float = 0.0
    end: StartEnd | None = None
    """How the last attempt ended that was not cut short by the time of the launch."""


@dataclass(frozen=True)
class _Made:
    """An attempt that was spawned."""

    argv: list[str]
    log_name: str
    running: Running
    lines: Callable[[], list[str]]
    """What it has printed so far; what an earlier one said is no cause of its end."""


class Ladder:
    """One plan of one launch."""

    def __init__(
        self,
        plan: LaunchPlan,
        site: Site,
        *,
        log_stem: str,
        mark: str,
        timeout_s: Callable[[], float],
        on_spawn: Callable[[Running], None],
        on_attempt: Callable[[Attempt], None],
        on_survivors: Callable[[tuple[int, ...]], None],
        tries: Tries | None = None,
        rung: str = "S",
        as_planned: bool = False,
    ) -> None:
        """`on_survivors` is given the processes that outlived the end of an attempt. `rung` is what made an
        earlier plan of this launch into this one, and `tries` what that took. `as_planned`: where
        memory is short no rung may change what the launch comes to."""
        self._as_planned = as_planned
        self._first = Trial(plan, rung)
        self._site = site
        self._log_stem = log_stem
        self._mark = mark
        self._timeout_s = timeout_s
        self._on_spawn = on_spawn
        self._on_attempt = on_attempt
        self._on_survivors = on_survivors
        self._tries = tries or Tries()
        self._began_s = 0.0

    async def climb(self) -> Climb:
        """Attempts until healthy or out of rungs."""
        self._began_s = time.monotonic()
        try:
            return await self._climb()
        finally:
            self._tries.spent_s += time.monotonic() - self._began_s

    async def _climb(self) -> Climb:
        trial = self._first
        while True:
            before = self._tries.end
            if before is not None and self._left_s() <= 0:
                return self._unready("failed", classify(before))
            end = await self._attempt(trial)
            if isinstance(end, Climb):
                return end
            if before is not None and self._was_cut_short(end):
                return self._unready("failed", classify(before))
            self._tries.end = end
            if (reason := tensor_abort(end)) is not None:
                return self._unready("replan", Failure(reason))
            following = next_trial(trial, end)
            if following is None:
                return self._unready("failed", classify(end))
            if self._as_planned and following.rung not in ALIKE:
                failure = classify(end)
                if failure.reason.code in OF_DEVICE_MEMORY:
                    return self._unready("failed", failure)
            trial = following

    async def _attempt(self, trial: Trial) -> Climb | StartEnd:
        made = await self._spawn(trial)
        running, began_s = made.running, time.monotonic()
        try:
            self._on_spawn(running)
            answer = await launch.wait_ready(
                self._site,
                running,
                model_path=trial.plan.main_gguf,
                timeout_s=lambda: self._limit_s(time.monotonic() - began_s),
            )
            outcome = await self._outcome(trial, made, answer)
            if outcome == "healthy":
                return await self._ready(trial, made, answer)
        except BaseException:
            self._note(trial, made, "cancelled", 0.0)
            await self._stop(running)
            raise
        answer = replace(answer, seconds=time.monotonic() - began_s)
        await self._stop(running)
        self._note(trial, made, outcome, answer.seconds)
        return await self._end(trial, made, outcome, answer)

    async def _spawn(self, trial: Trial) -> _Made:
        plan = trial.plan
        template = await asyncio.to_thread(self._template_file, plan)
        port = self._site.ports.reserve()
        key = secrets.token_urlsafe(KEY_BYTES) if plan.request.engine.api_key else None
        argv = fill_line(
            trial.sections, port=port, template_path=template, slot_folder=self._site.slot_folder
        )
        env = spawn_environment(plan.env, api_key=key, mark=self._mark)
        number = len(self._tries.attempts) + 1
        log_name = f"{self._log_stem}{LABELS.get(trial.rung, '')}-port-{port}-try{number}.log"
        if number > 1:
            # Whoever reads the log sees where one try ends; the file of each try has it in its name.
            self._site.log.append(f"--- try {number} of this start, {RUNGS[trial.rung]} ---")
        before = self._site.log.newest
        try:
            running = await launch.start(
                self._site,
                argv,
                env,
                port=port,
                key=key,
                log_name=log_name,
                fingerprint=plan.fingerprint,
            )
        except BaseException:
            self._site.ports.release(port)
            raise
        return _Made(argv, log_name, running, lambda: [line.text for line in self._site.log.after(before)])

    async def _outcome(self, trial: Trial, made: _Made, answer: Answer) -> Outcome | Literal["healthy"]:
        """What the attempt came to, beyond the health check."""
        if answer.outcome != "healthy":
            return answer.outcome
        # An engine that cannot reach a server goes on without its devices, as if they were not asked for.
        if missing_servers(trial.plan, made.lines()):
            return "incomplete"
        running = made.running
        if not needs_probe(trial.plan) or await can_decode(self._site.client, running, left_s=self._left_s()):
            return "healthy"
        if not running.child.alive:
            await running.child.wait_output()
            return "exited"
        return "decode_failed" if self._left_s() > 0 else "timeout"

    async def _ready(self, trial: Trial, made: _Made, answer: Answer) -> Climb:
        lines = made.lines()
        facts = await read_back(self._site.client, made.running, trial.plan, answer.props, lines)
        self._note(trial, made, "healthy", answer.seconds)
        self._site.log.shrink()
        has_media = trial.before_text_only is None
        result = replace(
            facts,
            attempts=tuple(self._tries.attempts),
            degradations=(*trial.given_up, *start_notes(lines), *facts.degradations),
            speculation_reason=trial.drafting_dropped or facts.speculation_reason,
            vision=facts.vision and has_media,
            audio=facts.audio and has_media,
            load_s=answer.seconds,
        )
        return Climb(result, made.running, trial.plan)

    async def _stop(self, running: Running) -> None:
        if survivors := (await launch.stop(self._site, running)).survivors:
            self._on_survivors(survivors)

    def _limit_s(self, waited_s: float) -> float:
        """Seconds that an attempt may take in all, after it took so many."""
        return min(self._timeout_s(), self._left_s() + waited_s)

    def _left_s(self) -> float:
        """Seconds left of the whole launch; what is live may change them."""
        spent_s = self._tries.spent_s + time.monotonic() - self._began_s
        return TIMEOUTS_PER_LAUNCH * self._timeout_s() - spent_s

    def _was_cut_short(self, end: StartEnd) -> bool:
        """Whether it had less than the time of a load, since others took it: that says nothing of a cause."""
        return end.outcome == "timeout" and end.waited_s < self._timeout_s()

    async def _end(self, trial: Trial, made: _Made, outcome: Outcome, answer: Answer) -> StartEnd:
        end = StartEnd(
            outcome,
            _exit_code(made, outcome),
            made.lines(),
            trial.plan,
            str(self._site.log_dir / made.log_name),
            answer.seconds,
            was_healthy=answer.outcome == "healthy",
            before_text_only=trial.before_text_only,
        )
        if not port_was_taken(end):
            return end
        return replace(end, port_holder=await asyncio.to_thread(port_holder, made.running.port))

    def _note(
        self, trial: Trial, made: _Made, outcome: Outcome | Literal["healthy", "cancelled"], seconds: float
    ) -> None:
        attempt = Attempt(
            len(self._tries.attempts) + 1,
            trial.rung,
            tuple(redact_argv(made.argv)),
            outcome,
            _exit_code(made, outcome),
            round(seconds, 3),
            self._site.log_dir / made.log_name,
        )
        self._tries.attempts.append(attempt)
        self._on_attempt(attempt)

    def _unready(self, outcome: Literal["failed", "replan"], failure: Failure) -> Climb:
        """Nothing runs, so nothing was given up for it: what was tried stands in the attempts."""
        return Climb(LaunchResult(outcome, tuple(self._tries.attempts), failure=failure), None)

    def _template_file(self, plan: LaunchPlan) -> Path | None:
        """Write the chat template beside the launch (06 §6.6). Raises Unwritable."""
        if plan.template is None:
            return None
        path = self._site.run_dir / "template.jinja"
        with made_at(path):
            path.write_text(plan.template, encoding="utf-8")
        return path


def _exit_code(made: _Made, outcome: str) -> int | None:
    """The code of a process that ended by itself."""
    exited = made.running.child.exited
    return exited.result() if outcome == "exited" and exited.done() else None
