"""Whether an engine that is ready can generate (06 §12.7, rung R3).

Asked by runtime.ladder where a head drafts over divided tensors: there an engine can pass its health check
and break at the first tokens.
"""

from __future__ import annotations

import asyncio

from framework.runtime.engine_client import EngineClient
from framework.runtime.launch import Running
from framework.runtime.start_signs import divides_tensors, drafts_with_head
from framework.values.plan import LaunchPlan

TIMEOUT_S = 60.0
# One that breaks at an answer does so while or right after it is sent.
SETTLE_S = 0.25
OK = 200
GREETING = {"prompt": "Hi", "n_predict": 4, "temperature": 0, "stream": False, "cache_prompt": False}


def needs_probe(plan: LaunchPlan) -> bool:
    """Whether being healthy proves too little of this launch."""
    return divides_tensors(plan) and drafts_with_head(plan)


async def can_decode(client: EngineClient, running: Running, *, left_s: float) -> bool:
    """Let it generate a few tokens; False when it answers with an error, not in time, or ends.

    `left_s` are the seconds that the launch has left; a probe takes no more, and `TIMEOUT_S` at most.
    """
    limit_s = min(TIMEOUT_S, left_s)
    status = await client.complete(running.port, running.key, GREETING, limit_s)
    await asyncio.wait({running.child.exited}, timeout=SETTLE_S)
    return status == OK and running.child.alive
