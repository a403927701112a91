"""One question to the engine on behalf of a client that may go away (12 §2.8). Called by the small routes."""

from __future__ import annotations

from starlette.requests import Request

from framework.nativeserver.client_watch import ClientWatch
from framework.nativeserver.core import Result, Task
from framework.nativeserver.services import Services


async def ask(request: Request, services: Services, task: Task) -> Result:
    """The one result of the task. Raises ApiError for an error, ClientGone when nobody waits any more."""
    watch = ClientWatch(request.receive)
    try:
        return await watch.race(services.bridge.ask(task))
    finally:
        watch.close()
