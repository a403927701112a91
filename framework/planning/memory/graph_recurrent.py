"""Operations of recurrent layers, in the engine's order (measured rules). Pure.

Mamba 1 and 2, gated delta nets, Kimi's linear attention and short convolutions. Each function takes the
normed input of a layer and returns what is added to the residual.
"""

from __future__ import annotations

from collections.abc import Callable

from framework.planning.memory.graph_build import F32_BYTES, GraphBuild
from framework.planning.memory.recurrent_state import state_elements
from framework.planning.memory.shape import REPEATS_KEYS
from framework.planning.memory.tensor_table import LayerTensors


def is_recurrent(tensors: LayerTensors) -> bool:
    """Whether a layer has weights that one of these functions knows."""
    return any(tensors.has(name) for name in ("ssm_in", "ssm_out", "ssm_conv1d_q", "shortconv.conv"))


def fetches_ahead(tensors: LayerTensors) -> bool:
    """Whether the engine fetches a layer's tail before it has finished the layer before."""
    return any(tensors.has(name) for name in ("ssm_in", "shortconv.conv"))


def recurrent(
    build: GraphBuild, normed: int, tensors: LayerTensors, tail: int, fetch_next: Callable[[], None]
) -> int:
    """The recurrent part of a layer. `fetch_next` is called where the engine would fetch the next tail."""
    if tensors.has("shortconv.conv"):
        return _short_convolution(build, normed, tensors, tail, fetch_next)
    if tensors.has("ssm_conv1d_q"):
        return _kimi_delta(build, normed, tensors, tail)
    if tensors.has("ssm_x"):
        return _mamba1(build, normed, tensors, tail, fetch_next)
    if tensors.has("ssm_in"):
        return _mamba2(build, normed, tensors, tail, fetch_next)
    return _delta_net(build, normed, tensors, tail)


def fetch_tail(build: GraphBuild, device: int) -> int:
    """The last tokens of each slot out of the state, for a convolution of a layer on `device`."""
    elements, _ = state_elements(build.shape)
    slots = build.shared.get("slots")
    sources = () if slots is None else (slots,)
    return build.graph.add(F32_BYTES * elements * build.layout.slots, *sources, device=device)


def sequence(build: GraphBuild, elements: int, *sources: int) -> int:
    """Something that every slot has one of."""
    return build.graph.add(F32_BYTES * elements * build.layout.slots, *sources, device=build.device)


def _convolved(build: GraphBuild, tail: int, source: int, width: int, taps: int) -> int:
    """A convolution: the last tokens of each slot, then those of the micro-batch."""
    graph, size = build.graph, F32_BYTES * width * taps * build.layout.slots
    joined = graph.add(build.bytes_of(width) + size, tail, source)
    graph.use(graph.part(joined, size), device=build.device)
    return joined


def scanned(build: GraphBuild, width: int, *sources: int) -> int:
    """A scan: one row per token, and the new states, which are stored at once. Returns the rows."""
    graph = build.graph
    _, elements = state_elements(build.shape)
    states = F32_BYTES * elements * build.layout.slots
    scanned = graph.add(build.bytes_of(width) + states, *sources)
    graph.use(graph.part(scanned, states), device=build.device)
    return graph.part(scanned, build.bytes_of(width))


def _strided(build: GraphBuild, source: int, width: int, row: int) -> int:
    """Some columns of rows of `row` elements."""
    span = build.bytes_of(row) - F32_BYTES * (row - width)
    return build.graph.part(source, build.bytes_of(width), span=span)


def _taps(build: GraphBuild) -> int:
    return max(0, (build.shape.ssm_conv_kernel or 0) - 1)


def _mamba1(
    build: GraphBuild, normed: int, tensors: LayerTensors, tail: int, fetch_next: Callable[[], None]
) -> int:
    graph, inner = build.graph, build.shape.ssm_inner_size or 0
    both = build.weighted(2 * inner, graph.view(normed))
    rows = _convolved(build, tail, graph.part(both, build.bytes_of(inner)), inner, _taps(build))
    rows = build.weighted(inner, rows)
    mixed = build.weighted(tensors.rows("ssm_x"), rows)
    steps = build.weighted(inner, graph.part(mixed, build.bytes_of(tensors.row_length("ssm_dt"))))
    seen = scanned(build, inner, graph.view(rows), steps, graph.part(mixed, 0))
    fetch_next()
    gate = build.plain(inner, _strided(build, both, inner, 2 * inner))
    skipped = build.weighted(inner, rows, overwrites=True)
    seen = build.plain(inner, seen, skipped, overwrites=True)
    made = build.weighted(build.embedding, build.plain(inner, gate, seen))
    return graph.view(made)


