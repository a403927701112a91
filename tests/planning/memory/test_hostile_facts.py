"""Headers and directories that describe no model: no plan may fail or hang on them."""

from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.models.gguf_fields import GgufHeader
from framework.models.gguf_tensors import TensorInfo
from framework.planning.memory import (
    CacheSettings,
    DraftPlan,
    Extras,
    GpuBudget,
    Hardware,
    ModelShape,
    Offload,
    plan_memory,
    shape_of,
    table_of,
)
from tests.support.memory_rows import measured_models

GPU = Hardware((GpuBudget("CUDA0", 1 << 34, 1 << 34, "cuda"),), 1 << 34)
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
NUMBERS = [
    field.name for field in fields(ModelShape) if field.type == "int | None" and field.name != "n_layers"
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(ARCHITECTURES),
    st.integers(0, 12),
    st.dictionaries(st.sampled_from(NUMBERS), LARGE, max_size=12),
    st.lists(TENSORS, max_size=40),
    st.booleans(),
    st.integers(1, 2**20),
)
def test_any_facts_give_a_plan(
    architecture: str,
    layers: int,
    numbers: dict[str, int | None],
    tensors: list[TensorInfo],
    flash: bool,
    context: int,
) -> None:
    shape = ModelShape(architecture=architecture, n_layers=layers, **numbers)  # type: ignore[arg-type]
    asked = CacheSettings(context, slots=3, unified=flash, flash_attention=flash, key_type="q8_0")
    found = plan_memory(
        shape, table_of(tensors), asked, GPU, Offload(layers // 2, 1), Extras(draft=DraftPlan("head"))
    )
    assert all(line.bytes >= 0 for line in found.lines)


def test_a_header_of_more_layers_than_any_model_has_none() -> None:
    assert (
        shape_of(GgufHeader(architecture="llama", n_layers=2**62, n_heads=1, embedding_length=1)).layers == 0
    )


def test_tensors_of_absurd_layers_are_outside_of_layers() -> None:
    table = table_of([TensorInfo("blk.99999999999.attn_q.weight", (1, 1), 0, 0, 4)])
    assert (table.layers, len(table.outside)) == ((), 1)
