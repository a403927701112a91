"""What an engine allocated, read from its own lines; most are those of b10068 at verbosity 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.buffers_log import Buffers, read_buffers

MIB = 2**20
ON_VULKAN = """\
0.00.231.167 I load_tensors: loading model tensors, this can take a while... (mmap = true, direct_io = false)
0.00.306.350 I load_tensors: offloaded 10/31 layers to GPU
0.00.306.365 I load_tensors:   CPU_Mapped model buffer size =    92.10 MiB
0.00.306.367 I load_tensors:      Vulkan0 model buffer size =    47.71 MiB
0.00.356.659 I llama_context: constructing llama_context
0.00.356.882 I llama_context: Vulkan_Host  output buffer size =     0.75 MiB
0.00.357.106 I llama_kv_cache:        CPU KV buffer size =    31.50 MiB
0.00.384.494 I llama_kv_cache:    Vulkan0 KV buffer size =    13.50 MiB
0.00.397.819 I llama_kv_cache: size =   45.00 MiB (  2048 cells,  30 layers,  4/1 seqs), K (f16):   22.50 MiB
0.00.412.036 I sched_reserve:    Vulkan0 compute buffer size =    15.70 MiB
0.00.412.055 I sched_reserve: Vulkan_Host compute buffer size =     4.26 MiB
"""
ON_SERVERS = """\
0.00.118.578 I llama_prepare_model_devices: using device RPC1 (127.0.0.1:19481) (unknown id) - 2048 MiB free
0.00.118.819 I llama_prepare_model_devices: using device RPC2 (127.0.0.1:19480) (unknown id) - 24105 MiB free
0.00.343.166 I load_tensors:   CPU_Mapped model buffer size =    28.69 MiB
0.00.343.168 I load_tensors: RPC0[127.0.0.1:19480] model buffer size =    85.76 MiB
0.00.343.170 I load_tensors: RPC1[127.0.0.1:19481] model buffer size =     6.34 MiB
0.00.541.781 I llama_context:        CPU  output buffer size =     0.75 MiB
0.00.558.470 I llama_kv_cache: RPC0[127.0.0.1:19480] KV buffer size =    40.50 MiB
0.00.596.720 I llama_kv_cache: RPC1[127.0.0.1:19481] KV buffer size =     4.50 MiB
0.00.654.656 I sched_reserve: RPC1[127.0.0.1:19481] compute buffer size =    14.38 MiB
0.00.654.671 I sched_reserve: RPC0[127.0.0.1:19480] compute buffer size =    14.38 MiB
0.00.654.672 I sched_reserve:        CPU compute buffer size =     4.26 MiB
"""


def in_mib(sizes: Buffers) -> dict[str, float]:
    return {device: round(size / MIB, 2) for device, size in sizes.allocated.items()}


def read(text: str) -> Buffers:
    return read_buffers(text.splitlines())


def test_a_start_on_one_device() -> None:
    found = read(ON_VULKAN)
    assert in_mib(found) == {"Vulkan0": 76.91, "CPU": 36.51}
    assert round(found.mapped["CPU"] / MIB, 2) == 92.10


def test_each_buffer_is_told_by_what_it_is_for() -> None:
    adapter = "llama_adapter_lora_init_impl:    Vulkan0 LoRA buffer size =     8.00 MiB\n"
    found = {
        (one.device, one.label, one.mapped): round(one.bytes / MIB, 2)
        for one in read(ON_VULKAN + adapter).lines
    }
    assert found == {
        ("CPU", "weights", True): 92.10,
        ("Vulkan0", "weights", False): 47.71,
        ("CPU", "output", False): 0.75,
        ("CPU", "kv", False): 31.50,
        ("Vulkan0", "kv", False): 13.50,
        ("Vulkan0", "compute", False): 15.70,
        ("CPU", "compute", False): 4.26,
        ("Vulkan0", "adapter", False): 8.0,
    }


def test_servers_count_their_devices_otherwise_than_the_engine() -> None:
    assert in_mib(read(ON_SERVERS)) == {"RPC2": 140.64, "RPC1": 25.22, "CPU": 5.01}


def test_several_devices_of_one_server_keep_their_order() -> None:
    found = read(
        "f: using device RPC2 (a:1) (unknown id) - 1 MiB free\n"
        "f: using device RPC10 (a:1) (unknown id) - 1 MiB free\n"
        "load_tensors: RPC9[a:1] model buffer size = 2.00 MiB\n"
        "load_tensors: RPC1[a:1] model buffer size = 1.00 MiB\n"
    )
    assert in_mib(found) == {"RPC2": 1.0, "RPC10": 2.0}


def test_a_server_whose_devices_cannot_be_told_apart_says_nothing() -> None:
    found = read(
        "f: using device RPC0 (a:1) (unknown id) - 1 MiB free\n"
        "f: using device RPC1 (a:1) (unknown id) - 1 MiB free\n"
        "load_tensors: RPC0[a:1] model buffer size = 2.00 MiB\n"
    )
    assert found.allocated == {}


def test_a_compute_buffer_that_is_reserved_anew_counts_once() -> None:
    again = "0.01.0 I sched_reserve:    Vulkan0 compute buffer size =    20.70 MiB\n"
    assert in_mib(read(ON_VULKAN + again))["Vulkan0"] == 81.91


def test_a_drafter_has_a_context_of_its_own() -> None:
    drafter = (
        "0.01.0 I load_tensors:      Vulkan0 model buffer size =    10.00 MiB\n"
        "0.01.1 I llama_context: constructing llama_context\n"
        "0.01.2 I llama_kv_cache:    Vulkan0 KV buffer size =    1.00 MiB\n"
        "0.01.3 I sched_reserve:    Vulkan0 compute buffer size =    5.00 MiB\n"
    )
    assert in_mib(read(ON_VULKAN + drafter))["Vulkan0"] == 92.91


def test_a_projector_counts_beside_the_context() -> None:
    projector = (
        "0.01.0 I clip_ctx: CLIP using Vulkan0 backend\n"
        "0.01.1 I clip_model_loader: model size:         190.00 MiB\n"
        "0.01.2 I alloc_compute_meta:    Vulkan0 compute buffer size =    32.00 MiB\n"
    )
    assert in_mib(read(ON_VULKAN + projector))["Vulkan0"] == 298.91


def test_states_and_adapters_count() -> None:
    more = (
        "llama_memory_recurrent:      CUDA0 RS buffer size =    62.50 MiB\n"
        "llama_adapter_lora_init_impl:      CUDA0 LoRA buffer size =    8.50 MiB\n"
        "load_tensors:    CUDA_Host model buffer size =    3.00 MiB\n"
        "load_tensors:   CPU_REPACK model buffer size =    4.00 MiB\n"
    )
    assert in_mib(read(more)) == {"CUDA0": 71.0, "CPU": 7.0}


def test_what_is_measured_before_the_load_does_not_count() -> None:
    measured = (
        "0.0 I print_info: no_alloc              = 1\n"
        "0.0 I load_tensors:      Vulkan0 model buffer size =    47.71 MiB\n"
        "0.0 I print_info: no_alloc              = 0\n"
    )
    assert read(measured + ON_VULKAN) == read(ON_VULKAN)


@pytest.mark.parametrize("buffer", ["CUDA_Split", "Meta(CUDA0,CUDA1)", "CUDA0_Split"])
def test_a_buffer_over_several_devices_says_nothing_of_any(buffer: str) -> None:
    line = f"load_tensors:   {buffer} model buffer size =    92.10 MiB\n"
    assert read(ON_VULKAN + line).allocated == {}


def test_a_chip_of_apple_keeps_what_it_maps() -> None:
    assert in_mib(read("load_tensors:   MTL0_Mapped model buffer size =  9.00 MiB")) == {"MTL0": 9.0}


@pytest.mark.parametrize(
    "line",
    [
        "0.0 I llama_kv_cache: size =   45.00 MiB (  2048 cells)",
        "0.0 I srv  log: Vulkan0 model buffer size = 99.00 MiB of prompt",
        "Vulkan0 model buffer size = 99.00 MiB",
        "0.0 I print_info: general.name = Vulkan0 model buffer size = 99.00 MiB",
        "load_tensors: Vulkan0 model buffer size = 99999999999.00 MiB",
    ],
)
def test_other_lines_are_passed_over(line: str) -> None:
    assert read(line) == Buffers()


def test_a_log_without_end_is_bounded() -> None:
    lines = (f"load_tensors: Vulkan{n} model buffer size = 1.00 MiB" for n in range(9_000))
    assert len(read_buffers(lines).allocated) == 4_096


@given(st.lists(st.text(max_size=200), max_size=20))
def test_any_lines_are_read(lines: list[str]) -> None:
    assert all(size >= 0 for size in read_buffers(lines).allocated.values())
