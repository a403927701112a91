"""Seconds and bytes of changed fields have their unit, under the names that a comparison gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from framework.reconcile.change_values import value_with_unit
from framework.reconcile.compare import compare_requests
from framework.values.request import LiveSettings, PoolLimits, RestartPolicy
from tests.dashboard import samples


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"live": LiveSettings(idle_after_s=300.0)}, "5 min"),
        ({"live": LiveSettings(queue_timeout_s=0.5)}, "0.5 s"),
        ({"live": LiveSettings(slot_save_max_bytes=2**30)}, "1 GiB"),
        ({"live": LiveSettings(restart=RestartPolicy(backoff_max_s=90.0))}, "1 min 30 s"),
        ({"live": LiveSettings(restart=RestartPolicy(max_crashes=3))}, None),
        ({"live": LiveSettings(idle_after_s=None)}, None),
        ({"pool": PoolLimits("a.b", budget_bytes=2**29)}, "512 MiB"),
        ({"n_ctx": 4095}, None),
    ],
)
def test_a_value_has_the_unit_of_its_field(changed: dict[str, Any], told: str | None) -> None:
    old = replace(samples.request(), live=LiveSettings(), pool=PoolLimits("a.b"))
    (change,) = compare_requests(old, replace(old, **changed), None)
    assert value_with_unit(change.field, change.new) == told
