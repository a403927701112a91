"""The requests that are being served now: to look at, and to cancel (08 §4.1). One event loop."""

from __future__ import annotations

from framework.proxy.records import ActiveRequest, RequestView


class InFlight:
    """Active requests by their id, oldest first."""

    def __init__(self) -> None:
        self._requests: dict[str, ActiveRequest] = {}

    def add(self, request: ActiveRequest) -> None:
        """Show a request until `remove`."""
        self._requests[request.id] = request

    def remove(self, request: ActiveRequest) -> None:
        """The request has ended; harmless when it was never added."""
        self._requests.pop(request.id, None)

    def views(self) -> tuple[RequestView, ...]:
        """All requests as they are now."""
        return tuple(request.view() for request in self._requests.values())

    def find(self, request_id: str) -> RequestView | None:
        """A request as it is now, None when there is none with this id."""
        request = self._requests.get(request_id)
        return request.view() if request is not None else None

    def cancel(self, request_id: str) -> bool:
        """End a request by command; whether there is one with this id."""
        request = self._requests.get(request_id)
        if request is not None:
            request.scope.interrupt("cancelled")
        return request is not None
