"""A stranger on the port of an engine that was killed: it says that it is well, and answers everything."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

CHUNK = b'data: {"id":"thief","model":"thief","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}\n\n'
ANSWER = CHUNK % (b'{"content":" thief"}', b"null") + CHUNK % (b"{}", b'"stop"') + b"data: [DONE]\n\n"
PAUSE_S = 0.001


class Thief:
    """Listens on `port` from the moment that it is free, until it is left again."""

    def __init__(self, port: int, wait_s: float = 5.0) -> None:
        """Raises OSError when somebody else got it."""
        deadline = time.monotonic() + wait_s
        while True:
            try:
                self._server = _Server(("127.0.0.1", port), _Handler)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE_S)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def questions(self) -> int:
        """How many requests went to it."""
        return self._server.questions

    def __enter__(self) -> Thief:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    questions = 0


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Whatever is asked, all is well."""
        self._answer("application/json", b'{"status":"ok"}')

    def do_POST(self) -> None:
        """An answer that is somebody else's."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.questions += 1
        self._answer("text/event-stream", ANSWER)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def _answer(self, kind: str, body: bytes) -> None:
        with suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
