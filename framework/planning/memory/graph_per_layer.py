"""Embeddings of their own for each layer, as Gemma 3n and 4 have them (measured rules). Pure."""

from __future__ import annotations

from framework.planning.memory.engine_graph import HOST_BUFFER
from framework.planning.memory.graph_build import GraphBuild
from framework.planning.memory.tensor_table import LayerTensors

TABLE, PROJECTION = "per_layer_token_embd.weight", "per_layer_model_proj.weight"


def looked_up(build: GraphBuild, tokens: int) -> int | None:
    """What the tokens look up for all layers; None for models without."""
    width = build.table.row_length(TABLE)
    if not (width and build.table.row_length(PROJECTION)):
        return None
    return build.graph.add(build.bytes_of(width), tokens, device=HOST_BUFFER)


def prepare(build: GraphBuild, found: int, x: int) -> None:
    """Keep what `gated_slice` needs until the first layer asks for it."""
    width = build.table.row_length(TABLE)
    build.shared["looked_up"] = build.plain(width, build.graph.view(found), overwrites=True)
    build.shared["embedded"] = x


def has_slices(build: GraphBuild, tensors: LayerTensors) -> bool:
    """Whether a layer lets in a slice of what was looked up for all of them."""
    return tensors.has("inp_gate") and "looked_up" in build.shared


def gated_slice(build: GraphBuild, source: int, tensors: LayerTensors) -> int:
    """A layer's slice, let through by what comes out of the layer."""
    width = tensors.rows("inp_gate")
    gate = build.weighted(width, source)
    everything = build.shared.get("per_layer")
    if everything is None:
        everything = build.shared["per_layer"] = _for_all_layers(build)
    part = build.graph.part(everything, build.bytes_of(width))
    return build.weighted(build.embedding, build.plain(width, gate, part, overwrites=True))


def _for_all_layers(build: GraphBuild) -> int:
    width = build.table.row_length(TABLE)
    projected = build.plain(width, build.graph.view(build.weighted(width, build.shared["embedded"])))
    summed = build.plain(width, projected, build.shared["looked_up"], overwrites=True)
    return build.plain(width, build.graph.view(summed))
