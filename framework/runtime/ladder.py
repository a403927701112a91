"""The recovery ladder: try, change one thing, try again, or give up with a class (06 §12).

Rungs so far: S (start), P (another port), U (drop a section whose flag the build refuses), then R6
(classify). Changes accumulate: each rung starts from the last attempted line (06 §12.1).
Called by runtime.replica; a cancelled climb leaves no process behind.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from framework.engines.child_env import spawn_environment
from framework.engines.command_line import fill_line
from framework.engines.redaction import redact_argv
from framework.runtime import launch
from framework.runtime.failures import Outcome, StartEnd, classify, port_was_taken, rejected_flag
from framework.runtime.launch import Answer, Running, Site
from framework.runtime.readback import read_back
from framework.runtime.remote_devices import missing_servers
from framework.runtime.start_notes import start_notes
from framework.values.plan import Attempt, LaunchPlan, LaunchResult, Section
from framework.values.reason import Failure, Reason

PORT_TRIES = 3
FLAG_TRIES = 2
KEY_BYTES = 32
# 06 §12.8: however the rungs fall, one launch takes at most this many load time-outs.
TIMEOUTS_PER_LAUNCH = 3


@dataclass(frozen=True)
class Climb:
    """What came of a launch; `running` is set exactly when the result is `ready`."""

    result: LaunchResult
    running: Running | None


@dataclass
class Progress:
    """What a climb has used up so far."""

    sections: tuple[Section, ...]
    rung: str = "S"
    port_tries: int = 0
    flag_tries: int = 0


class Ladder:
    """One launch of one plan."""

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
    ) -> None:
        """`on_survivors` is given the processes that outlived the end of an attempt."""
        self._plan = plan
        self._site = site
        self._log_stem = log_stem
        self._mark = mark
        self._timeout_s = timeout_s
        self._on_spawn = on_spawn
        self._on_attempt = on_attempt
        self._on_survivors = on_survivors
        self._attempts: list[Attempt] = []
        self._dropped: list[Reason] = []
        self._began = time.monotonic()

    async def climb(self) -> Climb:
        """Attempts until healthy or out of rungs."""
        progress = Progress(self._plan.sections)
        while True:
            end = await self._attempt(progress)
            if isinstance(end, Climb):
                return end
            if not self._next_rung(progress, end):
                return Climb(self._failed(classify(end)), None)

    async def _attempt(self, progress: Progress) -> Climb | StartEnd:
        template = await asyncio.to_thread(self._template_file)
        port = self._site.ports.reserve()
        key = secrets.token_urlsafe(KEY_BYTES) if self._plan.request.engine.api_key else None
        argv = fill_line(progress.sections, port=port, template_path=template)
        env = spawn_environment(self._plan.env, api_key=key, mark=self._mark)
        log_name = f"{self._log_stem}-port-{port}-try{len(self._attempts) + 1}.log"
        before = self._site.log.newest
        try:
            running = await launch.start(self._site, argv, env, port=port, key=key, log_name=log_name)
        except BaseException:
            self._site.ports.release(port)
            raise
        try:
            self._on_spawn(running)
            answer = await launch.wait_ready(
                self._site, running, model_path=self._plan.main_gguf, timeout_s=self._left_s
            )
            lines = self._lines(before)
            # An engine that cannot reach a server goes on without its devices, as if they were not asked for.
            if answer.outcome == "healthy" and not missing_servers(self._plan, lines):
                return await self._ready(progress, running, argv, answer, log_name, lines)
        except BaseException:
            self._note(progress, argv, "cancelled", running, 0.0, log_name)
            await self._stop(running)
            raise
        outcome: Outcome = "incomplete" if answer.outcome == "healthy" else answer.outcome
        await self._stop(running)
        self._note(progress, argv, outcome, running, answer.seconds, log_name)
        # Of this attempt alone: what an earlier one said is no cause of this end.
        return self._start_end(running, outcome, answer.seconds, log_name, self._lines(before))

    async def _ready(
        self,
        progress: Progress,
        running: Running,
        argv: list[str],
        answer: Answer,
        log_name: str,
        lines: list[str],
    ) -> Climb:
        facts = await read_back(self._site.client, running, self._plan, answer.props, lines)
        self._note(progress, argv, "healthy", running, answer.seconds, log_name)
        self._site.log.shrink()
        result = replace(
            facts,
            attempts=tuple(self._attempts),
            degradations=(*self._dropped, *start_notes(lines), *facts.degradations),
            load_s=answer.seconds,
        )
        return Climb(result, running)

    async def _stop(self, running: Running) -> None:
        if survivors := (await launch.stop(self._site, running)).survivors:
            self._on_survivors(survivors)

    def _next_rung(self, progress: Progress, end: StartEnd) -> bool:
        """Change the one thing that may help; False when no rung is left. Order: P, U (06 §12.2)."""
        if time.monotonic() - self._began > TIMEOUTS_PER_LAUNCH * self._timeout_s():
            return False
        # P
        if port_was_taken(end) and progress.port_tries < PORT_TRIES:
            progress.port_tries += 1
            progress.rung = "P"
            return True
        # U
        flag = rejected_flag(end)
        section = next((s for s in progress.sections if s.kind == "optional" and flag in s.tokens), None)
        if flag and section and progress.flag_tries < FLAG_TRIES:
            progress.flag_tries += 1
            progress.rung = "U"
            progress.sections = tuple(s for s in progress.sections if s is not section)
            self._dropped.append(_flag_rejected(flag, section))
            return True
        return False

    def _left_s(self) -> float:
        whole = TIMEOUTS_PER_LAUNCH * self._timeout_s() - (time.monotonic() - self._began)
        return min(self._timeout_s(), whole)

    def _lines(self, after: int) -> list[str]:
        return [line.text for line in self._site.log.after(after)]

    def _start_end(
        self, running: Running, outcome: Outcome, seconds: float, log_name: str, lines: list[str]
    ) -> StartEnd:
        exited = running.child.exited
        return StartEnd(
            outcome,
            exited.result() if outcome == "exited" and exited.done() else None,
            lines,
            self._plan,
            str(self._site.log_dir / log_name),
            seconds,
        )

    def _note(
        self,
        progress: Progress,
        argv: list[str],
        outcome: Outcome | Literal["healthy", "cancelled"],
        running: Running,
        seconds: float,
        log: str,
    ) -> None:
        exited = running.child.exited
        attempt = Attempt(
            len(self._attempts) + 1,
            progress.rung,
            tuple(redact_argv(argv)),
            outcome,
            exited.result() if outcome == "exited" and exited.done() else None,
            round(seconds, 3),
            self._site.log_dir / log,
        )
        self._attempts.append(attempt)
        self._on_attempt(attempt)

    def _failed(self, failure: Failure) -> LaunchResult:
        return LaunchResult("failed", tuple(self._attempts), tuple(self._dropped), failure=failure)

    def _template_file(self) -> Path | None:
        """Write the chat template beside the launch (06 §6.6); a failure to write fails the launch."""
        if self._plan.template is None:
            return None
        path = self._site.run_dir / "template.jinja"
        path.write_text(self._plan.template, encoding="utf-8")
        return path


def _flag_rejected(flag: str, section: Section) -> Reason:
    return Reason(
        "flag_rejected",
        f"This llama-server build refused {flag}; the engine was started without it.",
        "Install a llama.cpp build that knows the flag to get the feature back.",
        "warning",
        {"flag": flag, "section": section.name},
    )