def _mamba2(
    build: GraphBuild, normed: int, tensors: LayerTensors, tail: int, fetch_next: Callable[[], None]
) -> int:
    graph, shape = build.graph, build.shape
    inner = shape.ssm_inner_size or 0
    width = inner + 2 * (shape.ssm_group_count or 0) * (shape.ssm_state_size or 0)
    everything = build.weighted(tensors.rows("ssm_in"), graph.view(normed))
    rows = _convolved(build, tail, graph.part(everything, build.bytes_of(width)), width, _taps(build))
    rows = build.weighted(width, rows)
    steps = build.plain(max(0, tensors.rows("ssm_in") - inner - width), graph.part(everything, 0))
    seen = scanned(build, inner, graph.part(rows, 0), steps)
    fetch_next()
    gate = build.plain(inner, _strided(build, everything, inner, tensors.rows("ssm_in")))
    skipped = build.weighted(inner, graph.part(rows, build.bytes_of(inner)))
    seen = build.plain(inner, seen, skipped, overwrites=True)
    seen = build.plain(inner, gate, seen)
    if tensors.has("ssm_norm"):
        seen = build.plain(inner, graph.view(seen))
    return graph.view(build.weighted(build.embedding, graph.view(seen)))


def _delta_net(build: GraphBuild, normed: int, tensors: LayerTensors, tail: int) -> int:
    graph, shape = build.graph, build.shape
    keys = (shape.ssm_group_count or 0) * (shape.ssm_state_size or 0)
    values = shape.ssm_inner_size or 0
    width = tensors.rows("attn_qkv")
    joined = _convolved(build, tail, graph.view(build.weighted(width, normed)), width, _taps(build))
    _, elements = state_elements(shape)
    states = sequence(build, elements)
    rows = build.weighted(width, joined)
    normalised = []
    for _ in ("queries", "keys"):
        part = build.plain(keys, graph.part(rows, build.bytes_of(keys)))
        if shape.architecture in REPEATS_KEYS:
            part = build.plain(values, graph.view(part))
        normalised.append(part)
    heads = max(tensors.dims.get("ssm_a", (0,)), default=0)
    decay, write = build.weighted(heads, normed), build.weighted(heads, normed)
    seen = scanned(build, values, *normalised, graph.part(rows, 0), decay, write, states)
    seen = build.plain(values, seen)
    gate = build.plain(values, graph.view(build.weighted(values, normed)))
    gated = build.plain(values, seen, gate, overwrites=True)
    return graph.view(build.weighted(build.embedding, graph.view(gated)))


def _kimi_delta(build: GraphBuild, normed: int, tensors: LayerTensors, tail: int) -> int:
    graph, shape = build.graph, build.shape
    width, taps = tensors.rows("attn_q"), _taps(build)
    size = F32_BYTES * width * taps * build.layout.slots
    joined = []
    for _ in ("queries", "keys", "values"):
        made = build.weighted(width, normed)
        both = graph.add(build.bytes_of(width) + size, graph.part(tail, 0), graph.view(made))
        graph.use(graph.part(both, size), device=build.device)
        joined.append(both)
    states = sequence(build, state_elements(shape)[1])
    query, key = (
        build.plain(width, graph.view(build.plain(width, graph.view(build.weighted(width, both)))))
        for both in joined[:2]
    )
    value = build.plain(width, graph.view(build.weighted(width, joined[2])))
    decay = build.weighted(width, build.weighted(tensors.rows("ssm_f_a"), normed))
    decay = build.plain(width, graph.view(decay))
    write = build.weighted(tensors.rows("ssm_beta"), normed)
    seen = scanned(build, width, query, key, graph.view(value), decay, write, states)
    seen = build.plain(width, graph.view(build.plain(width, seen)))
    gate = build.weighted(width, build.weighted(tensors.rows("ssm_g_a"), graph.view(normed)))
    gated = build.plain(width, seen, gate, overwrites=True)
    return build.weighted(build.embedding, build.plain(width, gated))


def _short_convolution(
    build: GraphBuild, normed: int, tensors: LayerTensors, tail: int, fetch_next: Callable[[], None]
) -> int:
    graph, width = build.graph, build.embedding
    three = build.weighted(tensors.rows("shortconv.in_proj"), normed)
    gated = build.plain(width, graph.part(three, 0), graph.part(three, 0))
    taps = max(0, tensors.row_length("shortconv.conv") - 1)
    joined = _convolved(build, tail, graph.view(gated), width, taps)
    fetch_next()
    rows = build.weighted(width, joined)
    opened = build.plain(width, graph.part(three, 0), rows, overwrites=True)
    return build.weighted(width, opened)
