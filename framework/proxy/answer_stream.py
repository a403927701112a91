"""What a streamed answer and a collected one have to be able to do, whatever the family of their route."""

from __future__ import annotations

from typing import Any, Protocol

from framework.proxy.errors import ProxyError
from framework.proxy.stream_events import StreamEvent


class AnswerStream(Protocol):
    """The instance's events as the client of a stream gets them. Every method returns bytes to send."""

    def take(self, event: StreamEvent) -> bytes:
        """What an event becomes; often nothing yet."""
        ...

    def finish(self) -> bytes:
        """The rest of a stream that ended normally."""
        ...

    def fail(self, error: ProxyError) -> bytes:
        """The end of a stream whose headers are out, with an error."""
        ...

    def cancelled(self) -> bytes:
        """The end after a cancel by command."""
        ...


class WholeAnswer(Protocol):
    """The instance's events joined into the answer of a client that wants no stream."""

    def take(self, event: StreamEvent) -> None:
        """Add an event. Raises ProxyError `upstream_protocol_error` when the answer outgrows its limit."""
        ...

    def result(self) -> Any:
        """The answer as a JSON value."""
        ...
