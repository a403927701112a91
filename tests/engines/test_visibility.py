"""Masks: how they are read, written and kept in order, and what a child calls its devices (04 §3, §8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.visibility import (
    Mask,
    Masked,
    inherited_mask,
    is_slice,
    keep_order,
    parse_mask,
    remote_names,
    show_only,
    write_mask,
)
from framework.values.device import Device

CUDA, HIP, ROCR, ORDER = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        pytest.param(None, Mask(), id="unset"),
        pytest.param("", Mask("ids"), id="empty"),
        pytest.param("0,2,", Mask("ids", (0, 2)), id="empty items"),
        pytest.param("-1", Mask("ids"), id="hidden"),
        pytest.param("0,-1,1", Mask("ids", (0,)), id="cut at the invalid one"),
        pytest.param("GPU-5f1c", Mask("opaque", tokens=("GPU-5f1c",)), id="uuid"),
        pytest.param("MIG-a, MIG-b", Mask("opaque", tokens=("MIG-a", "MIG-b")), id="slices"),
        pytest.param("0,GPU-5f1c", Mask("opaque", tokens=("0", "GPU-5f1c")), id="mixed"),
    ],
)
def test_a_mask_is_read_as_the_runtimes_read_it(text: str | None, mask: Mask) -> None:
    assert parse_mask(text) == mask


@given(st.text())
def test_any_text_is_a_mask(text: str) -> None:
    assert all(number >= 0 for number in parse_mask(text).ids)


@pytest.mark.parametrize(
    ("environ", "backend", "mask"),
    [
        pytest.param({CUDA: "3,1"}, "cuda", Mask("ids", (3, 1)), id="cuda"),
        pytest.param({HIP: "", CUDA: "3,1"}, "rocm", Mask("ids"), id="set-though-empty"),
        pytest.param({ROCR: "4", CUDA: "3,1"}, "rocm", Mask("ids", (4,)), id="rocr before cuda"),
        pytest.param({ROCR: "GPU-x"}, "rocm", Mask("opaque", tokens=("GPU-x",)), id="opaque"),
        pytest.param({HIP: "1"}, "cuda", Mask(), id="no concern of cuda"),
    ],
)
def test_the_mask_that_counts(environ: Mapping[str, str], backend: Masked, mask: Mask) -> None:
    assert inherited_mask(environ, backend) == mask


def test_an_ordinal_is_a_place_in_the_mask() -> None:
    assert [parse_mask("3,1").physical(ordinal) for ordinal in (0, 1, 2)] == [3, 1, 2]


@pytest.mark.parametrize(
    ("environ", "ids", "backend", "prefer_rocr", "expected"),
    [
        pytest.param({HIP: "9"}, (2, 3), "cuda", False, {CUDA: "2,3", HIP: "9"}, id="cuda"),
        pytest.param({HIP: "9"}, (2, 3), "rocm", True, {ROCR: "2,3", CUDA: "0,1"}, id="rocr"),
        pytest.param({ROCR: "0"}, (2, 3), "rocm", False, {CUDA: "2,3", HIP: "2,3"}, id="hip instead of rocr"),
        pytest.param({ROCR: "0"}, (), "rocm", True, {CUDA: "-1", HIP: "-1"}, id="none of them"),
        pytest.param({}, (), "cuda", False, {CUDA: "-1"}, id="no card of cuda"),
        pytest.param({}, (1,), "rocm", True, {ROCR: "1", CUDA: "0"}, id="counted anew"),
        pytest.param({CUDA: "GPU-a,GPU-b"}, (1,), "cuda", False, {CUDA: "GPU-b"}, id="behind uuids"),
        pytest.param({CUDA: "GPU-a"}, (0, 5), "cuda", False, {CUDA: "GPU-a"}, id="beyond the uuids"),
    ],
)
def test_a_mask_is_written(
    environ: Mapping[str, str],
    ids: Sequence[int],
    backend: Masked,
    prefer_rocr: bool,
    expected: Mapping[str, str],
) -> None:
    assert write_mask(environ, ids, backend, prefer_rocr=prefer_rocr) == expected


@pytest.mark.parametrize(
    ("environ", "seen", "mask"),
    [
        pytest.param({CUDA: "3,1"}, (1, 3), "1,3", id="as shown"),
        pytest.param({CUDA: "3,1"}, (3, 1), "3,1", id="shown the other way round"),
        pytest.param({CUDA: "3,1"}, None, "1,3", id="shown by other numbers"),
        pytest.param({CUDA: "3,1"}, (0, 1), "1,3", id="shown before the mask changed"),
        pytest.param({}, (0, 1), None, id="no mask"),
        pytest.param({CUDA: ""}, (0, 1), "", id="all hidden"),
        pytest.param({CUDA: "GPU-b,GPU-a"}, (0, 1), "GPU-b,GPU-a", id="by uuid"),
    ],
)
def test_shares_by_hand_keep_the_order_that_was_shown(
    environ: Mapping[str, str], seen: Sequence[int] | None, mask: str | None
) -> None:
    env = keep_order(environ, "cuda", seen)
    assert (env[ORDER], env.get(CUDA)) == ("PCI_BUS_ID", mask)


def card(name: str, **more: str) -> Device:
    return Device(name, "rpc" if name.startswith("RPC") else "gpu", 100, 100, **more)  # type: ignore[arg-type]


CARDS = [card(f"CUDA{number}") for number in range(4)]


def test_a_child_counts_the_cards_that_it_is_shown_anew() -> None:
    shown = show_only({}, [CARDS[1], CARDS[3]], CARDS)
    assert (shown.env[CUDA], shown.env[ORDER]) == ("1,3", "PCI_BUS_ID")
    assert shown.child_names == {"CUDA1": "CUDA0", "CUDA3": "CUDA1"}


def test_behind_an_inherited_mask_names_become_physical_cards() -> None:
    shown = show_only({CUDA: "5,3,1"}, CARDS[1:3], CARDS[:3])
    assert shown.env[CUDA] == "1,3"
    assert shown.child_names == {"CUDA1": "CUDA1", "CUDA2": "CUDA0"}


@pytest.mark.parametrize("mask", [{CUDA: "3,1"}, {CUDA: "GPU-b,GPU-a"}, {}], ids=str)
def test_all_cards_stay_as_they_were_listed(mask: dict[str, str]) -> None:
    shown = show_only(mask, CARDS[:2], CARDS[:2])
    assert shown.env == {**mask, ORDER: "PCI_BUS_ID"}
    assert shown.child_names == {"CUDA0": "CUDA0", "CUDA1": "CUDA1"}


def test_radeons_are_hidden_from_the_runtime_itself() -> None:
    radeons = [card("ROCm0"), card("ROCm1")]
    shown = show_only({}, radeons[1:], radeons)
    assert (shown.env[ROCR], shown.env[CUDA]) == ("1", "0")
    assert shown.child_names == {"ROCm1": "ROCm0"}


@pytest.mark.parametrize("chosen", [[], [card("Vulkan1")], [card("RPC0", endpoint="a:1")]], ids=str)
def test_cards_that_are_not_used_are_hidden(chosen: list[Device]) -> None:
    assert show_only({}, chosen, [*CARDS, *chosen]).env[CUDA] == "-1"


def test_an_engine_without_masked_cards_keeps_its_environment() -> None:
    vulkan = [card("Vulkan0"), card("Vulkan1")]
    shown = show_only({"GGML_VK_VISIBLE_DEVICES": "1,0"}, vulkan[1:], vulkan)
    assert shown.env == {"GGML_VK_VISIBLE_DEVICES": "1,0"}
    assert shown.child_names == {"Vulkan1": "Vulkan1"}


def test_remote_devices_are_counted_over_the_servers_in_use() -> None:
    listed = [
        card("RPC0", endpoint="a:1"),
        card("RPC1", endpoint="b:1"),
        card("RPC2", endpoint="b:1"),
        card("RPC3", endpoint="c:1"),
    ]
    shown = show_only({}, [listed[3], listed[2]], listed)
    assert shown.servers == ("b:1", "c:1")
    assert shown.child_names == {"RPC2": "RPC1", "RPC3": "RPC2"}


def test_a_child_counts_server_by_server_however_they_were_met() -> None:
    listed = [card("RPC3", endpoint="b:1"), card("RPC0", endpoint="a:1"), card("RPC4", endpoint="a:1")]
    shown = show_only({}, listed, listed)
    assert shown.servers == ("a:1", "b:1")
    assert shown.child_names == {"RPC0": "RPC0", "RPC4": "RPC1", "RPC3": "RPC2"}
    assert remote_names(("b:1", "a:1"), listed) == {"RPC3": "RPC0", "RPC0": "RPC1", "RPC4": "RPC2"}


def test_a_slice_is_shown_by_its_uuid() -> None:
    slices = [card(f"MIG-{n}", uuid=f"MIG-{n}") for n in "ab"]
    assert show_only({}, slices[1:], slices).env[CUDA] == "MIG-b"
    shown = show_only({CUDA: "0"}, slices[1:], slices)
    assert shown.env[CUDA] == "MIG-b"
    assert shown.child_names == {"MIG-b": "CUDA0"}
    assert is_slice("MIG-b")
