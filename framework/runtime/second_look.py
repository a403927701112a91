"""Models that are down although they should be up: is there reason to try again? (07 §4.7)

Called by runtime.fleet, for every model, when memory came free and when files may have changed.
"""

from __future__ import annotations

from framework.runtime.identity import FilesIdentity
from framework.runtime.replica import Replica
from framework.runtime.supervisor import Supervisor
from framework.values.instance import State


def memory_came_free(model: Supervisor, *, failed: bool) -> None:
    """What should be up without anybody asking, and made room, comes back, without sending others away.

    `failed`: what found no room tries again as well. Others forget that they found none.
    """
    if model.stopped_by_command or model.removed:
        return
    for replica in model.replicas:
        if model.request.live.load != "at-start":
            replica.forget_no_room()
        elif replica.was_evicted or (failed and replica.found_no_room):
            replica.start("memory may be free", may_evict=False)


def failed_replicas(model: Supervisor) -> list[Replica]:
    """Replicas that gave up although the model should be up without anybody asking."""
    if model.request.live.load != "at-start" or model.stopped_by_command or model.removed:
        return []
    failed = (r for r in model.replicas if r.current is not None and r.current.state is State.FAILED)
    return [replica for replica in failed if not replica.busy]


def retry_if_changed(replica: Replica, now: FilesIdentity) -> None:
    """Start a failed replica whose files changed and then stayed the same for two looks.

    A file that is being copied changes all the time and is not worth a look before it is whole.
    """
    if now != replica.failure.files and now == replica.failure.seen:
        replica.start("a file has changed")
    replica.failure.seen = now
