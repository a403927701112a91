"""What only the native engine is told of a speculation policy: adaptive depth, and its guard against loops
(05 §14.1). Pure; called by emit.
"""

from __future__ import annotations

from framework.values.engine import Capabilities
from framework.values.request import SpecPolicy

ADAPTIVE_FLAG, CONTROLLER_FLAG = "--spec-dm-adaptive", "--spec-dm-controller"
GUARD_FLAG = "--reasoning-loop-guard"
# Numbers of the guard by their names in a manifest.
GUARD_FLAGS = {
    "min_reasoning_tokens": "--reasoning-loop-min-tokens",
    "window_tokens": "--reasoning-loop-window",
    "max_period": "--reasoning-loop-max-period",
    "min_repeated_coverage": "--reasoning-loop-min-coverage",
    "check_interval": "--reasoning-loop-check-interval",
    "interventions_max": "--reasoning-loop-interventions",
}
OFF = "off"
USUAL_CONTROLLER = "profit"
# The largest depth, where the policy names none.
MOST_ADAPTED = 3


def is_guarded(policy: SpecPolicy) -> bool:
    """Whether the policy wants a guard against loops."""
    return bool(policy.loop_guard.get("mode", OFF) != OFF)


def settings_in_use(policy: SpecPolicy) -> list[str]:
    """Settings of a policy that other engines cannot follow, by their names in a manifest."""
    found = ['depth = "adaptive"'] if policy.is_adaptive else []
    found += ["controller"] if policy.controller != USUAL_CONTROLLER else []
    return [*found, *(["loop_guard"] if is_guarded(policy) else [])]


def settings_not_built(policy: SpecPolicy, caps: Capabilities) -> list[str]:
    """Settings in use that a build of the native engine has no flags for; none where nothing is known."""
    flags = {'depth = "adaptive"': ADAPTIVE_FLAG, "controller": CONTROLLER_FLAG, "loop_guard": GUARD_FLAG}
    return [name for name in settings_in_use(policy) if caps.conclusive and not caps.has(flags[name])]


def controller_flags(policy: SpecPolicy, caps: Capabilities) -> tuple[str, ...]:
    """How the depth of drafts is ruled, whatever drafts."""
    if not caps.has(ADAPTIVE_FLAG):
        return ()
    is_fixed = policy.depth is not None and not policy.is_adaptive
    if is_fixed:
        return (ADAPTIVE_FLAG, "off")
    controller = (CONTROLLER_FLAG, policy.controller) if caps.has(CONTROLLER_FLAG) else ()
    return (ADAPTIVE_FLAG, "on", *controller)


def guard_flags(policy: SpecPolicy, caps: Capabilities) -> tuple[str, ...]:
    """The guard, which works whether anything drafts or not."""
    if not is_guarded(policy) or not caps.has(GUARD_FLAG):
        return ()
    numbers = [
        (flag, str(policy.loop_guard[name]))
        for name, flag in GUARD_FLAGS.items()
        if name in policy.loop_guard and caps.has(flag)
    ]
    return (GUARD_FLAG, str(policy.loop_guard["mode"]), *(token for pair in numbers for token in pair))
