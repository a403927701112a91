"""Operations of feed-forward parts and mixtures of experts, in the engine's order (measured rules). Pure."""

from __future__ import annotations

from framework.planning.memory.graph_build import F32_BYTES, GraphBuild
from framework.planning.memory.tensor_table import LayerTensors

# It weighs what goes into the experts, not what comes out.
WEIGHS_BEFORE = frozenset({"llama4"})
# More experts per token than any model has; a header that claims more is not describing one.
MOST_EXPERTS_USED = 1024


def feed_forward(build: GraphBuild, source: int, tensors: LayerTensors) -> int:
    """The feed-forward part of a layer, experts or not. `source` is normed already."""
    if tensors.has("ffn_gate_inp"):
        return _experts(build, source, tensors)
    return dense(build, source, tensors)


def dense(build: GraphBuild, source: int, tensors: LayerTensors, suffix: str = "") -> int:
    """Up, activation and down; with a gate where there is one."""
    width, inner = tensors.rows(f"ffn_up{suffix}"), tensors.row_length(f"ffn_down{suffix}")
    if tensors.has(f"ffn_gate{suffix}"):
        gate = build.weighted(inner, source)
        middle = build.plain(inner, gate, build.weighted(inner, source))
    else:
        middle = build.weighted(width, source)
        if width != inner:  # gate and up in one matrix
            middle = build.plain(inner, middle)
    return build.weighted(build.embedding, middle)


def _experts(build: GraphBuild, source: int, tensors: LayerTensors) -> int:
    """Routed experts, and those that every token uses."""
    graph = build.graph
    mixed = _routed(build, source, tensors)
    if not tensors.has("ffn_up_shexp"):
        return mixed
    always = dense(build, source, tensors, "_shexp")
    if tensors.has("ffn_gate_inp_shexp"):
        opened = build.weighted(1, source)
        always = build.plain(build.embedding, always, opened, overwrites=True)
    return graph.add(build.bytes_of(build.embedding), mixed, always, overwrites=True)


def _routed(build: GraphBuild, source: int, tensors: LayerTensors) -> int:
    graph, width = build.graph, build.embedding
    count = tensors.rows("ffn_gate_inp")
    used = min(max(1, build.shape.n_experts_used or 1), MOST_EXPERTS_USED)
    scores = build.weighted(count, source)
    ranked = scores
    if "exp_probs_b.bias" in tensors.dims:
        ranked = build.weighted(count, scores)
    chosen = graph.part(build.plain(count, ranked), build.bytes_of(count))
    weights = build.plain(used, graph.view(scores), chosen)
    entering = graph.view(source)
    weighs_before = build.shape.architecture in WEIGHS_BEFORE
    if weighs_before:
        repeated = build.plain(used * width, entering)
        entering = build.plain(used * width, repeated, weights, overwrites=True)
    leaving = _through_experts(build, entering, chosen, tensors, used)
    if not weighs_before:
        leaving = build.plain(used * width, leaving, weights, overwrites=True)
    if used == 1:
        return build.plain(width, graph.part(leaving, build.bytes_of(width)))
    parts = [graph.part(leaving, build.bytes_of(width)) for n in range(used)]
    mixed = build.plain(width, *parts[:2])
    return build.plain(width, mixed, *parts[2:], overwrites=True) if parts[2:] else mixed


def _through_experts(build: GraphBuild, entering: int, chosen: int, tensors: LayerTensors, used: int) -> int:
    """Up, activation and down of the chosen experts, where their weights are."""
    inner = tensors.row_length("ffn_down_exps") * used

    def weighted(elements: int, *sources: int) -> int:
        size = F32_BYTES * elements * build.tokens
        return build.graph.add(size, *sources, chosen, device=build.expert_device)

    if tensors.has("ffn_gate_exps"):
        gate = weighted(inner, entering)
        middle = build.plain(inner, gate, weighted(inner, entering))
    elif tensors.has("ffn_gate_up_exps"):
        middle = build.plain(inner, weighted(2 * inner, entering))
    else:
        middle = weighted(inner, entering)
    return weighted(build.embedding * used, middle)
