"""Errors of `/api/v1` and the dashboard: those of the endpoint with two more codes (13 §7, 08 §26).

Raised by the routes, by `auth` and by the dashboard's forms; turned into an answer in one place. The further
codes are `role_not_allowed` and `csrf_token_invalid`.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.proxy.errors import ProxyError


class ApiError(ProxyError):
    """An answer other than success. `message` is a plain sentence; clients act on `status` and `code`."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, message, status=status, param=param, headers=headers)
