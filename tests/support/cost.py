"""What work costs in processor time, on a machine that does other things too.

A collection of garbage, a cold cache or a busy neighbour make a run dearer, nothing makes one cheaper: the
least of several runs tells of the work itself.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable

TRIES = 3


def cost_s(work: Callable[[], object]) -> float:
    """Processor seconds of one run in this process, the collector being off."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        begun = time.process_time()
        work()
        return time.process_time() - begun
    finally:
        if was_on:
            gc.enable()


def least_cost_s(work: Callable[[], object], *, below_s: float = 0.0) -> float:
    """The least cost of a few runs; a run `below_s` is good enough and ends them."""
    least_s = cost_s(work)
    for _ in range(TRIES - 1):
        if least_s < below_s:
            break
        least_s = min(least_s, cost_s(work))
    return least_s


def least_cost_of_child_s(run: Callable[[], object], *, below_s: float) -> float:
    """As `least_cost_s`, for work that `run` has done by a child process and waits for."""
    least_s = float("inf")
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent_s = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
        least_s = min(least_s, spent_s)
        if least_s < below_s:
            break
    return least_s
