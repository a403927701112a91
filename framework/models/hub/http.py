"""The connection of the hub's client: whatever a server sends, so much is taken and so long is waited.

Called by hub.client. Content of files is passed through as it comes, since whoever asked for it knows how
long it is; every other answer is read here, up to a limit. Redirects are followed without their bodies.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from huggingface_hub.utils import hf_raise_for_status

REQUEST_TIMEOUT_S = 20.0
# The listings of the largest repositories of models have some megabytes.
ANSWER_LIMIT_BYTES = 16 * 2**20
# What is said of an error; the rest of it would not be shown.
ERROR_LIMIT_BYTES = 64 * 2**10
READ_BYTES = 64 * 2**10
TOO_MANY = 429
# They describe how a body came, not what was taken of it.
OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class TooLarge(Exception):
    """An answer has more bytes than any of its kind has."""


class TooSlow(Exception):
    """An answer was not there in time, although some of it came."""


class HubHttp(httpx2.Client):
    """As the library's own client, with limits.

    A rate limit is an error at once: the library would sleep for as long as it is told.
    """

    def __init__(self) -> None:
        super().__init__(follow_redirects=True, timeout=REQUEST_TIMEOUT_S)

    def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        auth: Any = httpx2.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx2.USE_CLIENT_DEFAULT,
    ) -> httpx2.Response:
        """One answer; with `stream` the body of a good one is left to the caller. Raises TooLarge, and the
        library's error for a rate limit."""
        follow = self.follow_redirects if follow_redirects is httpx2.USE_CLIENT_DEFAULT else follow_redirects
        history: list[httpx2.Response] = []
        while True:
            response = super().send(request, stream=True, auth=auth, follow_redirects=False)
            if not follow or response.next_request is None:
                break
            response.close()
            history.append(response)
            if len(history) > self.max_redirects:
                raise httpx2.TooManyRedirects("Exceeded maximum allowed redirects.", request=request)
            request = response.next_request
        response.history = history
        if stream and response.is_success:
            return response
        answer = _bounded(response)
        if answer.status_code == TOO_MANY:
            hf_raise_for_status(answer)
        return answer


def _bounded(response: httpx2.Response) -> httpx2.Response:
    """The answer with as much of its body as is taken; of an error only the beginning."""
    try:
        if response.request.method == "HEAD":
            response.read()
            return response
        limit = ANSWER_LIMIT_BYTES if response.is_success else ERROR_LIMIT_BYTES
        body = bytearray()
        for piece in response.iter_bytes(READ_BYTES):
            body += piece
            if len(body) > limit:
                break
    finally:
        response.close()
    if len(body) > limit and response.is_success:
        raise TooLarge
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in OF_THE_BODY]
    read = httpx2.Response(
        response.status_code,
        headers=headers,
        content=bytes(body[:limit]),
        request=response.request,
        extensions=response.extensions,
        history=response.history,
    )
    read.elapsed = response.elapsed
    return read


@contextmanager
def within(limit_s: float) -> Iterator[None]:
    """Raise TooSlow in what takes longer, however it waits. Only in a main thread; elsewhere without a limit.

    Time-outs of reads are for each byte: a server that sends one now and then never meets them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _too_slow)
    timer_before = signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer_before)


def _too_slow(*_: object) -> None:
    raise TooSlow
