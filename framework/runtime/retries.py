"""Whether a request that lost its engine may be tried once more (07 §9.2). Called by runtime.supervisor."""

from __future__ import annotations

from framework.runtime import refusals
from framework.runtime.demotion import CRASHED_DRAFTING
from framework.runtime.engine_client import accepts
from framework.runtime.instance import Instance
from framework.runtime.lease import FailureKind, RetryVerdict
from framework.runtime.stall import WEDGED
from framework.values.instance import State
from framework.values.reason import Reason

# The kernel closes the sockets of a killed process one by one: for a moment its port takes connections after
# the request's own was cut.
PORT_OUTLIVES_S = 0.15
# 07 §9.2: what the exit of a dead child may take to be seen, here on a machine that swaps.
EXIT_SEEN_S = 3.0
# Longer than this and the client had better come back than hold its connection (07 §9.2 step 8).
SHORT_DELAY_S = 1.0
# After these the client decides whether to send it again: step 7 (serving on without drafting), and PL-03.
FINAL = frozenset({CRASHED_DRAFTING, WEDGED})
RETRYABLE_KINDS = frozenset({"connect", "read", "write", "close", "protocol", "early_end"})
LOST = RetryVerdict(False, "connection_lost")


def may_be_repeated(kind: FailureKind, *, opened: bool) -> bool:
    """Steps 1 to 3: nothing of the answer was sent on, and it is the connection that broke."""
    return not opened and kind in RETRYABLE_KINDS


async def has_ended(instance: Instance, url: str) -> bool:
    """Step 6: whether a serving instance is over after all, or its connection only had passing trouble."""
    if await instance.exit_seen(PORT_OUTLIVES_S):
        return True
    if await accepts(url):
        return False
    await instance.exit_seen(EXIT_SEEN_S)
    return True


def after_exit(current: Instance | None, *, serving: bool, cause: Reason | None = None) -> RetryVerdict:
    """Steps 5 and 7 to 9. `current` is what came of the replica, `serving` whether any replica is ready.

    `cause`: what is known of the end of its process. Requests that got nothing out of a living engine have
    waited for a time-out, as those of step 2: another wait of that length is their client's to decide.
    """
    if serving:
        return RetryVerdict(True)
    if current is None or current.state in (State.STOPPED, State.FAILED):
        return LOST
    is_final = cause is not None and cause.code in FINAL
    if is_final or current.rest_s > SHORT_DELAY_S:
        retry_after_s = refusals.retry_after_s(current.rest_s)
        return RetryVerdict(False, "instance_restarting", retry_after_s, cause)
    return RetryVerdict(True)
