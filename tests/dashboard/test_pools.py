"""What the Pools page, the overview and the page of a waiting model say of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from framework.api.answers import DevicesAnswer
from framework.dashboard.pages.device_bar import Legend, bar_of_use, numbers_of
from framework.dashboard.pages.device_list import device_list_of
from framework.dashboard.pages.model import head_of
from framework.dashboard.pages.overview import row_of
from framework.dashboard.pages.pools import PoolSection, ResidentRow, pool_sections, pools_fragments
from framework.dashboard.updates import Sent, Whole
from framework.values.device import Device
from framework.values.instance import QueueView, State
from framework.values.pool import PoolView
from framework.values.request import PoolLimits
from tests.dashboard import pool_samples, samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.pool_samples import WAITS, gpu_pool, host_pool, pool, remote_pool, resident, use, waiting
from tests.dashboard.samples import GIB, NOW

LISTED = DevicesAnswer((), sampled_at=NOW)


def section(view: PoolView) -> PoolSection:
    (only,) = pool_sections([view], [samples.model(one.model) for one in view.residents], LISTED).sections
    return only


def row(
    *, leaves: tuple[str, ...] = (), evict: Literal["idle", "never"] = "idle", **fields: Any
) -> ResidentRow:
    limits = PoolLimits("gpu", evict=evict)
    (only,) = section(
        pool(limits=limits, residents=(resident(**fields),), next_to_leave=leaves)
    ).residents.rows
    return only


# Devices


def test_the_upper_lane_is_what_is_planned_and_the_lower_one_what_is_really_used() -> None:
    bar = bar_of_use(use())
    parts = [(part.label, part.size_bytes // GIB, part.y > 0) for part in bar.segments]
    assert parts == [
        ("planned for loaded models", 13, False),
        ("promised to starts under way", 4, False),
        ("really held by models", 12, True),
        ("held by other programs", 5, True),
    ]
    assert bar.segments[1].start_share == pytest.approx(13 / 24)
    assert bar.marks == (pytest.approx(20 / 24),)


def test_where_nobody_measures_the_lower_lane_is_what_is_not_free() -> None:
    parts = bar_of_use(use(measured_bytes=None, foreign_bytes=None)).segments[2:]
    assert [(part.label, part.size_bytes) for part in parts] == [("in use, by whomever", 17 * GIB)]


def test_a_device_that_may_be_planned_whole_or_is_of_unknown_size_has_no_mark() -> None:
    assert bar_of_use(use(usable_bytes=24 * GIB)).marks == ()
    assert bar_of_use(use(total_bytes=0, free_bytes=0, usable_bytes=0)).marks == ()


@pytest.mark.parametrize("planned", [0, 1, 24 * GIB, 900 * GIB])
def test_a_lane_stays_within_its_device_whatever_is_planned(planned: int) -> None:
    for part in bar_of_use(use(planned_bytes=planned)).segments:
        assert 0 <= part.start_share < 1
        assert 0 < part.start_share + part.width_share <= 1 + 1e-9


def test_a_picture_is_told_to_those_who_do_not_see_it() -> None:
    assert bar_of_use(use(promised_bytes=0)).description == (
        "CUDA0: 13 GiB planned for loaded models; 12 GiB really held by models; "
        "5 GiB held by other programs. 7 GiB free of 24 GiB."
    )


def test_what_is_not_known_is_a_dash() -> None:
    numbers = dict(numbers_of(use(measured_bytes=None, foreign_bytes=None, utilisation=None)))
    assert (numbers["Measured"], numbers["Other programs"]) == ("–", "–")
    assert "At work" not in numbers
    assert dict(numbers_of(use()))["At work"] == "42 %"


@pytest.mark.parametrize(("usable", "said"), [(20 * GIB, "20 GiB, 85 % taken"), (0, "0 B")])
def test_how_much_of_what_may_be_planned_is_taken_is_a_number(usable: int, said: str) -> None:
    assert dict(numbers_of(use(usable_bytes=usable)))["May be planned"] == said


def test_a_budget_is_the_whole_picture_with_what_counts_against_it() -> None:
    (device,) = section(host_pool()).devices.rows
    assert [(part.label, part.width_share) for part in device.bar.segments] == [
        ("planned for loaded models", 0.25),
        ("pages of model files", 0.25),
        ("really held by models", 1.0),
    ]
    assert device.bar.marks == (0.75,)
    assert device.scale == "The picture is of the budget of 4 GiB."
    assert dict(device.numbers)["May be planned"] == "3 GiB, 33 % taken"
    assert dict(device.numbers)["Pages of files"] == "1 GiB"
    assert device.bar.description.startswith("CPU, of the budget of 4 GiB: 1 GiB planned")


def test_without_a_budget_the_whole_device_is_the_picture() -> None:
    (device,) = section(host_pool(limits=PoolLimits("host", ("cpu",)))).devices.rows
    assert device.scale == ""
    assert device.bar == bar_of_use(host_pool().devices[0])
    assert "Pages of files" not in dict(device.numbers)


def test_pages_are_in_the_legend_where_a_budget_counts_them() -> None:
    counted, plain = (
        pool_sections([view], [], LISTED).legend
        for view in (host_pool(), host_pool(limits=PoolLimits("host", ("cpu",))))
    )
    assert set(counted) - set(plain) == {Legend("mapped", "pages of model files")}


def test_what_a_device_is_is_said_once() -> None:
    (device,) = section(host_pool()).devices.rows
    assert (device.kind, device.description) == ("host memory", "")


def test_the_overview_draws_what_pools_know_and_else_what_is_in_use() -> None:
    devices = (Device("CUDA0", "gpu", 24 * GIB, 7 * GIB, pool="gpu"), Device("CPU", "cpu", 8, 2))
    rows = device_list_of(DevicesAnswer(devices, sampled_at=NOW), [gpu_pool()]).rows
    assert rows[0].bar == bar_of_use(use())
    assert [part.label for part in rows[1].bar.segments] == ["in use, by whomever"]


# Residents


@pytest.mark.parametrize(
    ("fields", "leaves", "said"),
    [
        ({"priority": 5}, ("smollm2.0@1",), "next, for priority 5 and above"),
        ({"load": "at-start"}, ("smollm2.0@1",), "next, for priority 1 and above"),
        ({}, ("other.0@1", "smollm2.0@1"), "as number 2, for priority 0 and above"),
        ({"pinned": True}, (), "never: it is pinned"),
        ({"holding": "promised"}, (), "not while it loads"),
        ({"holding": "leaving"}, (), "now"),
        ({"holding": "stuck"}, (), "when the system lets go of its process"),
        ({}, (), "not now"),
    ],
)
def test_a_resident_says_when_it_leaves_or_why_not(
    fields: dict[str, Any], leaves: tuple[str, ...], said: str
) -> None:
    assert row(leaves=leaves, **fields).leaves == said


def test_from_a_pool_that_evicts_nobody_nobody_leaves() -> None:
    assert row(evict="never").leaves == "never: the pool evicts nobody"


def test_residents_stand_in_the_order_in_which_they_leave() -> None:
    assert [one.model for one in section(gpu_pool()).residents.rows] == [
        "degraded",
        "smollm2",
        "chat",
        "loading",
        "old",
    ]


@pytest.mark.parametrize(
    ("idle_s", "said"), [(0.4, "0 s"), (43.9, "40 s"), (119.0, "1 min"), (7300.0, "2 h")]
)
def test_an_idle_time_moves_in_steps_that_are_worth_reading(idle_s: float, said: str) -> None:
    assert row(idle_s=idle_s).idle == said


def test_a_pin_and_a_priority_are_shown() -> None:
    assert (row(pinned=True).pinned, row(priority=7).priority) == (True, 7)


def test_only_what_is_held_is_shown_by_device() -> None:
    assert row(bytes={"CUDA0": GIB, "CUDA1": 0}).devices == (("CUDA0", "1 GiB"),)


def test_a_resident_of_a_model_that_nobody_knows_any_more_has_no_button() -> None:
    (only,) = pool_sections([pool(residents=(resident(),))], [], LISTED).sections
    assert only.residents.rows[0].actions == ()


# Rules and queue


def test_the_rules_of_a_pool_are_told() -> None:
    assert section(remote_pool()).rules == (
        "97 % of each device may be planned",
        "1 GiB of each device stay free",
        "no model is unloaded to make room",
        "layers stay on GPUs",
    )
    assert section(pool(limits=PoolLimits("host", ("cpu",), budget_bytes=GIB))).rules == (
        "at most 1 GiB of each device",
        "idle models make room",
    )


def test_a_share_is_of_gpus_where_the_pool_has_no_server() -> None:
    assert section(pool(limits=PoolLimits("gpu"))).rules[0] == "97 % of each GPU may be planned"


def test_where_there_is_a_budget_share_and_reserve_are_of_that() -> None:
    limits = PoolLimits("gpu", budget_bytes=20 * GIB, reserve_bytes=GIB)
    assert section(pool(limits=limits)).rules[:3] == (
        "at most 20 GiB of each device",
        "97 % of that may be planned",
        "1 GiB of that stay free",
    )


def test_who_waits_has_a_place_requests_and_a_reason() -> None:
    first, second = section(gpu_pool()).waiting.rows
    assert (first.model, first.position, first.requests, first.eta_s) == ("big-one", 1, 3, 12.0)
    assert (second.replica, second.eta_s, second.reason) == ("replica 1", None, WAITS)


def test_a_waiting_model_tells_its_place_on_its_own_page_and_on_the_overview() -> None:
    view = samples.model("big-one", State.PENDING, queue=QueueView(3, 16, 4.2, 11.7, position=2))
    head = head_of(view, waiting(position=2))
    assert head.memory_wait is not None
    assert (head.memory_wait.position, head.memory_wait.reason) == (2, WAITS)
    assert "number 2 in the queue for memory of pool default" in row_of(view, "/").flags


def test_planning_that_waits_for_memory_is_called_that_everywhere() -> None:
    view = samples.model("big-one", State.PLANNING, queue=QueueView(3, 16, 4.2, None, position=2))
    assert row_of(view, "/").look.label == "Waiting for memory"
    assert head_of(view, waiting(position=2)).look.label == "Waiting for memory"
    promised = resident("big-one", holding="promised")
    (row,) = section(pool(residents=(promised,), waiting=(waiting(),))).residents.rows
    assert (row.state, row.leaves) == ("waiting for memory", "is not there yet")


def test_a_replica_that_plans_is_not_called_ready_or_waiting_without_a_place() -> None:
    queued, none = QueueView(0, 16, None, None, position=1), QueueView(0, 16, None, None)
    assert row_of(samples.model(state=State.READY, queue=queued), "/").look.label == "Ready"
    assert row_of(samples.model(state=State.PLANNING, queue=none), "/").look.label == "Planning"


def test_who_waits_for_what_nobody_gives_is_promised_no_time() -> None:
    hopeless = waiting(reason=replace(WAITS, severity="error"), eta_s=1.1)
    assert section(pool(waiting=(hopeless,))).waiting.rows[0].eta_s is None


async def test_a_time_that_nobody_knows_is_said_to_be_not_known() -> None:
    unknown = waiting("smollm2", eta_s=None)
    view = samples.model(state=State.PLANNING, queue=QueueView(3, 16, 4.2, None, position=1))
    system = make_system(view)
    system.fleet.show(pool(waiting=(unknown,)))
    async with browser(system) as client:
        for path in ("/", "/pools", "/models/smollm2"):
            assert "for how long is not known yet" in (await page(client, path)).text, path


@pytest.mark.parametrize(
    ("pin", "said"), [(True, "stays, it is pinned"), (False, "makes room by priority 3")]
)
def test_a_model_says_what_becomes_of_it_when_memory_is_short(pin: bool, said: str) -> None:
    asked = samples.request(live={"pin": pin, "priority": 3})
    assert head_of(samples.model(asked=asked)).keeps == said


# Updates


def changed(before: PoolView, after: PoolView) -> list[str]:
    sent = Sent()
    sent.remember(pools_fragments(pool_sections([before], [], LISTED)))
    found = sent.changes(pools_fragments(pool_sections([after], [], LISTED)))
    return [update.fragment.template for update in found if isinstance(update, Whole)]


def test_only_the_part_of_a_pool_that_moved_is_sent() -> None:
    busy = gpu_pool()
    assert changed(busy, replace(busy, devices=(use(free_bytes=1),))) == ["_pool_devices.html"]
    assert changed(busy, replace(busy, waiting=())) == ["_pool_waiting.html"]
    assert changed(busy, replace(busy, residents=())) == ["_pool_residents.html"]
    assert changed(busy, replace(busy, evictions=8)) == ["_pool.html"]
    assert changed(busy, busy) == []


# The page


def busy_system() -> FakeSystem:
    system = make_system(samples.model(), samples.model("chat"))
    system.fleet.show(*pool_samples.all_pools())
    return system


async def test_the_page_shows_every_pool_without_script() -> None:
    async with browser(busy_system()) as client:
        tree = await page(client, "/pools")
    assert [one.attributes["aria-label"] for one in tree.all("ul", class_="pool-devices")] == ["Devices"] * 4
    assert "7 unloads to make room so far" in tree.text
    assert "No model holds memory here." in tree.text


async def test_unload_leads_back_to_the_pool_with_a_confirmation() -> None:
    system = busy_system()
    async with browser(system) as client:
        tree = await page(client, "/pools")
        form = next(form for form in tree.all("form") if form.attributes["action"] == "/models/chat/unload")
        fields = {one.attributes["name"]: one.attributes["value"] for one in form.all("input")}
        origin = {"origin": str(client.base_url)}
        answer = await client.post("/models/chat/unload", data=fields, headers=origin)
        assert answer.headers["location"].startswith("/pools?done=")
        confirmed = await page(client, answer.headers["location"])
    assert system.fleet.asked == [("unload", "chat", "drain", "dashboard")]
    assert "unload of chat accepted" in confirmed.text


async def test_looking_at_pools_lists_devices_but_not_again_and_again() -> None:
    system = busy_system()
    async with browser(system) as client:
        for _ in range(3):
            await page(client, "/pools")
    assert len(system.devices_listed) <= 1
