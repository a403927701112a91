"""A prompt that is longer than a model's context goes to another model, where one is named (08 §9.5).

Called by the generation routes with the refusal of the first instance. Once: the second model's own
`overflow_to` is not followed.
"""

from __future__ import annotations

import logging

from framework.proxy.access import may_use
from framework.proxy.errors import ProxyError
from framework.proxy.exchange import Exchange
from framework.proxy.model_choice import ModelChoice

log = logging.getLogger(__name__)


def overflow_choice(exchange: Exchange, choice: ModelChoice, error: ProxyError) -> ModelChoice | None:
    """The model that takes over from `choice` after `error`; None: the client gets the error.

    A key that may not use it gets the error, too. Notes the change in the request.
    """
    manifest = exchange.services.current.manifest
    request = manifest.models.get(choice.id)
    if error.code != "context_length_exceeded" or request is None or request.live.overflow_to is None:
        return None
    name = request.live.overflow_to
    other = manifest.models.get(manifest.resolve(name) or "")
    if other is None or other.id == choice.id or not may_use(exchange.key, other):
        return None
    log.info("%s: the prompt is too long for %s and goes to %s", exchange.request.id, choice.id, other.id)
    exchange.request.model = other.id
    return ModelChoice(other.id, name, other)
