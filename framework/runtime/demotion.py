"""What a model is started without for now, because its processes did worse with it (05 §11, 04 §12).

One for each model, kept by its supervisor, in memory only: it is no ban. Another policy, another program,
another drafter or model file, a reload or a new manager gives everything back. Changed by runtime.replica
(crashes, tensor aborts) and runtime.yield_care (drafting that does not pay).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from framework.runtime.failures import describe_exit
from framework.runtime.identity import file_id
from framework.runtime.instance import Instance
from framework.runtime.start_signs import divides_tensors
from framework.values.engine import FileId
from framework.values.plan import NOTHING_WITHHELD, LaunchPlan, Withheld
from framework.values.reason import Reason
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from framework.values.speculation import drafts_by_model

# 05 §11.3: one crash may have any cause; a second one inside the window is a loop.
CRASHES_WITH_DRAFTING = 2
CRASHED_DRAFTING = "runtime_error"


@dataclass(frozen=True)
class _Mark:
    """Why speculation is withheld, and what that holds for."""

    reason: Reason
    policy: SpecPolicy
    args: tuple[str, ...]
    drafter: FileId | None
    until_s: float | None


@dataclass(frozen=True)
class _Scope:
    """The model and the program that all marks are about."""

    source: ModelSource
    main: FileId | None
    engine: FileId


@dataclass
class Demotion:
    """The marks of one model."""

    clock: Callable[[], float] = time.monotonic
    _mark: _Mark | None = None
    _tensor: Reason | None = None
    _scope: _Scope | None = None
    _crashes_at_s: list[float] = field(default_factory=list)

    def withheld(self, request: ModelRequest) -> Withheld:
        """What a start of this request goes without. Looks at files, so it is asked once for each start."""
        scope, mark = self._scope, self._mark
        if scope is None or scope.source != request.source or not _is_same(scope.main):
            self._mark = self._tensor = None
        elif mark is not None and not _is_same(mark.drafter):
            self._mark = None
        drafting = self.drafting(request)
        if scope is None or (drafting is None and self._tensor is None):
            return NOTHING_WITHHELD
        return Withheld(drafting, self._tensor, scope.engine)

    def drafting(self, request: ModelRequest) -> Reason | None:
        """Why this request is not to draft, as far as is known without looking at files."""
        mark = self._mark
        if (
            mark is None
            or (mark.policy, mark.args) != (request.spec, request.extra_args)
            or (mark.until_s is not None and self.clock() >= mark.until_s)
        ):
            self._mark = None
        return self._mark.reason if self._mark is not None else None

    def forget(self) -> None:
        """Everything is given again."""
        self._mark = self._tensor = self._scope = None
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
        if plan is None or result is None or not drafts_by_model(result.speculation):
            return None
        is_armed = divides_tensors(plan) and "mtp" in (result.speculation or "")
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
        instance.demoted = reason
        return reason

    def _set(self, plan: LaunchPlan, reason: Reason, until_s: float | None) -> None:
        self._belongs_to(plan)
        request = plan.request
        self._mark = _Mark(reason, request.spec, request.extra_args, _drafter_id(plan), until_s)

    def _belongs_to(self, plan: LaunchPlan) -> None:
        scope = _Scope(plan.request.source, file_id(plan.main_gguf), plan.engine.file)
        if self._scope != scope:
            self._mark = self._tensor = None
            self._scope = scope


def _is_same(file: FileId | None) -> bool:
    return file is None or file_id(file.path) == file


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
