"""One layer of the usual kinds: what mixes tokens, then a feed-forward part (measured rules). Pure.

Which norms there are, and where, is read off the tensors, so that architectures we have never seen are built
as well. Called by graph_model.
"""

from __future__ import annotations

from collections.abc import Callable

from framework.planning.memory import graph_per_layer
from framework.planning.memory.graph_attention import attention, attention_output
from framework.planning.memory.graph_build import GraphBuild
from framework.planning.memory.graph_feed_forward import (
    NORM_OF_EXPERTS,
    NORM_OF_EXPERTS_ASIDE,
    ROUTES_FIRST,
    Routing,
    experts,
    experts_and_dense,
    feed_forward,
    route,
)
from framework.planning.memory.graph_recurrent import fetch_tail, is_recurrent, recurrent
from framework.planning.memory.shape import NORMS_WITHOUT_WEIGHTS, PARALLEL_HYBRIDS
from framework.planning.memory.tensor_table import LayerTensors

Fetch = Callable[[], None]
# The residual comes first in their sums, and is what a sum writes over.
RESIDUAL_FIRST = frozenset({"jamba", "lfm2", "lfm2moe", "openelm"})
RESIDUAL_FIRST_AFTER_FEED_FORWARD = (RESIDUAL_FIRST - {"openelm"}) | {"phi3", "phimoe"}
# Parallel layers: the header says whether they are.
EITHER_WAY = frozenset({"gptneox"})
# Attention goes through its output matrix before the feed-forward part.
OUTPUT_BEFORE_FEED_FORWARD = frozenset({"phi2"})
# The residual is added after both.
RESIDUAL_LAST = frozenset({"falcon", "plamo"})
PROJECTIONS = ("attn_qkv", "attn_q", "attn_q_a")
NORMS_BETWEEN = ("ffn_norm", "post_attention_norm", "attn_post_norm", "attn_output_norm", "post_ffw_norm")


def build_layer(build: GraphBuild, x: int, number: int, fetch_next: Fetch) -> int:
    """One layer, residual sums included. The last one goes on with the tokens that are wanted only.

    `fetch_next` is called where the engine fetches a tail for the next recurrent layer.
    """
    tensors = build.table.layer(number)
    has_experts = tensors.has("ffn_gate_inp")
    fetch_early, fetch_late = (_nothing, fetch_next) if has_experts else (fetch_next, _nothing)
    bare = build.shape.architecture in NORMS_WITHOUT_WEIGHTS
    normed = build.norm(x) if bare or tensors.has("attn_norm") else x
    if not _mixes(tensors):
        entering = build.norm(x) if tensors.has("ffn_norm") else normed
        mixed = feed_forward(build, entering, tensors)
        fetch_late()
        mixed, x = _wanted(build, mixed, x)
        return _sum(build, mixed, x)
    if _is_parallel(build, tensors):
        return _parallel_layer(build, x, normed, number)
    aside = _Aside(build, x, tensors)
    if aside.comes_first:
        fetch_early = aside.run
    mixed = _mixed(build, x, normed, number, fetch_early)
    mixed, x = _wanted(build, mixed, x)
    inner = _sum(build, mixed, x, residual_first=build.shape.architecture in RESIDUAL_FIRST)
    if not (tensors.has("ffn_up") or has_experts):
        return inner
    if has_experts and tensors.has(NORM_OF_EXPERTS):
        leaving = experts_and_dense(build, inner, tensors)
    else:
        entering = build.norm(inner) if _norms_before_feed_forward(build, tensors) else inner
        leaving = feed_forward(build, entering, tensors, aside.routing)
    fetch_late()
    first = build.shape.architecture in RESIDUAL_FIRST_AFTER_FEED_FORWARD
    x = _sum(build, leaving, inner, residual_first=first)
    if aside.made is not None:
        x = _sum(build, aside.made, x)
    if graph_per_layer.has_slices(build, tensors):
        x = _sum(build, graph_per_layer.gated_slice(build, x, tensors), x, residual_first=True)
    return _normed_at_the_end(build, x, tensors)


class _Aside:
    """What some models compute out of a layer's input before attention goes through its output matrix."""

    def __init__(self, build: GraphBuild, x: int, tensors: LayerTensors) -> None:
        self._build, self._x, self._tensors = build, x, tensors
        self._routes = build.shape.architecture in ROUTES_FIRST and tensors.has("ffn_gate_inp")
        self._mixes = tensors.has(NORM_OF_EXPERTS_ASIDE) and tensors.has("ffn_gate_inp")
        self.routing: Routing | None = None
        self.made: int | None = None

    @property
    def comes_first(self) -> bool:
        """Whether there is anything."""
        return self._routes or self._mixes

    def run(self) -> None:
        """Choose experts, or go through them, for the tokens that are wanted."""
        build, tokens = self._build, self._build.tokens
        if self._routes:
            self.routing = route(build, self._x, self._tensors)
        else:
            (x,) = _wanted(build, self._x)
            self.made = experts(build, build.norm(x), self._tensors)
        build.tokens = tokens


