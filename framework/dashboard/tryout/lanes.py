"""One of the models on the page Try: what it can be asked, and what happens when it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from framework.dashboard.pages.instance_facts import ProgressFacts, progress_of, serving_instance, whole_s
from framework.dashboard.states import Look, look_of_model
from framework.dashboard.updates import Fragment
from framework.dashboard.urls import model_url
from framework.models.gguf_fields import GgufHeader
from framework.models.template_caps import template_capabilities
from framework.models.thinking import USUAL_LEVELS
from framework.values.instance import ModelView, State
from framework.values.pool import PoolView
from framework.values.reason import Reason
from framework.values.reasoning import TemplateCapabilities
from framework.values.request import ModelRequest

Kind = Literal["chat", "text", "none"]
"""Answers a conversation; continues a text; does neither."""
# Flags that make llama-server an engine for vectors or ranks alone.
NO_TEXT_FLAGS = frozenset({"--embedding", "--embeddings", "--rerank", "--reranking"})
# Encoders: they read a text whole and never write one.
ENCODERS = ("bert", "t5encoder")
CANNOT = {
    "flags": "Its engine_args make it an engine for embeddings or ranking: it cannot chat. Its routes are "
    "/v1/embeddings and /v1/rerank.",
    "file": "Its file holds an embedding or ranking model: it cannot chat. Its routes are /v1/embeddings and "
    "/v1/rerank.",
}
CONTINUES = (
    "Has no chat template: it continues the text of your message. Earlier messages, the system prompt, tools "
    "and the form of the answer are not sent to it."
)
LOADED = frozenset({State.READY, State.DRAINING})
ON_THE_WAY = frozenset({State.PENDING, State.FETCHING, State.PLANNING, State.STARTING})
MOST_NAMED = 3


@dataclass(frozen=True)
class Ability:
    """What a model can be asked. `cannot` says why, where it can be asked nothing here; `efforts` are values
    of `reasoning_effort` with their words, none where it cannot be chosen."""

    kind: Kind
    cannot: str = ""
    efforts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class LaneState:
    """The state of a lane's model as it is now. `outlook` tells what the next message does."""

    id: str
    name: str
    look: Look
    progress: ProgressFacts | None
    outlook: tuple[str, ...]
    error: Reason | None


@dataclass(frozen=True)
class Lane:
    """One model beside which answers stand."""

    number: int
    name: str
    url: str
    field: str
    kind: Kind
    note: str
    efforts: tuple[tuple[str, str], ...]
    effort: str
    state: LaneState


def ability_of(request: ModelRequest, header: GgufHeader | None) -> Ability:
    """What a model can be asked, by its declaration and the header of its file; None is not known yet: then
    it is asked as a chat, and the engine has the last word."""
    if NO_TEXT_FLAGS & {argument.partition("=")[0] for argument in request.extra_args}:
        return Ability("none", CANNOT["flags"])
    if header is not None and _is_encoder(header):
        return Ability("none", CANNOT["file"])
    template = request.template or (header.chat_template if header is not None else None)
    is_base = header is not None and not header.template_bytes and not template
    if is_base:
        return Ability("text")
    return Ability("chat", efforts=_efforts(template_capabilities(template, request.id)))


def lane_state(number: int, view: ModelView, pools: Iterable[PoolView]) -> LaneState:
    """The state of a model, with what a message to it does."""
    instance = serving_instance(view)
    failed = view.state in (State.FAILED, State.BACKOFF)
    return LaneState(
        id=f"try-state-{number}",
        name=view.request.id,
        look=look_of_model(view),
        progress=progress_of(instance) if instance is not None else None,
        outlook=tuple(_outlook(view, pools)),
        error=instance.last_error if failed and instance is not None else None,
    )


def lane_of(number: int, view: ModelView, ability: Ability, effort: str, state: LaneState) -> Lane:
    """A lane; an effort that the model does not know is not chosen."""
    note = ability.cannot or (CONTINUES if ability.kind == "text" else "")
    return Lane(
        number=number,
        name=view.request.id,
        url=model_url(view.request.id),
        field=("model", "with")[number],
        kind=ability.kind,
        note=note,
        efforts=ability.efforts,
        effort=effort if effort in dict(ability.efforts) else "",
        state=state,
    )


def lane_fragment(state: LaneState) -> Fragment:
    """The part of a lane that changes by itself."""
    return Fragment(state.id, "_try_state.html", "state", state)


def _is_encoder(header: GgufHeader) -> bool:
    architecture = header.architecture or ""
    # 0 is no pooling at all; most generating models have no such key.
    pooled = bool(header.pooling_type) and header.is_causal is not True
    return header.is_causal is False or pooled or architecture.endswith(ENCODERS)


def _efforts(template: TemplateCapabilities) -> tuple[tuple[str, str], ...]:
    if not template.switchable:
        return ()
    if template.reasoning_style == "enable_thinking":
        return (("none", "off"), ("high", "on"))
    levels = template.effort_levels or USUAL_LEVELS
    return tuple((level, level) for level in dict.fromkeys(("none", *levels)))


def _outlook(view: ModelView, pools: Iterable[PoolView]) -> Iterable[str]:
    if view.state in LOADED:
        return
    if view.state in ON_THE_WAY:
        yield "A message waits until it is ready."
        if (eta_s := whole_s(view.queue.eta_s)) is not None:
            yield f"That takes about {eta_s:.0f} s more."
        return
    if view.state is State.FAILED:
        yield "Its last start failed; a message gets that as its answer until it is reloaded."
        return
    if view.stopped_by_command or view.request.live.load == "manual":
        why = "It was unloaded by command" if view.stopped_by_command else 'Its manifest says load = "manual"'
        yield f"{why}: no message loads it. Load it on its page."
        return
    yield "Not loaded: the first message loads it, which takes a while."
    yield from _who_leaves(view, pools)


def _who_leaves(view: ModelView, pools: Iterable[PoolView]) -> Iterable[str]:
    pool = next((pool for pool in pools if pool.limits.name == view.request.pool.name), None)
    if pool is None:
        return
    models = {resident.instance: resident.model for resident in pool.residents}
    leaving = _named(models, pool.next_to_leave, view.request.id)
    if leaving:
        more = f", then {', '.join(leaving[1:MOST_NAMED])}" if leaving[1:] else ""
        yield f"If memory is short, {leaving[0]} makes room first{more}."
    elif pool.residents:
        yield "If memory is short, nothing makes room for it now."


def _named(models: Mapping[str, str], instances: Iterable[str], besides: str) -> list[str]:
    return list(dict.fromkeys(models[one] for one in instances if one in models and models[one] != besides))
