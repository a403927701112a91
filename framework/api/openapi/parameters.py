"""The query parameters of `/api/v1` by their name, with the bounds that the routes have. Pure data.

Which route reads which is declared with the route; a parameter means the same wherever it is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.api.event_kinds import EVENT_FILTERS
from framework.api.event_routes import MAX_EVENT_ID, MAX_LIMIT
from framework.api.inspect_query import LONGEST_DEVICE, MOST_LAYERS
from framework.api.model_routes import MAX_LINES, MAX_REPLICA
from framework.api.openapi.schemas import Schema, one_of
from framework.api.request_query import LONGEST_S, STATUS_PATTERN
from framework.api.request_routes import FORMATS
from framework.manifest.number_values import LARGEST_BATCH, LARGEST_CONTEXT, MOST_SLOTS
from framework.values.cache_types import CACHE_TYPES


def _number(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


SWITCH = one_of("on", "off")
KINDS = "|".join(CACHE_TYPES)

QUERY: Mapping[str, tuple[Schema, str]] = {
    "model": ({"type": "string"}, "Name or alias of a model."),
    "key": ({"type": "string"}, "Name of an access key."),
    "status": ({"type": "string", "pattern": STATUS_PATTERN}, "Status of a request, or a word for several."),
    "last_s": (_number(1, LONGEST_S), "Requests that came in the last so many seconds."),
    "took_s": (_number(1, LONGEST_S), "Requests that took at least so many seconds."),
    "format": (one_of(*FORMATS), "Form of the answer."),
    "kind": (one_of(*EVENT_FILTERS), "Kind of event; `outcomes` is all but the steps of starts and stops."),
    "since": (_number(0, MAX_EVENT_ID), "What came after this event."),
    "before": (_number(0, MAX_EVENT_ID), "What came before this event, or this place of the request log."),
    "limit": (_number(1, MAX_LIMIT), "Most that is answered."),
    "lines": (_number(0, MAX_LINES), "Last lines of the log."),
    "replica": (_number(0, MAX_REPLICA), "Number of a replica."),
    "follow": (one_of("0", "1"), "Go on with new lines, as server-sent events."),
    "context": (_number(1, LARGEST_CONTEXT), "Tokens of all slots together."),
    "slots": (_number(1, MOST_SLOTS), "Slots."),
    "kv_cache": (
        {"type": "string", "pattern": f"^({KINDS})(:({KINDS}))?$"},
        "Type of the cache, or of keys and values.",
    ),
    "ubatch": (_number(1, LARGEST_BATCH), "Tokens of a physical batch."),
    "unified": (SWITCH, "One cache for all slots."),
    "flash_attn": (SWITCH, "Flash attention."),
    "swa_full": (SWITCH, "The whole cache of a sliding window."),
    "offload": (_number(0, MOST_LAYERS), "Layers on GPUs."),
    "device": ({"type": "string", "maxLength": LONGEST_DEVICE, "pattern": "^[ -~]+$"}, "Device by its name."),
}
