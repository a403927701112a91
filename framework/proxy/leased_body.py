"""The body of a generation for the instance of a lease, as `request_body` makes it (08 §5.7).

Called by the builders of all families, for every attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.proxy.exchange import Exchange
from framework.proxy.request_body import BodyStyle, generation_body
from framework.runtime.lease import Lease
from framework.values.request import LiveSettings


def leased_body(
    exchange: Exchange, asked: Mapping[str, Any], style: BodyStyle, lease: Lease, live: LiveSettings
) -> dict[str, Any]:
    """What was asked, with what depends on the instance. Raises ProxyError `invalid_body`."""
    return generation_body(
        asked,
        live,
        style,
        model_id=lease.model,
        slot_context=lease.slot_context,
        max_tokens_fallback=exchange.services.limits.max_tokens_fallback,
        reasoning=lease.reasoning,
    )
