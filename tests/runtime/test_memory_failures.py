"""A start that ended for lack of memory says how much was planned where (06 §14, 03)."""

from __future__ import annotations

import pytest

from framework.runtime.failures import StartEnd, classify
from framework.values.plan import FitPlan
from framework.values.reason import Failure
from tests.dashboard import fits, samples
from tests.dashboard.samples import GIB

OUT_OF_MEMORY = "ggml_cuda: CUDA error: out of memory"


def ended(fit: FitPlan, *, exit_code: int = 1) -> Failure:
    plan = samples.plan(samples.request(), fit=fit)
    return classify(StartEnd("exited", exit_code, (OUT_OF_MEMORY,), plan, "/state/logs/m.log", 1.0))


@pytest.mark.parametrize(("exit_code", "code"), [(1, "out_of_memory"), (-9, "killed_by_os")])
def test_it_names_the_device_that_was_too_small(exit_code: int, code: str) -> None:
    fit = fits.fit_of(
        fits.line("CUDA0", "weights", 9 * GIB),
        fits.line("CUDA1", "weights", 2 * GIB),
        fits=False,
        CUDA0=6 * GIB,
        CUDA1=6 * GIB,
    )
    reason = ended(fit, exit_code=exit_code).reason
    assert reason.code == code
    assert "9 GiB of CUDA0, where 6 GiB could be used." in reason.message
    assert "CUDA1" not in reason.message
    assert reason.evidence["needed_bytes"] == {"CUDA0": 9 * GIB, "CUDA1": 2 * GIB}
    assert reason.evidence["budget_bytes"] == {"CUDA0": 6 * GIB, "CUDA1": 6 * GIB}


def test_a_plan_that_fitted_is_told_all_the_same() -> None:
    fit = fits.fit_of(fits.line("CPU", "weights", 2 * GIB), CPU=4 * GIB)
    assert "2 GiB of CPU, where 4 GiB could be used." in ended(fit).reason.message


def test_without_a_memory_plan_no_numbers_are_made_up() -> None:
    reason = ended(FitPlan()).reason
    assert reason.message == "The device had less memory than the model needs."
    assert "needed_bytes" not in reason.evidence


LAYERS_FIXED = (
    "W fit: failed to fit params to free device memory: n_gpu_layers already set by user to 99, abort",
    "E alloc_buffer: allocating 1401.75 MiB on device 0: cudaMalloc failed: out of memory",
    "E ggml_gallocr_reserve_n_impl: failed to allocate CUDA0 buffer of size 1469837312",
    "E graph_reserve: failed to allocate compute buffers",
)


def told(lines: tuple[str, ...], exit_code: int) -> Failure:
    return classify(
        StartEnd("exited", exit_code, lines, samples.plan(samples.request()), "/state/logs/m.log", 1.0)
    )


def test_a_fixed_layer_count_that_ended_in_a_segfault_is_lack_of_memory() -> None:
    """FM-11."""
    reason = told(LAYERS_FIXED, -11).reason
    assert reason.code == "out_of_memory"
    assert "1.4 GiB for compute buffers were refused on device 0." in reason.message
    assert "placement.gpu_layers" in reason.remedy


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(
            (
                "x: failed to allocate CUDA1 buffer of size 1048576",
                "x: failed to allocate buffer for kv cache",
            ),
            "1 MiB for the KV cache were refused on CUDA1.",
            id="a cache",
        ),
        pytest.param(
            ("x: allocating 51748.00 MiB on device 1: out of memory", "x: unable to allocate CUDA1 buffer"),
            "51 GiB for weights were refused on device 1.",
            id="weights",
        ),
        pytest.param(
            ("x: allocating 2.00 MiB on device 3: out of memory",),
            "2 MiB were refused on device 3.",
            id="alone",
        ),
        pytest.param(("out of memory",), "less memory than the model needs.", id="nothing said"),
        pytest.param(
            (
                f"allocating {'9' * 400} MiB on device 1: out of memory",
                "failed to allocate <b> buffer of size 1",
            ),
            "less memory than the model needs.",
            id="hostile",
        ),
    ],
)
def test_what_was_refused_is_said(lines: tuple[str, ...], said: str) -> None:
    message = told(lines, 1).reason.message
    assert message.endswith(said)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(
            ("0.01.195.378 E ggml_aligned_malloc: insufficient memory (attempted to allocate  42.12 MB)",),
            "42 MiB were refused on CPU.",
            id="host memory",
        ),
        pytest.param(
            ("0.00.216.214 E llama_model_load: error loading model: mmap failed: Cannot allocate memory",),
            "less memory than the model needs.",
            id="no room to map the file",
        ),
        pytest.param(
            (
                "ggml_vulkan: Device memory allocation of size 1073741824 failed.",
                "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
            ),
            "1 GiB were refused on a Vulkan device.",
            id="Vulkan",
        ),
        pytest.param(
            (
                "ggml-backend.cpp:898: pre-allocated tensor (cache_k_l0) in a buffer (Vulkan0) that cannot"
                " run the operation (NONE)",
            ),
            "Vulkan0 does not take a buffer as large as cache_k_l0 of this model would be.",
            id="one buffer too large",
        ),
    ],
)
def test_every_way_to_run_out_is_lack_of_memory(lines: tuple[str, ...], said: str) -> None:
    failure = told(lines, -6)
    assert failure.reason.code == "out_of_memory"
    assert failure.reason.message.endswith(said)
