"""A machine with a GPU driver whose engines list no GPU must not look healthy (case MD-09)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framework.api.answers import DevicesAnswer
from framework.api.facts import gpu_not_listed, list_all_devices
from framework.dashboard.pages.pools import PoolsPage, pool_sections
from framework.hardware.devices import DeviceList
from framework.values.device import Device
from framework.values.pool import PoolView
from framework.values.reason import Reason
from framework.values.request import PoolLimits
from tests.api import samples as api_samples
from tests.dashboard import history_samples, pool_samples, samples
from tests.dashboard.html import Element, parse
from tests.dashboard.renders import OPERATOR, shell, templates

DRIVER = "the NVIDIA driver"
HOST = Device("CPU", "cpu", 64, 32)
FINDING = gpu_not_listed(DRIVER, ())


def drawn(pool: PoolView, *reasons: Reason) -> Element:
    sections = pool_sections([pool], (), DevicesAnswer((), reasons, samples.NOW))
    page = PoolsPage(shell("pools"), sections, history_samples.pools_past(()))
    return parse(templates().page("pools.html", page, OPERATOR)).one("main")


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        pytest.param(pool_samples.pool(devices=()), "0 devices (driver present)", id="nothing"),
        pytest.param(
            pool_samples.pool(devices=(pool_samples.use("CPU", kind="cpu"),)),
            "0 GPUs (driver present)",
            id="host-memory",
        ),
    ],
)
def test_its_pool_says_so_and_the_page_says_what_to_do(pool: PoolView, words: str) -> None:
    main = drawn(pool, FINDING)
    assert main.one("p", class_="standing").text == words
    assert "no engine lists a GPU" in main.text
    assert FINDING.severity == "warning"
    assert any(a.attributes["href"] == "/reasons/gpu_not_listed" for a in main.all("a"))


@pytest.mark.parametrize(
    ("pool", "reasons"),
    [
        pytest.param(pool_samples.pool(), (FINDING,), id="it-has-one"),
        pytest.param(
            pool_samples.pool(limits=PoolLimits("host", ("cpu",)), devices=()), (FINDING,), id="it-wants-none"
        ),
        pytest.param(pool_samples.pool(devices=()), (), id="there-is-none"),
    ],
)
def test_a_pool_that_lacks_nothing_says_nothing(pool: PoolView, reasons: tuple[Reason, ...]) -> None:
    assert list(drawn(pool, *reasons).all("p", class_="standing")) == []


@pytest.mark.parametrize(
    ("driver", "devices", "pools", "codes"),
    [
        pytest.param(DRIVER, (HOST,), ("auto",), ["gpu_not_listed"], id="half-broken"),
        pytest.param("", (HOST,), ("auto",), [], id="no-gpu"),
        pytest.param(DRIVER, (HOST,), ("cpu",), [], id="not-wanted"),
        pytest.param(DRIVER, (Device("CUDA0", "gpu", 9, 9), HOST), ("auto",), [], id="listed"),
    ],
)
async def test_a_list_without_the_gpu_of_the_machine_has_a_finding(
    driver: str,
    devices: tuple[Device, ...],
    pools: tuple[str, ...],
    codes: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask(*_binary: object, rpc: object = ()) -> DeviceList:
        return DeviceList(devices)

    async def find(*_where: object) -> object:
        return api_samples.BINARY

    monkeypatch.setattr("framework.api.facts._find", find)
    manifest = replace(api_samples.manifest(), pools={"p": PoolLimits("p", pools)})
    answer = await list_all_devices(manifest, {}, ask, driver=lambda: driver)
    assert [reason.code for reason in answer.reasons] == codes
