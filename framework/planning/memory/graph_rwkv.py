"""Operations of RWKV layers, in the engine's order (measured rules). Pure.

A layer mixes each token with the one before it, scans, and mixes again. Called by graph_model, for versions 6
and 7 and for the models that have such layers in the place of attention.
"""

from __future__ import annotations

from collections.abc import Callable

from framework.planning.memory.graph_build import F32_BYTES, GraphBuild
from framework.planning.memory.graph_feed_forward import dense
from framework.planning.memory.graph_recurrent import fetch_tail, scanned, sequence
from framework.planning.memory.recurrent_state import state_elements
from framework.planning.memory.tensor_table import LayerTensors

# Copies of a token that version 6 mixes with different weights.
MIXED_SIX = 5


def is_rwkv(tensors: LayerTensors) -> bool:
    """Whether a layer is one of these."""
    return tensors.has("time_mix_w1") and tensors.has("time_mix_output")


def fetch_memory(build: GraphBuild, number: int, device: int) -> None:
    """What a layer remembers of each slot, its last tokens and its state, fetched ahead of the layer."""
    build.tails[number] = fetch_tail(build, device)
    _, elements = state_elements(build.shape)
    size = F32_BYTES * elements * build.layout.slots
    sources = (build.shared["slots"],) if "slots" in build.shared else ()
    build.states[number] = build.graph.add(size, *sources, device=device)


def rwkv_layer(build: GraphBuild, x: int, number: int, fetch_next: Callable[[], None]) -> int:
    """One layer. `fetch_next` is called where the engine fetches the next layer's last tokens."""
    graph, width = build.graph, build.embedding
    tensors = build.table.layer(number)
    if number not in build.tails:
        fetch_memory(build, number, build.device)
    tail, state = build.tails[number], build.states[number]
    normed = build.norm(x)
    before = build.plain(width, graph.part(tail, 0), graph.part(normed, build.bytes_of(width)))
    if tensors.has("time_mix_decay_w1"):
        mixed = _version_six(build, normed, before, tensors, state)
    else:
        mixed = _version_seven(build, normed, before, tensors, state)
    inner = build.plain(width, mixed, x, overwrites=True)
    if not tensors.has("channel_mix_key"):
        graph.use(graph.part(normed, 0), device=build.device)
        fetch_next()
        (inner,) = _wanted(build, inner)
        return build.plain(width, dense(build, build.norm(inner), tensors), inner, overwrites=True)
    normed_inner = build.norm(inner)
    kept = sequence(build, 2 * width, graph.part(normed, 0), graph.part(normed_inner, 0))
    graph.use(kept, device=build.device)
    fetch_next()
    before = build.plain(width, graph.part(tail, 0), graph.part(normed_inner, build.bytes_of(width)))
    inner, normed_inner, before = _wanted(build, inner, normed_inner, before)
    return build.plain(width, _channel_mix(build, normed_inner, before, tensors), inner, overwrites=True)


def _wanted(build: GraphBuild, *values: int) -> tuple[int, ...]:
    """The rows that are wanted: all, except in the last layer."""
    if build.outputs == build.tokens:
        return values
    build.tokens = build.outputs
    return tuple(build.plain(build.embedding, value, build.wanted) for value in values)


def _version_six(build: GraphBuild, normed: int, before: int, tensors: LayerTensors, state: int) -> int:
    graph, width = build.graph, build.embedding
    change = build.plain(width, before, normed, overwrites=True)
    first = build.weighted(width, graph.view(change))
    first = build.plain(width, first, graph.view(normed), overwrites=True)
    lowered = build.weighted(tensors.rows("time_mix_w1"), first)
    lowered = build.plain(tensors.rows("time_mix_w1"), graph.view(lowered))
    five = build.weighted(MIXED_SIX * width, graph.view(lowered))
    five = build.plain(MIXED_SIX * width, five, graph.view(change), graph.view(normed), overwrites=True)

    def one() -> int:
        return graph.part(five, build.bytes_of(width))

    key, value, receptance = (build.weighted(width, one()) for _ in range(3))
    decay = build.weighted(width, build.weighted(tensors.rows("time_mix_decay_w1"), one()))
    seen = scanned(build, width, graph.view(key), graph.view(value), graph.view(receptance), decay, state)
    seen = build.plain(width, graph.view(seen))
    gate = build.weighted(width, one())
    return build.weighted(width, build.plain(width, graph.view(seen), gate, overwrites=True))


def _version_seven(build: GraphBuild, normed: int, before: int, tensors: LayerTensors, state: int) -> int:
    graph, width = build.graph, build.embedding
    has_gate = tensors.has("time_mix_g1") and tensors.has("time_mix_g2")
    copies = (MIXED_SIX + 1 if has_gate else MIXED_SIX) * width
    change = build.plain(width, before, normed, overwrites=True)
    mixed = build.plain(copies, change)
    mixed = build.plain(copies, mixed, normed, overwrites=True)

    def one() -> int:
        return graph.part(mixed, build.bytes_of(width))

    def low_rank(name: str) -> int:
        return build.weighted(width, build.weighted(tensors.rows(f"{name}1"), one()))

    receptance, decay = build.weighted(width, one()), low_rank("time_mix_w")
    key = build.weighted(width, one())
    rate = low_rank("time_mix_a")
    adapted = build.weighted(width, key)
    damped = build.plain(width, rate, adapted)
    damped = build.plain(width, damped, adapted, overwrites=True)
    final_key = build.plain(width, key, damped, overwrites=True)
    value = _residual_value(build, one, low_rank)
    removed = build.plain(width, graph.view(build.weighted(width, key, overwrites=True)))
    negated = build.plain(width, removed)
    rated = build.plain(width, removed, graph.view(rate), overwrites=True)
    seen = scanned(build, width, graph.view(receptance), decay, final_key, value, negated, rated, state)
    seen = build.plain(width, graph.view(seen))
    agreement = build.plain(width, graph.view(final_key), graph.view(receptance))
    agreement = build.plain(width // max(1, build.shape.wkv_head_length or 1), agreement)
    weighed = build.plain(width, graph.view(value), agreement)
    seen = build.plain(width, seen, graph.view(weighed), overwrites=True)
    if has_gate:
        seen = build.plain(width, seen, low_rank("time_mix_g"), overwrites=True)
    return build.weighted(width, seen)


def _residual_value(build: GraphBuild, one: Callable[[], int], low_rank: Callable[[str], int]) -> int:
    """Values, mixed with those of the first layer, which all later ones read."""
    width = build.embedding
    value = build.weighted(width, one())
    first = build.shared.setdefault("first_value", value)
    if first == value:
        return value
    difference = build.plain(width, first, value)
    difference = build.plain(width, difference, low_rank("time_mix_v"), overwrites=True)
    return build.plain(width, value, difference, overwrites=True)


def _channel_mix(build: GraphBuild, normed: int, before: int, tensors: LayerTensors) -> int:
    width, inner = build.embedding, tensors.rows("channel_mix_key")
    change = build.plain(width, before, normed, overwrites=True)
    if not tensors.has("channel_mix_receptance"):
        mixed = build.plain(width, normed, build.weighted(width, change, overwrites=True), overwrites=True)
        return build.weighted(width, build.weighted(inner, mixed))
    mixed = build.plain(width, build.weighted(width, change), normed, overwrites=True)
    receptance = build.weighted(width, mixed)
    mixed = build.plain(width, build.weighted(width, change, overwrites=True), normed, overwrites=True)
    made = build.weighted(width, build.weighted(inner, mixed))
    return build.plain(width, receptance, made, overwrites=True)
