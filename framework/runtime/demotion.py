"""What a model is started without for now, because its processes did worse with it (05 §11, 04 §12).

One for each model, kept by its supervisor, in memory only: it is no ban. Another policy, another program,
another drafter, a reload or a new manager gives everything back. Changed by runtime.replica (crashes, tensor
aborts) and runtime.yield_care (drafting that does not pay).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from framework.runtime.failures import describe_exit
from framework.runtime.identity import file_id
from framework.runtime.instance import Instance
from framework.values.engine import FileId
from framework.values.plan import NOTHING_WITHHELD, LaunchPlan, Withheld
from framework.values.reason import Reason
from framework.values.request import ModelRequest, SpecPolicy

# 05 §11.3: one crash may have any cause; a second one inside the window is a loop.
CRASHES_WITH_DRAFTING = 2
DRAFTING = "draft-"


@dataclass(frozen=True)
class _Mark:
    """Why speculation is withheld, and what that holds for."""

    reason: Reason
    policy: SpecPolicy
    args: tuple[str, ...]
    drafter: FileId | None
    until_s: float | None


@dataclass
class Demotion:
    """The marks of one model."""

    clock: Callable[[], float] = time.monotonic
    _mark: _Mark | None = None
    _tensor: Reason | None = None
    _engine: FileId | None = None
    _crashes_at_s: list[float] = field(default_factory=list)

    def withheld(self, request: ModelRequest) -> Withheld:
        """What a start of this request goes without."""
        mark = self._mark
        if mark is not None and (self.is_over or not _holds(mark, request)):
            self._mark = mark = None
        if mark is None and self._tensor is None:
            return NOTHING_WITHHELD
        return Withheld(mark.reason if mark else None, self._tensor, self._engine)

    @property
    def is_over(self) -> bool:
        """Whether the time of a mark has passed, so that drafting is worth another try."""
        until_s = self._mark.until_s if self._mark is not None else None
        return until_s is not None and self.clock() >= until_s

    def forget(self) -> None:
        """Everything is given again."""
        self._mark = self._tensor = self._engine = None
        self._crashes_at_s.clear()

    def learn(self, instance: Instance) -> None:
        """A start ended; whether it had to give up dividing tensors holds for those to come (04 §12)."""
        if instance.plan is not None and instance.withheld.tensor is not None:
            self._belongs_to(instance.plan)
            self._tensor = instance.withheld.tensor

    def does_not_pay(self, instance: Instance, reason: Reason, *, for_s: float) -> None:
        """Drafting was measured to be slower than plain decoding; it is tried again after `for_s`."""
        if instance.plan is not None:
            self._set(instance.plan, reason, self.clock() + for_s)

    def keep_drafting(self) -> None:
        """Whether it pays does not matter any more."""
        if self._mark is not None and self._mark.until_s is not None:
            self._mark = None

    def crashed(self, instance: Instance, *, hard: bool) -> Reason | None:
        """Note the unexpected end of a ready process; why it is started again without drafting, if it is.

        05 §11.2: at once where a head drafted over divided tensors, which can pass the health check and die
        at the first decode. 05 §11.3: else after the second hard fault inside the window.
        """
        plan, result = instance.plan, instance.result
        if plan is None or result is None or not is_drafting(result.speculation):
            return None
        is_armed = plan.placement.split == "tensor" and "draft-mtp" in (result.speculation or "")
        if not is_armed and not hard:
            return None
        now_s, window_s = self.clock(), instance.request.live.restart.window_s
        recent = [at for at in self._crashes_at_s if now_s - at < window_s]
        self._crashes_at_s = [*recent, now_s]
        if not is_armed and len(self._crashes_at_s) < CRASHES_WITH_DRAFTING:
            return None
        code = instance.last_exit.code if instance.last_exit is not None else None
        reason = _crashed(result.speculation or "", code, len(self._crashes_at_s))
        self._crashes_at_s.clear()
        self._set(plan, reason, None)
        return reason

    def _set(self, plan: LaunchPlan, reason: Reason, until_s: float | None) -> None:
        self._belongs_to(plan)
        request = plan.request
        self._mark = _Mark(reason, request.spec, request.extra_args, _drafter_id(plan), until_s)

    def _belongs_to(self, plan: LaunchPlan) -> None:
        if self._engine != plan.engine.file:
            self._mark = self._tensor = None
            self._engine = plan.engine.file


def is_drafting(speculation: str | None) -> bool:
    """Whether a model or a head drafts; n-grams cost no process."""
    return any(part.strip().startswith(DRAFTING) for part in (speculation or "").split(","))


def _holds(mark: _Mark, request: ModelRequest) -> bool:
    same = (mark.policy, mark.args) == (request.spec, request.extra_args)
    return same and (mark.drafter is None or file_id(mark.drafter.path) == mark.drafter)


def _drafter_id(plan: LaunchPlan) -> FileId | None:
    return file_id(Path(plan.spec.drafter)) if plan.spec.drafter else None


def _crashed(speculation: str, code: int | None, times: int) -> Reason:
    often = "" if times == 1 else f", {times} times within the crash window"
    return Reason(
        "runtime_error",
        f"The engine ended with {describe_exit(code)} while it drafted ({speculation}){often};"
        " it serves on without speculation.",
        "Look at `paddock logs`; an update of llama.cpp may help. `paddock reload` tries it again.",
        "warning",
        {"speculation": speculation, "exit_code": code},
    )
