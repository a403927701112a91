"""States, queues, slots and speed of models and their instances. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from framework.api.metrics.labels import gauge, who
from framework.telemetry.exposition import Family, Sample
from framework.values.instance import SERVING, InstanceView, ModelView, State


def models(views: tuple[ModelView, ...]) -> Iterator[Family]:
    """Each declared model."""
    names = [({"model": view.request.id}, view) for view in views]
    yield gauge(
        "model_up",
        "1 while the model can answer at once.",
        (Sample(model, int(view.state is State.READY)) for model, view in names),
    )
    yield gauge(
        "model_state",
        "1 for the state that the model is in.",
        (Sample({**model, "state": view.state.value}, 1) for model, view in names),
    )
    yield gauge(
        "queue_waiting",
        "Requests that wait for the model.",
        (Sample(model, view.queue.waiting) for model, view in names),
    )
    yield gauge(
        "queue_limit",
        "Requests that may wait for the model.",
        (Sample(model, view.queue.limit) for model, view in names),
    )
    yield gauge(
        "queue_oldest_wait_seconds",
        "How long the request that came first has waited; 0 while none waits.",
        (Sample(model, view.queue.oldest_wait_s or 0.0) for model, view in names),
    )


def instances(views: tuple[ModelView, ...]) -> Iterator[Family]:
    """Each instance; during a replacement a replica has two, and the one that serves stands first."""
    each = tuple(one for view in views for one in view.instances)
    yield gauge(
        "instance_state",
        "1 for the state of a replica's instance.",
        (Sample({**who(one), "state": one.state.value}, 1) for one in each),
    )
    serving = tuple(one for one in each if one.state in SERVING)
    yield gauge(
        "instance_restarts", "Times that it was started again.", _each(each, lambda one: one.restarts)
    )
    yield gauge("instance_inflight", "Requests that it serves now.", _each(serving, lambda one: one.inflight))
    yield gauge(
        "slots",
        "Slots of an instance by what they do.",
        (
            Sample({**who(one), "state": state}, count)
            for one in serving
            for state, count in Counter(slot.state for slot in one.slots).items()
        ),
    )
    yield gauge(
        "slots_context_tokens",
        "Tokens that the slots hold.",
        _each(serving, lambda one: sum(slot.context_tokens for slot in one.slots)),
    )
    yield gauge(
        "prompt_tokens_per_second",
        "Tokens of prompts that the engine reads a second, all slots together.",
        _each(serving, lambda one: one.prompt_tokens_per_s),
    )
    yield gauge(
        "generation_tokens_per_second",
        "Tokens that the engine generates a second, all slots together.",
        _each(serving, lambda one: one.generation_tokens_per_s),
    )


def memory(views: tuple[ModelView, ...]) -> Iterator[Family]:
    """What an engine says that it took of each device."""
    yield gauge(
        "model_allocated_bytes",
        "Memory that the engine says it took.",
        (
            Sample({**who(one), "device": device}, taken)
            for view in views
            for one in view.instances
            if one.running is not None
            for device, taken in one.running.allocated_bytes.items()
        ),
    )


def _each(views: Iterable[InstanceView], value: Callable[[InstanceView], float | None]) -> Iterator[Sample]:
    for view in views:
        found = value(view)
        if found is not None:
            yield Sample(who(view), found)
