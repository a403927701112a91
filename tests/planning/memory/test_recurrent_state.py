"""States of fixed size (03 §5.7), and the copies that a draft needs."""

import pytest

from framework.planning.memory.drafter import rollback
from framework.planning.memory.recurrent_state import state_bytes
from framework.planning.memory.settings import DraftPlan
from framework.planning.memory.shape import ModelShape

MIB = 1 << 20


def delta_net(layers: int, inner: int) -> ModelShape:
    return ModelShape(
        "qwen35",
        n_layers=layers,
        n_kv_heads=4,
        full_attention_interval=4,
        ssm_conv_kernel=4,
        ssm_state_size=128,
        ssm_group_count=16,
        ssm_inner_size=inner,
    )


@pytest.mark.parametrize(
    ("slots", "rollback", "expected"), [(1, 0, 156_893_184), (4, 0, 627_572_736), (4, 2, 1_882_718_208)]
)
def test_states_times_slots_times_copies(slots: int, rollback: int, expected: int) -> None:
    assert state_bytes(delta_net(64, 6144), slots, rollback) == expected


@pytest.mark.parametrize(
    ("layers", "inner", "slots", "rollback", "expected_mib"),
    [
        pytest.param(24, 2048, 4, 0, 77.0625, id="S01"),
        pytest.param(32, 4096, 4, 0, 201, id="S03"),
        pytest.param(32, 4096, 1, 0, 50.25, id="S04"),
        pytest.param(64, 6144, 1, 0, 149.625, id="S05"),
        pytest.param(64, 6144, 4, 2, 1795.5, id="S06 and FM-08, depth 2"),
        pytest.param(64, 6144, 4, 0, 598.5, id="S09 and FM-08, no draft"),
        pytest.param(64, 6144, 1, 2, 448.875, id="FM-08, 1 slot"),
        pytest.param(64, 6144, 1, 6, 1047.375, id="FM-08, depth 6"),
        pytest.param(40, 4096, 4, 0, 251.25, id="S10 and FM-01"),
        pytest.param(40, 4096, 2, 0, 125.625, id="S12"),
        pytest.param(48, 4096, 4, 0, 301.5, id="S13"),
    ],
)
def test_what_real_servers_logged(
    layers: int, inner: int, slots: int, rollback: int, expected_mib: float
) -> None:
    assert state_bytes(delta_net(layers, inner), slots, rollback) == expected_mib * MIB


def test_a_short_convolution_keeps_its_last_inputs() -> None:
    lfm2 = ModelShape(
        "lfm2",
        n_layers=30,
        embedding_length=2048,
        shortconv_length=3,
        n_kv_heads_by_layer=(0,) * 22 + (8,) * 8,
    )
    assert state_bytes(lfm2, 1) == 0.34375 * MIB  # S15


def test_a_model_without_recurrent_layers_has_none() -> None:
    assert state_bytes(ModelShape("llama", n_layers=32, n_kv_heads=8), 4) == 0


def test_prediction_layers_have_none() -> None:
    with_head = ModelShape(**{**delta_net(65, 6144).__dict__, "nextn_layers": 1})
    assert state_bytes(with_head, 1) == state_bytes(delta_net(64, 6144), 1)


@pytest.mark.parametrize(
    ("draft", "architecture", "copies"),
    [
        (DraftPlan("head", 2), "qwen3next", 2),
        (DraftPlan("model", 5, copies=3), "qwen35", 3),
        (DraftPlan("model", 5, copies=3), "mamba", 0),
        (DraftPlan("model", 5), "qwen35", 0),
        (None, "qwen35", 0),
    ],
)
def test_copies_are_kept_for_a_head_and_where_the_engine_can_step_back(
    draft: DraftPlan | None, architecture: str, copies: int
) -> None:
    assert rollback(draft, architecture) == copies
