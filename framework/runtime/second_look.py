"""Models that are down although they should be up: is there reason to try again? (07 §4.7)

Called by runtime.fleet, for every model, when memory came free and when files may have changed.
"""

from __future__ import annotations

from framework.runtime.identity import FilesIdentity
from framework.runtime.refusals import OF_MEMORY
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
            _forget_no_room(replica)
        elif replica.was_evicted or (failed and _found_no_room(replica)):
            replica.start("memory may be free", may_evict=False)


def _found_no_room(replica: Replica) -> bool:
    instance = replica.current
    error = instance.last_error if instance is not None and instance.state is State.FAILED else None
    return error is not None and error.code in OF_MEMORY and not replica.busy


def _forget_no_room(replica: Replica) -> None:
    """Nothing is wrong with a model that only found no room."""
    if (instance := replica.current) is not None and _found_no_room(replica):
        instance.last_error = None
        replica.failure.forget()
        instance.move(State.STOPPED, "memory came free; the next request tries again")


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
