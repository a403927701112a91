"""Launches whose placement is the engine's or the user's (04 §10.9, §11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.planning.launch_place import shown_launch
from framework.planning.launch_site import Site
from framework.values.pool import Freedom
from framework.values.reason import Reason
from tests.support.launches import (
    EXPERTS,
    GIB,
    a_card,
    a_launch,
    a_pool,
    a_resident,
    a_server,
    codes,
    host,
    placed,
    refused,
    section,
)

MIB = 1 << 20
TRAINED = 131_072
ALL_LAYERS = 33
CARD = a_card(0, 23.5)


# The user's own


@pytest.mark.parametrize(
    "flags",
    [("-ngl", "20"), ("--device", "CUDA0"), ("-ts", "1"), ("--fit", "off"), ("-ncmoe", "2")],
    ids=lambda flags: flags[0],
)
def test_flags_of_the_users_own_win(flags: tuple[str, ...]) -> None:
    plan = placed(a_launch(n_ctx=8192, extra_args=flags), CARD)
    assert plan.placement.is_delegated
    assert "--fit on" in section(plan, "placement")
    assert plan.placement.needs_bytes["CUDA0"] > 0


def test_a_context_of_the_users_own_is_placed_for() -> None:
    plan = placed(a_launch(extra_args=("-c", "8192")), CARD)
    assert (plan.placement.is_delegated, plan.fit.context) == (False, 8192)


def test_tensors_placed_by_hand_are_sized_by_their_files() -> None:
    launch = a_launch(n_ctx=8192, extra_args=("--override-tensor", "exps=CPU"))
    plan = placed(launch, CARD, freedom="whole")
    assert codes(plan) == ["planning_fault"]
    assert plan.placement.needs_bytes == {"CUDA0": launch.plan.file_bytes}
    assert refused(launch, a_card(0, 2.0), freedom="whole").code == "does_not_fit"
    assert placed(launch, a_card(0, 2.0)).placement.mapped_bytes["CPU"] > 0


def test_a_fault_leaves_the_decision_to_the_engine() -> None:
    plan = placed(replace(a_launch(n_ctx=8192), fault="of a fault"), CARD)
    assert (codes(plan), section(plan, "placement")) == (["planning_fault"], "--device CUDA0 --fit on")


def test_devices_that_nobody_could_list_leave_it_too() -> None:
    unknown = Reason("devices_unknown", "Devices are not known.", severity="warning")
    plan = placed(a_launch(n_ctx=8192), unlisted=(unknown,))
    assert section(plan, "placement") == "--fit on"
    assert codes(plan) == ["devices_unknown"]


def test_by_rows_only_weights_are_divided() -> None:
    launch = a_launch(n_ctx=8192, extra_args=("--split-mode", "row"))
    plan = placed(launch, CARD, a_card(1, 23.5))
    labels = {line.label for line in plan.fit.lines if line.device == "CUDA1"}
    kv = sum(line.bytes for line in plan.fit.lines if line.device == "CUDA0" and line.label == "kv")
    assert (labels, kv) == ({"weights"}, 1024 * MIB)  # GP-10


# Servers that somebody uses

REMOTE_POOL = a_pool("rpc://10.0.0.0:50052")
OTHER = a_resident("other", {"RPC0": 4.0})
LEFT_TO_THE_ENGINE: dict[str, dict[str, Any]] = {
    "manual": {"memory_mode": "manual", "gpu_layers": 99},
    "own-device": {"extra_args": ("--device", "RPC0")},
    "own-server": {"extra_args": ("--rpc", "10.0.0.0:50052")},
    "own-layers": {"extra_args": ("-ngl", "9")},
    "by-size": {"extra_args": ("--override-tensor", "exps=CPU")},
}


@pytest.mark.parametrize("freedom", ["whole", "offloaded"])
@pytest.mark.parametrize("asked", LEFT_TO_THE_ENGINE.values(), ids=LEFT_TO_THE_ENGINE)
def test_no_launch_goes_to_a_server_that_somebody_uses(asked: dict[str, Any], freedom: Freedom) -> None:
    launch = a_launch(n_ctx=8192, pool=REMOTE_POOL, **asked)
    reason = refused(launch, a_server(0, 24.0), residents=(OTHER,), freedom=freedom)  # MN-08
    assert (reason.code, reason.evidence["servers"]) == ("does_not_fit", ["10.0.0.0:50052"])
    assert "other has it" in reason.message
    assert shown_launch(launch, Site((a_server(0, 24.0), host()), (OTHER,))).placement.devices == ("RPC0",)


@pytest.mark.parametrize("fault", [None, "of a fault"], ids=["planned", "fault"])
@pytest.mark.parametrize("asked", LEFT_TO_THE_ENGINE.values(), ids=LEFT_TO_THE_ENGINE)
def test_the_ledger_is_told_of_every_server_on_the_line(asked: dict[str, Any], fault: str | None) -> None:
    launch = replace(a_launch(n_ctx=8192, pool=REMOTE_POOL, **asked), fault=fault)
    found = placed(launch, a_server(0, 24.0)).placement
    assert found.devices == ("RPC0",)
    assert found.needs_bytes["RPC0"] > 0


def test_what_the_engine_decides_stays_off_a_server_that_somebody_uses() -> None:
    pool = a_pool("rpc://10.0.0.0:50052", "rpc://10.0.0.1:50052")
    launch = a_launch(n_ctx=8192, pool=pool, extra_args=("-ngl", "9"))
    plan = placed(launch, a_server(0, 24.0), a_server(1, 24.0), residents=(OTHER,))
    assert (plan.placement.devices, plan.placement.child_names) == (("RPC1",), {"RPC1": "RPC0"})


def test_servers_of_the_users_own_count_as_his_line_counts_them() -> None:
    launch = a_launch(n_ctx=8192, extra_args=("--rpc", "10.0.0.7:50052,10.0.0.3:50052", "--device", "RPC0"))
    servers = (a_server(3, 24.0), a_server(7, 24.0))
    found = placed(launch, *servers, CARD).placement
    assert found.child_names == {"RPC7": "RPC0", "RPC3": "RPC1"}  # the engine connects to both
    assert found.needs_bytes["RPC7"] > GIB
    assert found.needs_bytes["RPC3"] == 1
    other = a_resident("other", {"RPC3": 1.0})
    assert refused(launch, *servers, CARD, residents=(other,)).evidence["servers"] == ["10.0.0.3:50052"]


# Manual mode


def test_manual_mode_is_never_refused_for_memory() -> None:
    launch = a_launch(n_ctx=TRAINED, memory_mode="manual", gpu_layers=ALL_LAYERS)
    plan = placed(launch, a_card(0, 4.0), freedom="whole")
    assert (plan.fit.fits, codes(plan)) == (False, ["does_not_fit"])
    assert plan.reasons[0].severity == "warning"
    assert section(plan, "placement") == f"--device CUDA0 --gpu-layers {ALL_LAYERS} --fit off"


def test_manual_mode_stays_on_its_picks() -> None:
    launch = a_launch(n_ctx=8192, memory_mode="manual", gpu_layers=9, devices=("CUDA1",))
    plan = placed(launch, CARD, a_card(1, 20.0))
    assert (plan.placement.devices, plan.env["CUDA_VISIBLE_DEVICES"]) == (("CUDA1",), "1")  # 04 §8.4


def test_shares_for_other_than_the_cards_in_use_are_dropped() -> None:
    launch = a_launch(n_ctx=8192, memory_mode="manual", gpu_layers=9, tensor_split=(1.0, 2.0, 3.0))
    plan = placed(launch, CARD, a_card(1, 20.0))
    assert "tensor_split_dropped" in codes(plan)
    assert "--tensor-split" not in plan.argv


def test_more_experts_than_the_model_has_are_clamped() -> None:
    launch = a_launch(EXPERTS, memory_mode="manual", gpu_layers=49, n_cpu_moe=99, n_ctx=8192, moe_layers=48)
    plan = placed(launch, CARD)
    assert "cpu_experts_clamped" in codes(plan)
    assert "--n-cpu-moe 48" in section(plan, "placement")


def test_servers_of_the_users_own_are_used_beside_all_gpus() -> None:
    launch = a_launch(n_ctx=8192, extra_args=("--rpc", "10.0.0.0:50052"))
    plan = placed(launch, a_server(0, 20.0), a_card(0, 20.0))
    assert set(plan.placement.needs_bytes) == {"RPC0", "CUDA0", "CPU"}


def test_what_the_engine_would_move_is_no_plan_as_asked() -> None:
    launch = a_launch(n_ctx=TRAINED, extra_args=("--fit", "on"))
    assert refused(launch, a_card(0, 14.0), freedom="shrunk").code == "does_not_fit"
    assert "layers_delegated" in codes(placed(launch, a_card(0, 14.0)))


def test_without_layers_no_gpu_is_visible() -> None:
    plan = placed(a_launch(n_ctx=8192, memory_mode="manual", gpu_layers=0), CARD)
    assert section(plan, "placement") == "--device none --gpu-layers 0 --fit off"
    assert plan.env["CUDA_VISIBLE_DEVICES"] == "-1"  # 04 §11.5
    assert set(plan.placement.needs_bytes) == {"CPU"}


def test_manual_mode_divides_tensors_without_a_plan() -> None:
    launch = a_launch(
        n_ctx=8192,
        memory_mode="manual",
        gpu_layers=ALL_LAYERS,
        tensor_parallel=True,
        cache_type=("q8_0", "q8_0"),
    )
    plan = placed(launch, CARD, a_card(1, 20.0))
    assert "--fit off --split-mode tensor" in section(plan, "placement")
    assert codes(plan) == ["kv_type_dropped", "planning_fault"]
    assert "--cache-type-k" not in plan.argv


@pytest.mark.parametrize(
    ("layers", "cards"), [(ALL_LAYERS, 1), (0, 2), (-1, 2)], ids=["one-gpu", "no-layers", "automatic-layers"]
)
def test_manual_mode_divides_no_tensors_where_that_cannot_be(layers: int, cards: int) -> None:  # 04 §10.2
    launch = a_launch(n_ctx=8192, memory_mode="manual", gpu_layers=layers, tensor_parallel=True)
    plan = placed(launch, *(a_card(number, 20.0) for number in range(cards)))
    assert "--split-mode" not in plan.argv
    assert ("tensor_dropped" in codes(plan)) is (layers != 0)