def _nothing() -> None:
    """Nothing is fetched here."""


def _wanted(build: GraphBuild, *values: int) -> tuple[int, ...]:
    """The rows of `values` that are wanted: all, except in the last layer."""
    if build.outputs == build.tokens:
        return values
    build.tokens = build.outputs
    return tuple(build.plain(build.embedding, value, build.wanted) for value in values)


def _mixed(build: GraphBuild, x: int, normed: int, number: int, fetch_next: Fetch) -> int:
    """Attention, a recurrence, or both side by side."""
    tensors = build.table.layer(number)
    if build.shape.architecture in PARALLEL_HYBRIDS:
        seen = attention(build, normed, tensors, number)
        tail = fetch_tail(build, build.device)
        attended: list[int] = []

        def finish_attention() -> None:
            attended.append(attention_output(build, seen, tensors, number))

        remembered = recurrent(build, build.norm(x), tensors, tail, finish_attention)
        return build.plain(build.embedding, *attended, remembered, overwrites=True)
    if is_recurrent(tensors):
        tail = build.tails[number] if number in build.tails else fetch_tail(build, build.device)
        return recurrent(build, normed, tensors, tail, fetch_next)
    if not any(tensors.has(name) for name in PROJECTIONS):  # an output matrix stands in for attention
        return build.weighted(build.embedding, normed)
    seen = attention(build, normed, tensors, number)
    fetch_next()
    return attention_output(build, seen, tensors, number)


def _parallel_layer(build: GraphBuild, x: int, normed: int, number: int) -> int:
    """Attention and feed-forward part read the same input. Which of them comes first, and where the residual
    is added, decides what is in memory at the same time.
    """
    tensors, architecture = build.table.layer(number), build.shape.architecture
    seen = attention(build, normed, tensors, number)
    if architecture in OUTPUT_BEFORE_FEED_FORWARD:
        attended, normed, x = _wanted(build, attention_output(build, seen, tensors, number), normed, x)
        return _sum(build, _sum(build, attended, feed_forward(build, normed, tensors)), x)
    if tensors.has("ffn_norm") or tensors.has("attn_norm_2"):  # norms of their own
        (x,) = _wanted(build, x)
        entering = build.norm(x)
    else:
        entering, x = _wanted(build, normed, x)
    fed = feed_forward(build, entering, tensors)
    if architecture in RESIDUAL_LAST:
        return _sum(build, _sum(build, fed, attention_output(build, seen, tensors, number)), x)
    return _sum(build, _sum(build, fed, x), attention_output(build, seen, tensors, number))


def _sum(build: GraphBuild, new: int, residual: int, *, residual_first: bool = False) -> int:
    pair = (residual, new) if residual_first else (new, residual)
    return build.plain(build.embedding, *pair, overwrites=True)


def _mixes(tensors: LayerTensors) -> bool:
    """Whether a layer has more than a feed-forward part."""
    return is_recurrent(tensors) or any(tensors.has(name) for name in ("attn_output", "attn_qkv", "attn_q"))


def _is_parallel(build: GraphBuild, tensors: LayerTensors) -> bool:
    if build.shape.architecture in EITHER_WAY:
        return bool(build.shape.has_parallel_residual)
    return (
        tensors.has("attn_norm")
        and tensors.has("attn_output")
        and (tensors.has("ffn_up") or tensors.has("ffn_gate_inp"))
        and not any(tensors.has(name) for name in NORMS_BETWEEN)
        and "ffn_norm" not in tensors.dims
    )


def _norms_before_feed_forward(build: GraphBuild, tensors: LayerTensors) -> bool:
    if (
        build.shape.architecture in NORMS_WITHOUT_WEIGHTS
        or tensors.has("ffn_norm")
        or "ffn_norm" in tensors.dims
    ):
        return True
    return tensors.has("post_attention_norm") and tensors.has("attn_norm")


def _normed_at_the_end(build: GraphBuild, x: int, tensors: LayerTensors) -> int:
    """BERT norms what a layer hands on."""
    if not tensors.has("layer_output_norm"):
        return x
    return build.norm(x)
