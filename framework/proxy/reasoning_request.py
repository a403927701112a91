"""What a request asks of a model's reasoning, in the words of its chat template (08 §10). Pure.

Called while the body of an attempt is built, since the facts are those of the instance. The mapping itself is
`framework.models.thinking`'s; here are the fields of clients, and what standard clients leave out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.models.thinking import request_arguments
from framework.proxy.fields import flag, optional_object, optional_text
from framework.values.reasoning import LADDER, ReasoningFacts

KWARGS = "chat_template_kwargs"


def template_arguments(fields: Mapping[str, Any], facts: ReasoningFacts) -> dict[str, Any]:
    """`chat_template_kwargs` for a request; empty when there are none.

    `fields` are the body's, after the manifest's rules. What the client put there itself wins, key by key.
    Raises ProxyError `invalid_body` for values of another type.
    """
    effort = optional_text(fields, "reasoning_effort")
    if effort is None and isinstance(fields.get("reasoning"), Mapping):
        effort = optional_text(fields["reasoning"], "effort")
    effort = effort.strip().lower() if effort is not None else None
    thinking = switch(fields, "enable_thinking")
    if thinking is None and facts.template.reasoning_style == "enable_thinking" and effort in LADDER:
        # Standard clients have only the effort; without this they could not switch thinking.
        thinking = effort != "none"
    derived = request_arguments(
        facts.template,
        enable_thinking=thinking,
        effort=effort,
        preserve=switch(fields, "preserve_thinking"),
        architecture=facts.architecture,
    )
    return {**derived, **optional_object(fields, KWARGS)}


def switch(fields: Mapping[str, Any], name: str) -> bool | None:
    """A switch that may be left alone. Raises ProxyError `invalid_body`."""
    return flag(fields, name) if fields.get(name) is not None else None
