"""Headers and directories that describe no model: no plan may fail or hang on them."""

from dataclasses import fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.models.gguf_fields import GgufHeader
from framework.models.gguf_tensors import TensorInfo
from framework.planning.memory.drafter import Drafter
from framework.planning.memory.fit import Extras, largest_context, plan_memory
from framework.planning.memory.remedies import remedies
from framework.planning.memory.settings import CacheSettings, DraftPlan, GpuBudget, Hardware, Offload
from framework.planning.memory.shape import ModelShape, shape_of
from framework.planning.memory.tensor_table import table_of
from tests.support.memory_rows import measured_models

GPUS = Hardware(tuple(GpuBudget(f"CUDA{n}", 1 << 34, 1 << 34, "cuda") for n in range(2)), 1 << 34)
NAMES = sorted({tensor.name for model in measured_models().values() for tensor in model.tensors[:120]})
# What makes the graph a different one; drawn often, since one of them without the others is no model.
MARKS = [name for name in NAMES if not name.startswith("blk.") or ".0." in name]
ARCHITECTURES = sorted({model.architecture for model in measured_models().values()})
LARGE = st.one_of(st.none(), st.integers(0, 9), st.sampled_from([64, 4096, 2**31, 2**62]))
TENSORS = st.builds(
    TensorInfo,
    st.one_of(st.sampled_from(NAMES), st.sampled_from(MARKS)),
    st.lists(st.sampled_from([0, 1, 2, 64, 4096, 2**40]), max_size=4).map(tuple),
    st.sampled_from([0, 12, 999]),
    st.just(0),
    st.one_of(st.none(), st.integers(0, 2**50)),
)
KINDS = {field.name: field.type for field in fields(ModelShape)}
LISTS = st.lists(st.sampled_from([0, 1, 8, 2**62]), min_size=1, max_size=9).map(tuple)
MASKS = st.lists(st.booleans(), min_size=1, max_size=9).map(tuple)
VALUES = {
    "int | None": LARGE,
    "bool | None": st.one_of(st.none(), st.booleans()),
    "tuple[int, ...] | None": st.one_of(st.none(), LISTS),
    "tuple[bool, ...] | None": st.one_of(st.none(), MASKS),
}
SHAPES = st.fixed_dictionaries(
    {"architecture": st.sampled_from(ARCHITECTURES), "n_layers": st.integers(0, 12)},
    optional={
        name: VALUES[str(kind)] for name, kind in KINDS.items() if kind in VALUES and name != "n_layers"
    },
).map(lambda facts: ModelShape(**facts))
LAUNCHES = st.builds(
    CacheSettings,
    n_ctx=st.one_of(st.integers(0, 9000), st.just(2**31)),
    slots=st.sampled_from([1, 3, 2**20]),
    key_type=st.sampled_from(["f16", "q8_0", "q4_0", "who knows"]),
    unified=st.booleans(),
    swa_full=st.booleans(),
    ubatch=st.sampled_from([1, 512, 2**31]),
    flash_attention=st.booleans(),
    kv_on_gpu=st.booleans(),
    embeddings=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(SHAPES, st.lists(TENSORS, max_size=40), LAUNCHES, st.sampled_from(["head", "model"]))
def test_any_facts_give_a_plan(
    shape: ModelShape, tensors: list[TensorInfo], asked: CacheSettings, kind: Any
) -> None:
    table = table_of(tensors)
    extras = Extras(draft=DraftPlan(kind), drafter=Drafter(shape, table))
    found = plan_memory(shape, table, asked, GPUS, Offload(shape.layers // 2, 1), extras)
    assert all(line.bytes >= 0 for line in found.lines)


@settings(max_examples=20, deadline=None)
@given(SHAPES, st.lists(TENSORS, max_size=40), LAUNCHES)
def test_any_facts_have_a_longest_context_and_remedies(
    shape: ModelShape, tensors: list[TensorInfo], asked: CacheSettings
) -> None:
    table = table_of(tensors)
    assert largest_context(shape, table, asked, GPUS).context <= asked.n_ctx
    assert all(remedy.frees_bytes > 0 for remedy in remedies(shape, table, asked, GPUS))


def test_a_header_of_more_layers_than_any_model_has_none() -> None:
    assert (
        shape_of(GgufHeader(architecture="llama", n_layers=2**62, n_heads=1, embedding_length=1)).layers == 0
    )


def test_tensors_of_absurd_layers_are_outside_of_layers() -> None:
    table = table_of([TensorInfo("blk.99999999999.attn_q.weight", (1, 1), 0, 0, 4)])
    assert (table.layers, len(table.outside)) == ((), 1)
