"""The tokens of a prompt, asked of the engine where its answer did not tell them (08 §12).

llama-server leaves out the start of a message, and the counts in it, where its first token gives no text.
Called by generation at the end of such an answer, on the same lease. A failure leaves the guess by size that
is made where nothing is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from framework.proxy.errors import ProxyError
from framework.proxy.services import ProxyServices
from framework.proxy.upstream import UpstreamLost
from framework.proxy.usage import count
from framework.runtime.lease import Lease

OK = 200
# Counting takes milliseconds; nobody's answer waits longer for it.
PATIENCE_S = 2.0


async def prompt_tokens(
    services: ProxyServices, lease: Lease, path: str, body: Mapping[str, Any]
) -> int | None:
    """What the instance's route at `path` counts for the body of a generation; None where it does not."""
    asked = orjson.dumps({name: value for name, value in body.items() if name != "stream"})
    with suppress(ProxyError, UpstreamLost, TimeoutError, orjson.JSONDecodeError):
        async with asyncio.timeout(PATIENCE_S):
            answer = await services.upstream.post(lease, path, asked)
            try:
                told = orjson.loads(await answer.read_all(services.limits.error_limit_bytes))
                if answer.status == OK and isinstance(told, dict):
                    return count(told, "input_tokens")
            finally:
                answer.close()
    return None
