"""Operations of feed-forward parts and mixtures of experts, in the engine's order (measured rules). Pure."""

from __future__ import annotations

from typing import NamedTuple

from framework.planning.memory.graph_build import F32_BYTES, GraphBuild
from framework.planning.memory.tensor_table import LayerTensors

# It weighs what goes into the experts, not what comes out.
WEIGHS_BEFORE = frozenset({"llama4"})
# It chooses experts by what goes into a layer.
ROUTES_FIRST = frozenset({"smallthinker"})
# Experts beside a dense feed-forward part, which read what goes into a layer.
NORM_OF_EXPERTS_ASIDE = "ffn_norm_exps"
# Experts beside a dense feed-forward part, which read the same.
NORM_OF_EXPERTS = "pre_ffw_norm_2"
# More experts per token than any model has; a header that claims more is not describing one.
MOST_EXPERTS_USED = 64
ADDED_ONE_BY_ONE = 3


class Routing(NamedTuple):
    """Chosen experts and their weights, for each token."""

    chosen: int
    weights: int


def feed_forward(
    build: GraphBuild, source: int, tensors: LayerTensors, routing: Routing | None = None
) -> int:
    """The feed-forward part of a layer, experts or not. `source` is normed already."""
    if tensors.has("ffn_gate_inp") and not tensors.has(NORM_OF_EXPERTS_ASIDE):
        return experts(build, source, tensors, routing)
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


def experts(build: GraphBuild, source: int, tensors: LayerTensors, routing: Routing | None = None) -> int:
    """Routed experts, and those that every token uses. `routing` where it was decided before."""
    graph = build.graph
    mixed = _mixed(build, source, tensors, routing or route(build, source, tensors))
    if not tensors.has("ffn_up_shexp"):
        return mixed
    always = dense(build, source, tensors, "_shexp")
    if tensors.has("ffn_gate_inp_shexp"):
        opened = build.weighted(1, source)
        always = build.plain(build.embedding, always, opened, overwrites=True)
    return graph.add(build.bytes_of(build.embedding), mixed, always, overwrites=True)


def experts_and_dense(build: GraphBuild, source: int, tensors: LayerTensors) -> int:
    """Both side by side, as Gemma 4 has them, each with norms of its own. `source` is not normed yet."""
    routing = route(build, build.norm(source), tensors)
    mixed = experts(build, build.norm(source), tensors, routing)
    fed = dense(build, build.norm(source), tensors)
    return build.plain(build.embedding, fed, mixed, overwrites=True)


def route(build: GraphBuild, source: int, tensors: LayerTensors) -> Routing:
    """Which experts each token uses, and what they weigh."""
    count = tensors.rows("ffn_gate_inp")
    scores = build.weighted(count, source)
    if build.outputs != build.tokens and build.shape.architecture in ROUTES_FIRST:
        scores = build.graph.add(F32_BYTES * count * build.outputs, scores, build.wanted)
    ranked = scores
    if "exp_probs_b.bias" in tensors.dims:
        ranked = build.weighted(count, scores)
    chosen = build.graph.part(build.plain(count, ranked), build.bytes_of(count))
    return Routing(chosen, build.plain(_used(build), build.graph.view(scores), chosen))


def _used(build: GraphBuild) -> int:
    return min(max(1, build.shape.n_experts_used or 1), MOST_EXPERTS_USED)


def _mixed(build: GraphBuild, source: int, tensors: LayerTensors, routing: Routing) -> int:
    graph, width, used = build.graph, build.embedding, _used(build)
    entering = graph.view(source)
    weighs_before = build.shape.architecture in WEIGHS_BEFORE
    if weighs_before:
        repeated = build.plain(used * width, entering)
        entering = build.plain(used * width, repeated, routing.weights, overwrites=True)
    leaving = _through_experts(build, entering, routing.chosen, tensors, used)
    if not weighs_before:
        leaving = build.plain(used * width, leaving, routing.weights, overwrites=True)
    if used == 1:
        return build.plain(width, graph.part(leaving, build.bytes_of(width)))
    # Copied one by one where the experts are elsewhere; else a piece stands for all that come after it.
    pieces = used if build.expert_device != build.device else min(used, ADDED_ONE_BY_ONE)
    parts = [graph.part(leaving, build.bytes_of(width)) for n in range(pieces)]
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
