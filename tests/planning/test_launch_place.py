"""Where a launch goes, and what its engine is told (04 §8-§11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.planning.launch_place import place_launch, shown_launch
from framework.planning.launch_site import Site
from framework.values.device import Device
from framework.values.pool import Freedom, Resident
from framework.values.reason import Refused
from tests.engines.requests import real_caps
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
    within_budgets,
)

MIB = 1 << 20
TRAINED = 131_072
ALL_LAYERS = 33
CARD = a_card(0, 23.5)


# As asked


def test_what_fits_is_said_in_full_and_nothing_is_left_to_the_fit_step() -> None:
    plan = placed(a_launch(), CARD, freedom="whole")
    assert section(plan, "placement") == f"--device CUDA0 --gpu-layers {ALL_LAYERS} --fit off"
    assert section(plan, "context") == f"-c {TRAINED}"
    assert section(plan, "fit-ctx") == ""
    assert (plan.fit.fits, plan.context, plan.reasons) == (True, TRAINED, ())


def test_the_ledger_is_told_what_each_device_holds() -> None:
    plan = placed(a_launch(), CARD)
    found = plan.placement
    assert (found.devices, found.is_delegated, found.gpu_layers) == (("CUDA0",), False, None)
    assert found.needs_bytes == {name: plan.fit.needed_bytes(name) for name in ("CUDA0", "CPU")}
    assert found.grows_bytes == {"CPU": 8 * GIB}
    assert set(found.mapped_bytes) == {"CPU"}


def test_the_roomiest_card_is_taken() -> None:
    assert placed(a_launch(n_ctx=8192), a_card(0, 10.0), a_card(1, 12.0)).placement.devices == ("CUDA1",)


def test_a_card_that_others_were_promised_is_not_roomy() -> None:
    other = a_resident("other", {"CUDA1": 8.0}, holding="promised")
    plan = placed(a_launch(n_ctx=8192), a_card(0, 10.0), a_card(1, 12.0), residents=(other,))
    assert plan.placement.devices == ("CUDA0",)


def test_what_was_asked_is_the_same_launch_wherever_it_goes() -> None:
    one, other = placed(a_launch(), CARD), placed(a_launch(), a_card(0, 12.0))
    assert one.argv != other.argv
    assert one.fingerprint == other.fingerprint


# Several devices


def test_an_asked_context_takes_the_fewest_cards_that_hold_it() -> None:
    cards = [a_card(number, 13.0, total_gib=16.0) for number in range(4)]
    plan = placed(a_launch(n_ctx=TRAINED), *cards, freedom="whole")
    assert plan.placement.devices == ("CUDA0", "CUDA1")
    assert sum(plan.placement.shares) == ALL_LAYERS
    assert section(plan, "placement").endswith(",".join(f"{share:g}" for share in plan.placement.shares))
    assert within_budgets(plan.fit)


def test_unequal_cards_get_layers_by_their_room() -> None:
    plan = placed(a_launch(n_ctx=TRAINED), a_card(0, 15.0), a_card(1, 12.0), freedom="whole")
    assert plan.placement.shares[0] > plan.placement.shares[1]
    assert within_budgets(plan.fit)


def test_an_automatic_context_gets_no_more_cards_than_the_model_needs() -> None:
    cards = (a_card(0, 12.0, total_gib=12.0), a_card(1, 12.0, total_gib=12.0))
    plan = placed(a_launch(), *cards)
    assert plan.placement.devices == ("CUDA0",)
    assert codes(plan) == ["context_fitted"]


def test_remote_servers_in_use_are_all_that_an_engine_is_given() -> None:
    pool = a_pool("rpc://10.0.0.0:50052", "rpc://10.0.0.1:50052")
    plan = placed(a_launch(n_ctx=8192, pool=pool), a_server(0, 2.0), a_server(1, 9.0), CARD)
    assert section(plan, "placement").startswith("--rpc 10.0.0.1:50052 --device RPC0 ")
    assert plan.placement.child_names == {"RPC1": "RPC0"}


def test_both_servers_share_what_neither_can_hold() -> None:
    pool = a_pool("rpc://10.0.0.0:50052", "rpc://10.0.0.1:50052")
    plan = placed(a_launch(n_ctx=8192, pool=pool), a_server(0, 4.0), a_server(1, 4.0))
    assert plan.placement.devices == ("RPC0", "RPC1")
    assert "--rpc 10.0.0.0:50052,10.0.0.1:50052 --device RPC0,RPC1" in section(plan, "placement")


def test_a_server_that_somebody_uses_is_none() -> None:
    pool = a_pool("rpc://10.0.0.0:50052", offload="forbid")
    other = a_resident("other", {"RPC0": 0.5})
    reason = refused(a_launch(n_ctx=4096, pool=pool), a_server(0, 12.0), residents=(other,))
    assert reason.code == "does_not_fit"  # MN-08
    assert "other holds" in reason.message


@pytest.mark.parametrize("freedom", ["whole", "shrunk", "offloaded"])
def test_a_server_that_somebody_uses_is_not_done_without(freedom: Freedom) -> None:
    launch = a_launch(n_ctx=8192, pool=a_pool("rpc://10.0.0.0:50052"))
    other = a_resident("other", {"RPC0": 0.5}, pinned=True)
    assert refused(launch, a_server(0, 24.0), freedom=freedom, residents=(other,)).code == "does_not_fit"
    shown = shown_launch(launch, Site((a_server(0, 24.0), host()), (other,)))
    assert codes(shown) == ["does_not_fit"]  # MN-08: no silent fall-back


def test_a_launch_gets_no_device_of_a_server_that_somebody_uses() -> None:
    pool = a_pool("rpc://10.0.0.0:50052", "rpc://10.0.0.2:50052")
    sibling = replace(a_server(1, 24.0), endpoint="10.0.0.0:50052")
    launch = a_launch(n_ctx=8192, pool=pool)
    other = a_resident("other", {"RPC0": 4.0})
    plan = placed(launch, a_server(0, 24.0), sibling, a_server(2, 12.0), residents=(other,), freedom="whole")
    assert plan.placement.devices == ("RPC2",)
    alone = a_launch(n_ctx=8192, pool=a_pool("rpc://10.0.0.0:50052"))
    small = replace(a_server(0, 1.0), total_bytes=GIB)
    assert "other has its server" in refused(alone, small, sibling, residents=(other,)).message


def test_a_card_that_is_not_used_is_hidden() -> None:
    plan = placed(a_launch(n_ctx=8192), a_card(0, 10.0), a_card(1, 12.0))
    assert (plan.env["CUDA_VISIBLE_DEVICES"], plan.env["CUDA_DEVICE_ORDER"]) == ("1", "PCI_BUS_ID")
    assert section(plan, "placement").startswith("--device CUDA0 ")
    assert plan.placement.child_names == {"CUDA1": "CUDA0"}


def test_a_card_is_used_by_the_runtime_that_the_pool_names() -> None:
    vulkan = Device("Vulkan1", "gpu", 12 * GIB, 12 * GIB)
    plan = placed(a_launch(n_ctx=8192, pool=a_pool("Vulkan1")), CARD, vulkan)
    assert plan.env["CUDA_VISIBLE_DEVICES"] == "-1"  # GP-03
    assert section(plan, "placement").startswith("--device Vulkan1 ")


def test_an_engine_without_remote_devices_is_told_so() -> None:
    caps = replace(real_caps(), flags=real_caps().flags - {"--rpc"})
    launch = a_launch(n_ctx=8192, pool=a_pool("rpc://10.0.0.0:50052"), caps=caps)
    assert refused(launch, a_server(0, 12.0)).code == "rpc_unsupported"


# Less than asked


def test_whole_is_whole() -> None:
    assert refused(a_launch(), a_card(0, 14.0), freedom="whole").code == "does_not_fit"


def test_an_automatic_context_is_the_longest_that_fits() -> None:
    plan = placed(a_launch(), a_card(0, 14.0), freedom="shrunk")
    longer = placed(a_launch(), a_card(0, 15.0), freedom="shrunk")
    assert codes(plan) == ["context_fitted"]
    assert plan.context % 256 == 0
    assert within_budgets(plan.fit)
    assert plan.fit.budget_bytes["CUDA0"] - plan.fit.needed_bytes("CUDA0") < 64 * MIB
    assert longer.context > plan.context


def test_an_asked_context_never_shrinks() -> None:
    assert refused(a_launch(n_ctx=TRAINED), a_card(0, 14.0), freedom="shrunk").code == "does_not_fit"


def test_fewer_slots_are_tried_before_anything_is_moved() -> None:
    many = a_launch(n_ctx=32_768, slots=64)
    whole = placed(many, CARD, freedom="whole").fit.needed_bytes("CUDA0")
    less = (whole - 8 * MIB) / GIB + 0.03 * 24
    plan = placed(many, a_card(0, less), freedom="shrunk")
    assert codes(plan) == ["slots_reduced"]
    assert 0 < plan.slots < 64
    assert section(plan, "slots") == f"--parallel {plan.slots}"


def test_slots_of_the_users_own_stay() -> None:
    many = a_launch(n_ctx=32_768, extra_args=("--parallel", "64"))
    whole = placed(many, CARD, freedom="whole").fit.needed_bytes("CUDA0")
    less = (whole - 8 * MIB) / GIB + 0.03 * 24
    assert refused(many, a_card(0, less), freedom="shrunk").code == "does_not_fit"


# In host memory


def test_layers_move_where_an_asked_context_leaves_no_room() -> None:
    plan = placed(a_launch(n_ctx=TRAINED), a_card(0, 14.0))
    assert codes(plan) == ["layers_delegated"]
    assert plan.placement.gpu_layers is not None
    assert 0 < plan.placement.gpu_layers < ALL_LAYERS
    assert within_budgets(plan.fit)
    assert f"--gpu-layers {plan.placement.gpu_layers} --fit off" in section(plan, "placement")


def test_no_more_layers_move_than_have_to() -> None:
    plan = placed(a_launch(n_ctx=TRAINED), a_card(0, 14.0))
    left = plan.fit.budget_bytes["CUDA0"] - plan.fit.needed_bytes("CUDA0")
    assert left < plan.fit.needed_bytes("CUDA0") / (plan.placement.gpu_layers or 1)


def test_experts_move_before_layers() -> None:
    plan = placed(a_launch(EXPERTS, n_ctx=32_768), a_card(0, 14.0))
    assert plan.placement.cpu_experts > 0
    assert plan.placement.gpu_layers is None
    assert f"--n-cpu-moe {plan.placement.cpu_experts}" in section(plan, "placement")
    assert within_budgets(plan.fit)


def test_what_is_moved_is_divided_over_all_cards() -> None:
    plan = placed(a_launch(EXPERTS, n_ctx=32_768), a_card(0, 6.0), a_card(1, 7.0))
    assert plan.placement.devices == ("CUDA0", "CUDA1")
    assert within_budgets(plan.fit)


def test_a_card_without_room_for_a_layer_leaves_everything_to_host_memory() -> None:
    plan = placed(a_launch(n_ctx=8192), a_card(0, 0.9, total_gib=1.0))
    assert (plan.placement.devices, plan.placement.gpu_layers) == ((), 0)
    assert codes(plan) == ["layers_delegated"]
    assert f"{ALL_LAYERS} of {ALL_LAYERS} layers" in plan.reasons[0].message
    assert section(plan, "placement") == "--device none --fit off"
    assert plan.env["CUDA_VISIBLE_DEVICES"] == "-1"


def test_a_card_that_a_pinned_model_fills_leaves_nothing_without_a_word() -> None:
    other = a_resident("other", {"CUDA0": 20.0}, pinned=True)
    plan = placed(a_launch(n_ctx=TRAINED), a_card(0, 3.0), residents=(other,))
    assert codes(plan) == ["layers_delegated"]
    assert plan.fit.remedies
    nothing = placed(a_launch(n_ctx=TRAINED), a_card(0, 0.2), residents=(other,))
    assert codes(nothing) == ["layers_delegated"]
    assert nothing.fit.remedies


def test_a_pool_of_host_memory_has_no_gpus_to_miss() -> None:
    assert codes(placed(a_launch(n_ctx=8192, pool=a_pool("cpu")))) == []


def test_a_pool_that_forbids_it_moves_nothing() -> None:
    launch = a_launch(n_ctx=TRAINED, pool=a_pool(offload="forbid"))
    assert refused(launch, a_card(0, 14.0)).code == "does_not_fit"


# Refused


def test_a_refusal_names_what_is_needed_what_there_is_who_has_it_and_what_helps() -> None:
    other = a_resident("other", {"CUDA0": 8.0})
    launch = a_launch(n_ctx=TRAINED, pool=a_pool(offload="forbid"))
    reason = refused(launch, a_card(0, 2.5, total_gib=32.0), residents=(other,))  # FM-15
    assert reason.severity == "error"
    assert "other holds 8 GiB" in reason.message
    assert "other programs hold 22 GiB" in reason.message
    assert reason.evidence["held_bytes"] == {"CUDA0": {"other.0.1": 8 * GIB}}
    assert reason.evidence["foreign_bytes"] == {"CUDA0": int(21.5 * GIB)}
    assert reason.evidence["needed_bytes"]["CUDA0"] > 20 * GIB
    assert 'placement.mode = "manual"' in reason.remedy


def test_a_refusal_says_what_would_be_enough() -> None:
    launch = a_launch(n_ctx=TRAINED, pool=a_pool(offload="forbid"))
    assert "Store the cache as" in refused(launch, a_card(0, 14.0)).remedy


def test_a_plan_that_fits_nowhere_is_shown_with_what_it_lacks() -> None:
    launch = a_launch(n_ctx=TRAINED, pool=a_pool(offload="forbid"))
    plan = shown_launch(launch, Site((a_card(0, 14.0), host())))
    assert (plan.fit.fits, codes(plan)) == (False, ["does_not_fit"])
    assert plan.fit.remedies


def test_a_ceiling_counts_like_memory_that_is_not_there() -> None:
    plan = placed(a_launch(), CARD, ceilings={"CUDA0": 13 * GIB})
    assert plan.placement.needs_bytes["CUDA0"] <= 13 * GIB
    assert codes(plan) == ["context_fitted"]


def test_more_room_never_fits_worse() -> None:
    contexts = [placed(a_launch(), a_card(0, gib)).context for gib in (9.0, 11.0, 13.0, 17.0, 23.0)]
    assert contexts == sorted(contexts)


# Host memory


def test_a_pool_of_host_memory_has_a_budget() -> None:
    pool = a_pool("cpu", budget_bytes=12 * GIB)
    plan = placed(a_launch(n_ctx=0, pool=pool))
    assert section(plan, "placement") == "--device none --fit off"
    assert plan.placement.needs_bytes["CPU"] + plan.placement.mapped_bytes["CPU"] <= 12 * GIB
    assert "context_fitted" in codes(plan)


def test_a_model_that_exceeds_memory_only_with_pages_of_its_file_starts_alone() -> None:
    launch = a_launch(n_ctx=4096, pool=a_pool("cpu"), extra_args=("--no-repack",))
    site = Site((host(3.0, total_gib=4.0),))
    assert "model_exceeds_memory" in codes(place_launch(launch, site, "whole"))


def test_beside_the_pages_of_others_it_does_not() -> None:
    launch = a_launch(n_ctx=4096, pool=a_pool("cpu"), extra_args=("--no-repack",))
    other = a_resident("other", {"CPU": 0.1}, pool="p", mapped={"CPU": GIB})
    with pytest.raises(Refused):
        place_launch(launch, Site((host(3.0, total_gib=4.0),), (other,)), "whole")


def test_a_prompt_cache_is_limited_to_what_is_left() -> None:
    residents = tuple(a_resident(f"m{number}", {}, grows={"CPU": 4 * GIB}) for number in range(2))
    launch = a_launch(n_ctx=8192)
    plan = place_launch(launch, Site((CARD, host(12.0, total_gib=16.0)), residents), "whole")
    assert codes(plan) == ["prompt_cache_limited"]  # FM-17
    limit_mib = int(section(plan, "prompt-cache").split()[1])
    assert 0 < limit_mib <= 2048
    assert plan.placement.grows_bytes == {"CPU": limit_mib * MIB}


def test_together_prompt_caches_never_exceed_what_is_left() -> None:
    residents: tuple[Resident, ...] = ()
    for number in range(3):
        plan = place_launch(
            a_launch(n_ctx=8192), Site((CARD, host(12.0, total_gib=16.0)), residents), "whole"
        )
        grown = a_resident(f"m{number}", {}, grows=plan.placement.grows_bytes)
        residents = (*residents, grown)
    assert sum(resident.grows.get("CPU", 0) for resident in residents) <= 12 * GIB  # FM-17


def test_a_prompt_cache_of_the_users_own_stays() -> None:
    launch = a_launch(n_ctx=8192, extra_args=("--cache-ram", "4096"))
    plan = place_launch(launch, Site((CARD, host(2.0, total_gib=16.0))), "whole")
    assert section(plan, "prompt-cache") == ""


# Tensor split


def test_tensors_are_divided_over_all_cards() -> None:
    launch = a_launch(n_ctx=16_384, tensor_parallel=True)
    plan = placed(launch, CARD, a_card(1, 23.5), freedom="whole")
    assert (plan.placement.split, plan.placement.devices) == ("tensor", ("CUDA0", "CUDA1"))
    assert "--split-mode tensor" in section(plan, "placement")
    needs = plan.placement.needs_bytes
    assert abs(needs["CUDA0"] - needs["CUDA1"]) < 400 * MIB


def test_a_quantised_cache_cannot_be_divided() -> None:
    launch = a_launch(n_ctx=16_384, tensor_parallel=True, cache_type=("q8_0", "q8_0"))
    plan = placed(launch, CARD, a_card(1, 23.5))
    assert "kv_type_dropped" in codes(plan)
    assert "--cache-type-k" not in plan.argv


def test_one_card_divides_nothing_and_keeps_its_cache() -> None:
    launch = a_launch(n_ctx=16_384, tensor_parallel=True, cache_type=("q8_0", "q8_0"))
    plan = placed(launch, CARD)
    assert codes(plan) == ["tensor_dropped"]
    assert "--cache-type-k q8_0" in " ".join(plan.argv)


def test_what_does_not_fit_divided_goes_by_layers() -> None:
    launch = a_launch(n_ctx=16_384, tensor_parallel=True)
    plan = placed(launch, CARD, a_card(1, 0.2))
    assert codes(plan) == ["tensor_dropped"]
    assert plan.placement.devices == ("CUDA0",)
