"""Whether a model lies on a GPU, from the lines of its start (06 §11, §16.1, 15 §7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.offload_log import OffloadVerdict, offload_verdict

HEADING = "0.00.101.001 I cmn  common_param: device_info:"
CUDA_ROW = "0.00.101.002 I cmn  common_param:   - CUDA0   : NVIDIA A100 (40442 MiB, 40026 MiB free)"
CPU_ROW = "0.00.101.003 I cmn  common_param:   - CPU     : AMD EPYC (24105 MiB, 24105 MiB free)"


def offloaded(layers: int, total: int) -> str:
    return f"0.00.200.000 I load_tensors: offloaded {layers}/{total} layers to GPU"


def buffer(name: str, mib: str = "92.10") -> str:
    return f"0.00.200.001 I load_tensors:   {name} model buffer size =    {mib} MiB"


@pytest.mark.parametrize(
    ("lines", "on_gpu"),
    [
        pytest.param([offloaded(0, 49), offloaded(5, 5)], False, id="a drafter does not hide the model"),
        pytest.param([offloaded(49, 49)], None, id="a count proves nothing"),
        pytest.param([buffer("CUDA_Host"), buffer("CPU")], False, id="pinned host memory"),
        pytest.param([offloaded(31, 31), buffer("CPU_Mapped"), buffer("CPU_REPACK")], False, id="host only"),
        pytest.param([buffer("CUDA0")], True, id="a card"),
        pytest.param([buffer("Vulkan0"), buffer("CPU_Mapped")], True, id="a card and the host"),
        pytest.param([buffer("RPC0[10.0.0.2:50052]")], True, id="a card elsewhere"),
        pytest.param([buffer("CUDA0", "0.00"), buffer("CPU")], False, id="an empty buffer"),
        pytest.param([HEADING, CUDA_ROW], None, id="a card that may not be used"),
        pytest.param([HEADING, CPU_ROW], False, id="no card in the list"),
        pytest.param([CPU_ROW, HEADING], None, id="a row that is none"),
        pytest.param([], None, id="nothing"),
        pytest.param(
            [offloaded(0, 49), buffer("CPU"), offloaded(5, 5), buffer("CUDA0")], False, id="only a drafter"
        ),
        pytest.param(
            [offloaded(49, 49), buffer("CUDA0"), offloaded(0, 5), buffer("CPU")], True, id="only the model"
        ),
        pytest.param(["load_tensors: offloaded 0/31 layers to GPU"], False, id="without a time"),
        pytest.param(
            ["llm_load_tensors: offloaded 1/1 layer to gpu", buffer("ROCm0")], True, id="older words"
        ),
        pytest.param(
            [
                "0.0 I llama_context: no_alloc = 1",
                buffer("CUDA0"),
                "0.0 I llama_context: no_alloc = 0",
                buffer("CPU"),
            ],
            False,
            id="what was only measured",
        ),
        pytest.param(["I said: CUDA0 model buffer size = 92.10 MiB"], None, id="not in the engine's form"),
    ],
)
def test_where_the_model_lies(lines: list[str], on_gpu: bool | None) -> None:
    assert offload_verdict(lines).on_gpu is on_gpu


def test_a_card_that_was_listed_was_seen() -> None:
    verdict = offload_verdict([HEADING, CUDA_ROW, offloaded(0, 31), buffer("CPU")])
    assert verdict == OffloadVerdict(on_gpu=False, saw_gpu=True)


def test_a_list_without_cards_saw_none() -> None:
    assert offload_verdict([HEADING, CPU_ROW]).saw_gpu is False


@given(
    st.lists(
        st.sampled_from([HEADING, CUDA_ROW, CPU_ROW, offloaded(0, 3), buffer("CUDA0"), buffer("CPU")])
        | st.text()
    )
)
def test_any_lines_are_read(lines: list[str]) -> None:
    assert offload_verdict(lines).on_gpu in (True, False, None)
