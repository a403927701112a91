"""Addresses of our own pages. Pure; names of models may hold anything, so they are always quoted whole."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode


def url_part(name: str) -> str:
    """A name as one segment of a URL, whatever it holds."""
    return quote(name, safe="")


def model_url(name: str) -> str:
    """The page of a model."""
    return f"/models/{url_part(name)}"


def try_url(name: str) -> str:
    """The page Try, with a model."""
    return with_query("/try", {"model": name})


def file_url(file_id: str) -> str:
    """The page of a model file."""
    return f"/files/{url_part(file_id)}"


def reason_url(code: str) -> str:
    """The page that explains a reason."""
    return f"/reasons/{url_part(code)}"


def request_url(request_id: str) -> str:
    """The page of a request."""
    return f"/requests/{url_part(request_id)}"


def with_query(path: str, values: Mapping[str, object]) -> str:
    """A path with those values that are not empty."""
    given = {name: str(value) for name, value in values.items() if value not in ("", None)}
    return f"{path}?{urlencode(given)}" if given else path
