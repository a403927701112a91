"""What an engine says it took, by the names that everybody else uses."""

from __future__ import annotations

from framework.runtime.readback import allocated_bytes
from framework.values.plan import Placement
from tests.api import samples

MIB = 2**20


def test_devices_are_called_as_outside_of_the_process() -> None:
    placement = Placement(("CUDA3",), {"CUDA3": "CUDA0"})
    lines = [
        "0.0 I load_tensors:        CUDA0 model buffer size =    47.00 MiB",
        "0.0 I load_tensors:          CPU model buffer size =     2.00 MiB",
    ]
    assert allocated_bytes(samples.plan(placement=placement), lines) == {"CUDA3": 47 * MIB, "CPU": 2 * MIB}


def test_an_engine_that_does_not_say_took_nothing_that_is_known() -> None:
    assert allocated_bytes(samples.plan(), ["0.0 I srv  load_model: done"]) == {}
