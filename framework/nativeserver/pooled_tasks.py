"""What embeddings and rerank share: tasks that give back numbers instead of text (12 §12-13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framework.nativeserver.core import Task
from framework.nativeserver.field_table import Field, fault, read_field
from framework.nativeserver.services import Services

POOLING_NONE, POOLING_RANK = 0, 4
"""As libllama numbers them."""
MAX_INPUTS = 8192
"""Of one request."""
MOST_MODEL_NAME = 1024
"""Characters: the answer repeats it."""
_MODEL = Field(("model",), "string")


def pooled_tasks(
    services: Services, kind: str, inputs: Sequence[list[int]], *, embd_normalize: int = 2
) -> list[Task]:
    """One task for each input."""
    tasks = []
    for index, tokens in enumerate(inputs):
        task = services.bridge.new_task()
        task.kind, task.index, task.tokens, task.embd_normalize = kind, index, tokens, embd_normalize
        tasks.append(task)
    return tasks


def prompt_usage(inputs: Sequence[Sequence[int]]) -> dict[str, int]:
    """`usage` of a request that generates nothing."""
    n_tokens = sum(map(len, inputs))
    return {"prompt_tokens": n_tokens, "total_tokens": n_tokens}


def told_model(body: Mapping[str, Any], services: Services) -> str:
    """The `model` that a request names, else the server's; other routes always tell the server's.

    Raises ApiError when it is no string, or a long one.
    """
    name = read_field(_MODEL, body, {})
    if name is not None and len(name) > MOST_MODEL_NAME:
        raise fault("model", f"{len(name)} characters; a name may have at most {MOST_MODEL_NAME}")
    return services.model_name if name is None else str(name)
