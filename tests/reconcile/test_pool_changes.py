"""What another pool or pick of devices does to what runs (07 §3.7-3.8, vectors of §15.4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.reconcile.compare import compare_requests, strongest_effect
from framework.values.instance import InstanceView
from framework.values.plan import Placement, Section
from framework.values.request import Effect, ModelRequest, ModelSource, PoolLimits, same_launch
from tests.dashboard import samples

BASE = ModelRequest(id="m", source=ModelSource(path=Path("/models/a.gguf")))
ONE, TWO = "rpc://127.0.0.1:50052", "rpc://127.0.0.1:50053"


def asking(*devices: str, pick: tuple[str, ...] | None = None, **more: Any) -> ModelRequest:
    return replace(BASE, pool=PoolLimits("p", devices, **more), devices=pick)


def runs(request: ModelRequest, *devices: str, servers: tuple[str, ...] = ()) -> InstanceView:
    """An instance that was given these devices."""
    line = (Section("devices", ("--rpc", ",".join(servers))),) if servers else ()
    placement = Placement(devices=devices, is_delegated=False)
    return samples.instance(request, plan=replace(samples.plan(request), sections=line, placement=placement))


def effect(old: ModelRequest, new: ModelRequest, running: InstanceView | None) -> Effect | None:
    changes = compare_requests(old, new, running)
    assert all(change.why for change in changes)
    return strongest_effect(changes)


@pytest.mark.parametrize(
    ("pick", "expected"),
    [(("0", "1"), None), (("0",), "nothing"), (("1",), "restart"), (None, "restart")],
)
def test_a_pick_that_names_what_is_in_use_restarts_nothing(
    pick: tuple[str, ...] | None, expected: Effect | None
) -> None:
    old = asking("0", "1", "2", pick=("0", "1"))
    assert effect(old, replace(old, devices=pick), runs(old, "0")) == expected


def test_a_pick_after_an_automatic_placement_restarts_even_where_it_names_what_is_in_use() -> None:
    old = asking("0", "1")
    assert effect(old, replace(old, devices=("0",)), runs(old, "0")) == "restart"


def test_a_pick_of_servers_is_compared_by_address() -> None:
    old = asking(ONE, TWO, pick=(ONE, TWO))
    running = runs(old, "RPC1", servers=("127.0.0.1:50053",))
    assert effect(old, replace(old, devices=(TWO,)), running) == "nothing"
    assert effect(old, replace(old, devices=(ONE,)), running) == "restart"


@pytest.mark.parametrize(
    ("before", "after", "used", "expected"),
    [
        pytest.param(("0",), ("0", "1"), ("0",), "nothing", id="wider"),
        pytest.param(("0", "1"), ("0",), ("0", "1"), "restart", id="a device in use is lost"),
        pytest.param(("0", "1"), ("0",), ("0",), "nothing", id="an unused device is lost"),
        pytest.param(("0", "1"), ("1", "0"), ("0",), "nothing", id="another order"),
        pytest.param(("0",), ("auto",), ("0",), "nothing", id="auto has it too"),
        pytest.param(("auto",), ("0",), ("0",), "nothing", id="auto to the name of the one in use"),
        pytest.param(("auto",), ("1",), ("0",), "restart", id="auto to another"),
        pytest.param(("auto",), ("auto", ONE), ("0",), "nothing", id="auto and more"),
        pytest.param(("GPU-a", "GPU-b"), ("GPU-a",), ("0",), "restart", id="one of the UUIDs is lost"),
        pytest.param(("GPU-a",), ("GPU-a", "GPU-b"), ("0",), "nothing", id="another UUID"),
        pytest.param(("cpu",), ("cpu", "0"), (), "nothing", id="host memory and more"),
        pytest.param(("cpu",), ("0",), (), "restart", id="host memory is lost"),
    ],
)
def test_a_pool_restarts_only_what_loses_a_device(
    before: tuple[str, ...], after: tuple[str, ...], used: tuple[str, ...], expected: Effect
) -> None:
    old, new = asking(*before), asking(*after)
    assert effect(old, new, runs(old, *used)) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [((ONE,), "restart"), ((TWO,), "nothing"), ((TWO, ONE), "nothing"), (("auto",), "restart")],
)
def test_a_server_is_found_by_its_address_whatever_its_number(
    after: tuple[str, ...], expected: Effect
) -> None:
    old = asking(ONE, TWO)
    running = runs(old, "RPC1", servers=("127.0.0.1:50053",))
    assert effect(old, asking(*after), running) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("0",), ("0", "1"), "nothing"),
        (("0", "1"), ("0",), "restart"),
        (("0", ONE), ("auto",), "restart"),
        (("0", ONE), ("auto", ONE), "nothing"),
    ],
)
def test_where_the_engine_chose_every_device_of_the_pool_may_be_in_use(
    before: tuple[str, ...], after: tuple[str, ...], expected: Effect
) -> None:
    old = asking(*before)
    delegated = samples.instance(old, plan=samples.plan(old))
    assert effect(old, asking(*after), delegated) == expected


def test_a_model_that_moves_to_a_pool_with_its_device_goes_on() -> None:
    old = asking("0", "1")
    new = replace(old, pool=PoolLimits("q", ("0",)))
    changes = compare_requests(old, new, runs(old, "0"))
    assert {(one.field, one.effect) for one in changes} == {
        ("pools.q.name", "nothing"),
        ("pools.q.devices", "nothing"),
    }


@pytest.mark.parametrize(
    ("limits", "field", "expected"),
    [
        ({"fill": 0.5}, "fill", "nothing"),
        ({"budget_bytes": 1}, "budget", "nothing"),
        ({"reserve_bytes": 1}, "reserve", "nothing"),
        ({"offload": "forbid"}, "offload", "nothing"),
        ({"evict": "never"}, "evict", "live"),
    ],
)
def test_limits_of_a_pool_touch_no_process(limits: dict[str, Any], field: str, expected: Effect) -> None:
    old, new = asking("0"), asking("0", **limits)
    changes = compare_requests(old, new, runs(old, "0"))
    assert [(one.field, one.effect) for one in changes] == [(f"pools.p.{field}", expected)]
    assert same_launch(old, new)


def test_other_devices_of_a_pool_are_another_launch() -> None:
    assert not same_launch(asking("0"), asking("0", "1"))


@pytest.mark.parametrize("live", ["pin", "priority"])
def test_pin_and_priority_are_live(live: str) -> None:
    old = asking("0")
    new = replace(old, live=replace(old.live, **{live: True if live == "pin" else 5}))
    assert effect(old, new, runs(old, "0")) == "live"


def test_turning_a_tensor_split_off_restarts_even_after_a_downgrade_and_repeating_it_does_not() -> None:
    old = replace(asking("0", "1"), tensor_parallel=True)
    downgraded = runs(old, "0", "1")
    assert effect(old, replace(old, tensor_parallel=False), downgraded) == "restart"
    assert effect(old, replace(old), downgraded) is None


@pytest.mark.parametrize("args", [("-sm", "row"), ("--split-mode", "tensor")])
def test_a_split_that_arguments_decide_is_no_change(args: tuple[str, ...]) -> None:
    old = replace(asking("0"), extra_args=args)
    assert effect(old, replace(old, tensor_parallel=True), runs(old, "0")) == "nothing"


def test_a_split_that_the_environment_asked_for_already_is_no_change() -> None:
    old = replace(asking("0"), env={"LLAMA_ARG_SPLIT_MODE": "tensor"})
    assert effect(old, replace(old, tensor_parallel=True), runs(old, "0")) == "nothing"


def test_shares_of_a_single_device_are_no_change() -> None:
    old = replace(asking("0"), memory_mode="manual", gpu_layers=9, tensor_split=(1.0,))
    new = replace(old, tensor_split=(1.0, 2.0))
    assert effect(old, new, runs(old, "0")) == "nothing"
    assert effect(old, new, runs(old, "0", "1")) == "restart"
