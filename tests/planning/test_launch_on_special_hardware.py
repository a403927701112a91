"""Launches on slices of cards, on processors that share their memory, and on datacenter cards (04 §6, §7)."""

from __future__ import annotations

import pytest

from framework.planning.launch_place import place_launch, shown_launch
from framework.planning.launch_site import Site
from framework.values.device import Device
from framework.values.reason import Refused
from tests.support.launches import (
    DENSE,
    GIB,
    a_card,
    a_launch,
    a_pool,
    a_resident,
    codes,
    host,
    placed,
    refused,
)

TRAINED = 131_072


def test_a_launch_is_on_one_slice_of_a_card() -> None:
    slices = [
        Device(f"MIG-{n}", "gpu", 24 * GIB, gib * GIB, uuid=f"MIG-{n}") for n, gib in (("a", 9), ("b", 12))
    ]
    plan = placed(a_launch(n_ctx=8192), *slices, freedom="whole")
    assert (plan.placement.devices, plan.env["CUDA_VISIBLE_DEVICES"]) == (("MIG-b",), "MIG-b")  # GP-06
    large = a_launch(n_ctx=TRAINED, pool=a_pool(offload="forbid"))
    assert refused(large, *slices).code == "does_not_fit"


def test_weights_that_can_never_fit_into_shared_memory_are_refused() -> None:
    chip = Device("ROCm0", "gpu", 60 * GIB, 50 * GIB, architecture="gfx1151:xnack-", is_unified=True)
    launch = a_launch(DENSE, n_ctx=4096)
    with pytest.raises(Refused) as caught:
        place_launch(launch, Site((chip, host(5.0))), "offloaded")
    assert caught.value.failure.reason.code == "unified_memory_refused"


def test_weights_wait_for_shared_memory_that_others_hold() -> None:
    chip = Device("ROCm0", "gpu", 60 * GIB, 50 * GIB, architecture="gfx1151:xnack-", is_unified=True)
    site = Site((chip, host(5.0)), (a_resident("other", {"ROCm0": 20.0}),))
    launch = a_launch(DENSE, n_ctx=4096)
    with pytest.raises(Refused) as caught:
        place_launch(launch, site, "offloaded")
    assert caught.value.failure.reason.code == "does_not_fit"  # 04 §6.3
    assert "does_not_fit" in codes(shown_launch(launch, site))


def test_datacenter_cards_are_tuned_unless_somebody_says_otherwise() -> None:
    card = a_card(0, 70.0, total_gib=80.0, description="NVIDIA H100 80GB HBM3")
    assert placed(a_launch(), card).env["GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F"] == "1"
    own = a_launch(env={"GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F": "0"})
    assert placed(own, card).env["GGML_CUDA_FORCE_CUBLAS_COMPUTE_32F"] == "0"
