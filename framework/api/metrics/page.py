"""The page `/metrics`. Who may read `/api/v1` may read this.

Values are taken on the event loop, where they are consistent, and become text in a thread: many models make
many lines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.described import TEXT, describes
from framework.api.endpoint import PRIVATE
from framework.api.metrics.engines import engines
from framework.api.metrics.manager import keys, manager, process, requests_now
from framework.api.metrics.models import instances, memory, models
from framework.api.metrics.pools import devices, holders
from framework.api.metrics.speculation import reasons, speculation, speeds_of
from framework.api.services import Services
from framework.telemetry.exposition import MEDIA_TYPE, Family, render
from framework.values.instance import ModelView
from framework.values.pool import PoolView

PATH = "/metrics"


@describes(media_types=(TEXT,))
async def read_metrics(_request: Request, services: Services, _caller: Caller) -> Response:
    """All metrics as they are now, in Prometheus' text format."""
    said = await services.engine_metrics.collect()
    families = (
        *manager(services),
        *fleet_families(services.fleet.views(), services.fleet.pools()),
        requests_now(services.requests.views()),
        *keys(services, time.monotonic()),
        *services.meters.families(),
        *engines(said),
    )
    text = await asyncio.to_thread(lambda: render((*process(), *families)))
    return Response(text.encode(errors="replace"), media_type=MEDIA_TYPE, headers=PRIVATE)


def fleet_families(views: Iterable[ModelView], pools: Iterable[PoolView]) -> Iterator[Family]:
    """What the status of models and pools says."""
    views, pools = tuple(views), tuple(pools)
    yield from models(views)
    yield from instances(views)
    yield reasons(views, pools)
    yield from speculation(views)
    yield from speeds_of(views)
    yield from devices(pools)
    yield from holders(pools)
    yield from memory(views)
