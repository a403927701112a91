"""Flags of the groups "device" and "threads": where weights and work go."""

from __future__ import annotations

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.pairs import DEVICES, PLACEMENTS, SHARES
from framework.nativeserver.flags.values import Value, boolean, choice, list_of, whole

AUTO = None
"""Layers are left to the fit step."""
ALL_LAYERS = -1
EXPERT_TENSORS = r"\.ffn_(up|down|gate|gate_up)_(ch)?exps"
HOST_BUFFER = "CPU"
MOST_LAYERS = 1024


def _layers(text: str) -> int | None:
    if text in ("auto", "all"):
        return AUTO if text == "auto" else ALL_LAYERS
    try:
        return max(ALL_LAYERS, int(whole().read(text)))
    except ValueError as error:
        raise ValueError(f"{error}; 'auto' and 'all' are allowed too") from error


def _experts_of(text: str) -> tuple[tuple[str, str], ...]:
    count = int(whole(0, MOST_LAYERS).read(text))
    if count == 0:
        return ()
    layers = "|".join(str(layer) for layer in range(count))
    return ((rf"blk\.({layers}){EXPERT_TENSORS}", HOST_BUFFER),)


LAYERS = Value("N", _layers)
FIT = Value("[on|off]", boolean)
EVERY_EXPERT = ((EXPERT_TENSORS, HOST_BUFFER),)
# The core has one margin for all devices.
MARGIN_MIB = Value("MIB0,MIB1,...", lambda text: max(list_of(whole(0), "", most=128).read(text)))
# As in llama-server, anything below 1 stands for the default.
COUNT = Value("N", lambda text: max(-1, whole().read(text)) or -1)

FLAGS: tuple[Flag, ...] = (
    valued(
        "-ngl --gpu-layers --n-gpu-layers",
        "line.layers",
        LAYERS,
        "layers on devices: a number, 'auto' or 'all'; negative is all",
        default="auto",
        env="N_GPU_LAYERS",
    ),
    valued(
        "-sm --split-mode",
        "engine.split_mode",
        choice("none", "layer", "row", "tensor"),
        "how the model is split over devices",
        default="layer",
        env="SPLIT_MODE",
    ),
    valued(
        "-ts --tensor-split",
        "engine.tensor_split",
        SHARES,
        "proportions of the devices, such as 3,1",
        env="TENSOR_SPLIT",
    ),
    valued(
        "-mg --main-gpu",
        "engine.main_gpu",
        whole(0, 255, "INDEX"),
        "the device with split mode none",
        default="0",
        env="MAIN_GPU",
    ),
    valued(
        "-dev --device",
        "engine.devices",
        DEVICES,
        "devices to use, by the names of --list-devices; 'none' is the processor alone",
        default="all",
        env="DEVICE",
    ),
    valued(
        "-ot --override-tensor",
        "engine.tensor_placements",
        PLACEMENTS,
        "buffer for tensors whose name has the pattern",
        env="OVERRIDE_TENSOR",
        collects=True,
    ),
    switch(
        "-cmoe --cpu-moe",
        "engine.tensor_placements",
        "keep all experts in host memory",
        env="CPU_MOE",
        collects=True,
        constant=EVERY_EXPERT,
    ),
    valued(
        "-ncmoe --n-cpu-moe",
        "engine.tensor_placements",
        Value("N", _experts_of),
        "keep the experts of the first N layers in host memory",
        env="N_CPU_MOE",
        collects=True,
    ),
    switch(
        "-kvo --kv-offload",
        "engine.offload_kqv",
        "keep the KV cache on devices",
        off="-nkvo --no-kv-offload",
        default="enabled",
        env="KV_OFFLOAD",
    ),
    switch(
        "--repack",
        "engine.repack",
        "repack weights for the processor",
        off="-nr --no-repack",
        default="enabled",
        env="REPACK",
    ),
    switch(
        "--no-host",
        "engine.no_host",
        "bypass the host buffer, so that other buffers can be used",
        env="NO_HOST",
    ),
    switch(
        "--op-offload",
        "engine.op_offload",
        "let devices work on tensors of the host",
        off="--no-op-offload",
        default="enabled",
    ),
    valued(
        "--numa",
        "engine.numa",
        choice("distribute", "isolate", "numactl", word="TYPE"),
        "memory near its processor: distribute, isolate or numactl",
        env="NUMA",
    ),
    switch("--mmap", "engine.use_mmap", "map the model file", off="--no-mmap", default="enabled", env="MMAP"),
    switch("--mlock", "engine.use_mlock", "keep the model in memory", default="disabled", env="MLOCK"),
    switch(
        "-dio --direct-io",
        "engine.use_direct_io",
        "read around the page cache",
        off="-ndio --no-direct-io",
        default="disabled",
        env="DIO",
    ),
    valued(
        "-fit --fit", "engine.fit", FIT, "lower what was not asked for until it fits", default="on", env="FIT"
    ),
    valued(
        "-fitt --fit-target",
        "engine.fit_target_mib",
        MARGIN_MIB,
        "MiB that fitting leaves free on a device; of several the largest counts for all",
        default="1024",
        env="FIT_TARGET",
    ),
    valued(
        "-fitc --fit-ctx",
        "engine.fit_ctx",
        whole(0),
        "fewest tokens of context that fitting goes down to",
        default="4096",
        env="FIT_CTX",
    ),
)

THREADS: tuple[Flag, ...] = (
    valued(
        "-t --threads",
        "engine.n_threads",
        COUNT,
        "threads for generation",
        default="physical cores",
        env="THREADS",
    ),
    valued(
        "-tb --threads-batch", "engine.n_threads_batch", COUNT, "threads for prompts", default="as --threads"
    ),
)
