"""Requests of browsers: from our own pages, or from elsewhere (case AS-04)."""

from __future__ import annotations

import pytest

from framework.api.origin import is_same_origin


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, False, id="no-browser-headers"),
        pytest.param({"sec-fetch-site": "same-origin"}, True, id="browser-says-same"),
        pytest.param({"sec-fetch-site": "same-site"}, False, id="other-port-of-the-host"),
        pytest.param({"sec-fetch-site": "cross-site"}, False, id="browser-says-elsewhere"),
        pytest.param({"sec-fetch-site": "none"}, False, id="typed-address"),
        pytest.param(
            {"sec-fetch-site": "cross-site", "origin": "http://a:1", "host": "a:1"}, False, id="browser-wins"
        ),
        pytest.param({"origin": "http://10.0.0.5:8080", "host": "10.0.0.5:8080"}, True, id="same-address"),
        pytest.param({"origin": "http://Box:8080", "host": "box:8080"}, True, id="case-of-the-name"),
        pytest.param({"origin": "http://10.0.0.5:9999", "host": "10.0.0.5:8080"}, False, id="other-port"),
        pytest.param({"origin": "https://evil.example", "host": "10.0.0.5:8080"}, False, id="elsewhere"),
        pytest.param({"origin": "null", "host": "10.0.0.5:8080"}, False, id="opaque"),
        pytest.param({"origin": "http://[", "host": "10.0.0.5:8080"}, False, id="malformed"),
        pytest.param({"origin": "http://10.0.0.5:8080"}, False, id="no-host"),
        pytest.param({"origin": "ftp://a:1", "host": "a:1"}, False, id="other-scheme"),
    ],
)
def test_origin_decides_where_a_request_comes_from(headers: dict[str, str], expected: bool) -> None:
    assert is_same_origin(headers) is expected
