"""What `doctor` says of GPUs and of RPC servers (GP-04, MN-07)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.api.answers import DevicesAnswer, DoctorCheck
from framework.api.doctor import device_checks
from framework.values.device import Device
from framework.values.reason import Reason
from framework.values.request import PoolLimits
from tests.api import samples

DRIVER = "the NVIDIA driver"
REMOTE = Device("RPC0", "rpc", 9, 9, endpoint="a:1")


def checks(*devices: Device, driver: str = "", reasons: tuple[Reason, ...] = ()) -> dict[str, DoctorCheck]:
    """Checks by name, of a manifest with a pool on a server."""
    manifest = replace(samples.manifest(), pools={"far": PoolLimits("far", ("rpc://a:1",))})
    found = device_checks(manifest, DevicesAnswer((*devices, samples.CPU), reasons), driver)
    return {check.name: check for check in found}


def test_a_gpu_that_no_engine_lists_is_a_fault() -> None:
    check = checks(driver=DRIVER)["gpu"]
    assert not check.ok
    assert check.reason is not None
    assert check.reason.code == "gpu_not_listed"
    assert DRIVER in check.reason.message


def test_why_the_engine_could_not_list_it_comes_first() -> None:
    unknown = Reason("devices_unknown", "no list", severity="warning")
    check = checks(driver=DRIVER, reasons=(unknown,))["gpu"]
    assert (check.ok, check.reason) == (False, unknown)


@pytest.mark.parametrize(
    ("devices", "driver"),
    [pytest.param((samples.GPU,), DRIVER, id="listed"), pytest.param((), "", id="no GPU, no driver")],
)
def test_a_machine_that_is_used_as_it_is_has_no_fault(devices: tuple[Device, ...], driver: str) -> None:
    assert checks(*devices, driver=driver)["gpu"].ok


@pytest.mark.parametrize(
    ("devices", "code", "ok"),
    [
        pytest.param((REMOTE,), "", True, id="there"),
        pytest.param((), "rpc_busy", True, id="in use"),
        pytest.param((), "rpc_unreachable", False, id="away"),
    ],
)
def test_a_server_of_a_pool(devices: tuple[Device, ...], code: str, ok: bool) -> None:
    said = (Reason(code, "said", severity="warning", evidence={"endpoint": "a:1"}),) if code else ()
    check = checks(*devices, reasons=said)["server rpc://a:1"]
    assert (check.ok, check.reason) == (ok, said[0] if said else None)
