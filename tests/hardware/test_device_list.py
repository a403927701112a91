"""Reading `--list-devices` (15 §9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.hardware.device_list import MIB, parse_device_list

HEADING = "Available devices:\n"
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=40)


def names(text: str) -> list[str]:
    return [device.name for device in parse_device_list(text)]


def test_a_device_line() -> None:
    (device,) = parse_device_list(
        f"{HEADING}  Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (2048 MiB, 1024 MiB free)\n"
    )
    assert (device.name, device.kind) == ("Vulkan0", "gpu")
    assert device.description == "llvmpipe (LLVM 15.0.6, 256 bits)"
    assert (device.total_bytes, device.free_bytes) == (2048 * MIB, 1024 * MIB)


def test_no_device_is_only_the_heading() -> None:
    assert parse_device_list(HEADING) == ()


def test_servers_of_other_machines_are_their_own_kind() -> None:
    (device,) = parse_device_list("  RPC0: 127.0.0.1:47551 (24105 MiB, 24105 MiB free)")
    assert (device.kind, device.description) == ("rpc", "127.0.0.1:47551")


def test_order_is_kept_and_of_equal_names_the_first_counts() -> None:
    lines = [f"  {name}: x ({total} MiB, 1 MiB free)" for name, total in (("B0", 2), ("A0", 3), ("B0", 4))]
    devices = parse_device_list("\n".join(lines))
    assert [(d.name, d.total_bytes // MIB) for d in devices] == [("B0", 2), ("A0", 3)]


@pytest.mark.parametrize("name", ["CPU", "BLAS", "cpu0"])
def test_host_memory_under_another_name_is_left_out(name: str) -> None:
    assert names(f"  {name}: OpenBLAS (0 MiB, 0 MiB free)") == []


@pytest.mark.parametrize(
    "line",
    [
        "Vulkan0: not indented (1 MiB, 1 MiB free)",
        "  Vulkan0: no memory",
        "  Vulkan0 no colon (1 MiB, 1 MiB free)",
        "  Vulkan0: x (1 MiB, 1 MiB free) and more",
        "  Vulkan0: x (99999999999999999999 MiB, 1 MiB free)",
    ],
)
def test_other_lines_are_passed_over(line: str) -> None:
    assert names(line) == []


def test_more_free_than_total_is_total() -> None:
    (device,) = parse_device_list("  CUDA0: x (10 MiB, 20 MiB free)")
    assert device.free_bytes == device.total_bytes


def test_control_characters_of_a_description_are_removed() -> None:
    (device,) = parse_device_list("  CUDA0: a\x1b[31mb\x07 (10 MiB, 20 MiB free)")
    assert device.description == "a[31mb"


def test_a_list_without_end_is_cut() -> None:
    assert len(names("".join(f"  CUDA{i}: x (1 MiB, 1 MiB free)\n" for i in range(1000)))) == 256


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert all(device.total_bytes >= device.free_bytes >= 0 for device in parse_device_list(text))


@given(WORDS, st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_any_description_is_read_from_the_right(about: str, total: int, free: int) -> None:
    (device,) = parse_device_list(f"  Vulkan3: {about} ({total} MiB, {free} MiB free)")
    assert (device.name, device.total_bytes) == ("Vulkan3", total * MIB)
