"""Fragment or page."""

from __future__ import annotations

import pytest

from framework.dashboard.htmx import wanted_block

ASKED = {"hx-request": "true", "hx-target": "notice"}


def test_a_script_gets_the_block_of_its_target() -> None:
    assert wanted_block(ASKED, {"notice", "log"}) == "notice"


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="a-browser"),
        pytest.param({"hx-target": "notice"}, id="no-request-header"),
        pytest.param({**ASKED, "hx-boosted": "true"}, id="boosted"),
        pytest.param({**ASKED, "hx-history-restore-request": "true"}, id="history"),
        pytest.param({**ASKED, "hx-target": "elsewhere"}, id="no-such-block"),
    ],
)
def test_everything_else_gets_the_page(headers: dict[str, str]) -> None:
    assert wanted_block(headers, {"notice"}) is None
