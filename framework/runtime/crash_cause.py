"""Why an engine ended by itself while it served, where something tells more than its exit code.

Called by runtime.replica with the last lines of the engine, which are hostile text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from framework.runtime.host_kills import host_kills
from framework.runtime.logs import LogBuffer
from framework.runtime.remote_devices import connection_broke, endpoints
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.request import RestartPolicy

KILLED = -9
# A process that an earlier manager started is no child of this one, and never tells how it ended.
UNKNOWN = None
WRAPPED_KILL = 128 + 9
# An abort prints a backtrace of every thread behind the line that tells the cause.
LINES = 400
# Saving the state of a prompt takes as much host memory again as it holds, above the limit of the cache.
SAVING = "saving prompt with length"
OUT_OF_HOST_MEMORY = "host_oom_killed"
# FM-18: what ran the host out of memory does so again; a second time is enough to see it.
HOST_KILLS_ALLOWED = 1


class CrashWatch:
    """What is remembered from the start of a process to tell why it ended. One per replica."""

    def __init__(self, *, count_kills: Callable[[], int | None] = host_kills) -> None:
        self._count_kills = count_kills
        self._kills = count_kills()

    def started(self) -> None:
        """A process serves from now on."""
        self._kills = self._count_kills()

    def cause(self, exit_code: int | None, plan: LaunchPlan | None, log: LogBuffer) -> Reason | None:
        """Why it ended, where that can be told. `log` holds what it has printed."""
        kills = (self._count_kills() or 0) - (self._kills or 0)
        lines = [line.text for line in log.last(LINES)]
        return crash_cause(exit_code, lines, plan, host_kills=kills)


def restart_policy(cause: Reason | None, policy: RestartPolicy) -> RestartPolicy:
    """The policy for the restart after this crash: one restart where host memory ran out (FM-18)."""
    if cause is None or cause.code != OUT_OF_HOST_MEMORY:
        return policy
    return replace(policy, max_crashes=min(policy.max_crashes, HOST_KILLS_ALLOWED))


def crash_cause(
    exit_code: int | None, lines: Sequence[str], plan: LaunchPlan | None, *, host_kills: int
) -> Reason | None:
    """The reason to show instead of the bare exit; None where the exit code is all there is.

    `host_kills` is how often the system has killed for lack of memory since the process started.
    """
    if host_kills > 0 and exit_code in (KILLED, WRAPPED_KILL, UNKNOWN):
        return _host_oom_killed(lines[-1] if lines else "", is_seen=exit_code is not UNKNOWN)
    if plan is not None and endpoints(plan) and connection_broke(lines[-LINES:]):
        return _rpc_lost(endpoints(plan))
    return None


def _host_oom_killed(last: str, *, is_seen: bool) -> Reason:
    """`is_seen`: its exit code says so as well. Else only the system's count of kills does, of whomever."""
    saving = " It was saving the state of a prompt, which takes memory besides." if SAVING in last else ""
    killed = "The system killed the engine because host memory ran out."
    if not is_seen:
        killed = (
            "The engine ended, and since it began to serve the system has killed a process because host"
            " memory ran out: most likely this one. How it ended is not known, since an earlier `paddock up`"
            " started it."
        )
    return Reason(
        "host_oom_killed",
        f"{killed}{saving}",
        'Bound the prompt cache with engine_args = ["--cache-ram", "MIB"], or use a shorter context.',
        "error",
        {"signal": 9 if is_seen else None},
    )


def _rpc_lost(names: Sequence[str]) -> Reason:
    return Reason(
        "rpc_lost",
        f"The engine ended because it lost the connection to {' or '.join(names)}.",
        "Start the ggml-rpc-server there again; the model is started again by itself.",
        "error",
        {"endpoints": list(names)},
    )
