"""Limits of the process by variable (01 §2.9)."""

from __future__ import annotations

import pytest

from framework.proxy.limits import LimitError, ProxyLimits, read_limits


def test_without_variables_the_limits_are_the_documented_ones() -> None:
    assert read_limits({}) == ProxyLimits()


def test_a_variable_sets_the_limit_of_its_name() -> None:
    limits = read_limits({"PADDOCK_KEEPALIVE_INTERVAL_S": "2.5", "PADDOCK_LINE_LIMIT_BYTES": "1000"})
    assert (limits.keepalive_interval_s, limits.line_limit_bytes) == (2.5, 1000)


@pytest.mark.parametrize("text", ["fast", "-1", "nan", "1e999"])
def test_what_is_no_limit_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(LimitError, match="PADDOCK_CONNECT_TIMEOUT_S"):
        read_limits({"PADDOCK_CONNECT_TIMEOUT_S": text})
