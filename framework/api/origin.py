"""Whether a browser sent a request from one of our own pages (case AS-04). Pure; called by `auth`."""

from __future__ import annotations

from collections.abc import Mapping

from framework.proxy.origin import same_origin


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether the headers of a browser say that the request comes from a page of the same origin.

    `Sec-Fetch-Site` decides where the browser sends it (a page cannot forge it). Over plain HTTP to another
    machine browsers leave it out; there `Origin` must name the `Host` that was asked. Neither header: no.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    return origin is not None and same_origin(origin, headers.get("host"))
