"""Talk to `/api/v1` of a running server. Small and quick to import, unlike what serves it.

Every failure is a CommandFailed with the exit code of 00 §5: nobody there 3, a refused question 2 or 1.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from framework.commands.failure import BAD_INPUT, NOT_SO, UNREACHABLE, CommandFailed
from framework.commands.target import Target
from framework.commands.wrong_scheme import https_failure, tls_failure

PREFIX = "/api/v1"
# A loopback server answers in milliseconds; one on another machine gets a slow network's time.
CONNECT_TIMEOUT_S = 5.0
# Planning and device lists may start an engine binary for a few seconds.
ANSWER_TIMEOUT_S = 60.0
# Streams send a heartbeat every 15 s; after three missing ones the connection is gone.
STREAM_TIMEOUT_S = 45.0
# 500 models with all their plans stay below 20 MiB.
LARGEST_ANSWER_BYTES = 64 * 2**20
LONGEST_LINE_BYTES = 2**20

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 400, 401, 403, 404
OK_STATUSES = (200, 202)
# Codes for what is known and not so at the moment, as the number of replicas.
NOT_SO_CODES = frozenset({"replica_not_found"})


class ApiClient:
    """One server. A new connection for each question."""

    def __init__(self, target: Target, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._target = target
        self._answer_timeout_s = answer_timeout_s

    def get(self, path: str, **query: object) -> Any:
        """The JSON answer of a GET; query values that are None are left out."""
        return self._parsed(self.get_text(path, **query))

    def get_text(self, path: str, **query: object) -> str:
        """The answer of a GET as text."""
        with self._ask("GET", _with_query(path, query), None, self._answer_timeout_s) as response:
            return self._read(response).decode("utf-8", "replace")

    def post(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        """The JSON answer of a POST."""
        payload = json.dumps(body or {}).encode()
        with self._ask("POST", PREFIX + path, payload, self._answer_timeout_s) as response:
            return self._parsed(self._read(response))

    def stream(self, path: str, **query: object) -> Iterator[str]:
        """The data of server-sent events, for as long as they come."""
        with self._ask("GET", _with_query(path, query), None, STREAM_TIMEOUT_S) as response:
            lines: list[str] = []
            while raw := response.readline(LONGEST_LINE_BYTES):
                line = raw.decode("utf-8", "replace").rstrip("\n")
                if line.startswith("data: "):
                    lines.append(line.removeprefix("data: "))
                elif not line and lines:
                    yield "\n".join(lines)
                    lines = []
        raise self._unreachable("the server ended the stream")

    @contextmanager
    def _ask(
        self, method: str, path: str, body: bytes | None, timeout_s: float
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection()
        try:
            try:
                connection.connect()
            except UnicodeError:
                raise self._no_name() from None
            connection.sock.settimeout(timeout_s)
            connection.request(method, path, body, self._headers(body))
            response = connection.getresponse()
            if response.status not in OK_STATUSES:
                raise self._refusal(response.status, response.read(LONGEST_LINE_BYTES))
            yield response
        except TimeoutError:
            raise self._unreachable("no answer in time") from None
        except ssl.SSLError as error:
            known = tls_failure(self._target, error)
            raise known or self._unreachable(error.reason or type(error).__name__) from error
        except (ConnectionResetError, http.client.BadStatusLine) as error:
            # Also a server that speaks HTTPS and is asked in plain HTTP: it hangs up.
            known = https_failure(self._target) if self._target.scheme == "http" else None
            raise known or self._unreachable("what answers there is no Paddock") from error
        except OSError as error:
            raise self._unreachable(error.strerror or type(error).__name__) from error
        except http.client.HTTPException as error:
            raise self._unreachable("what answers there is no Paddock") from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._target.listener.host, self._target.listener.port
        if not host.isprintable() or " " in host:
            raise self._no_name()
        if self._target.scheme == "https":
            context = _context(self._target.certificate)
            return http.client.HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT_S, context=context)
        return http.client.HTTPConnection(host, port, timeout=CONNECT_TIMEOUT_S)

    def _headers(self, body: bytes | None) -> dict[str, str | bytes]:
        headers: dict[str, str | bytes] = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._target.credential is not None:
            headers["Authorization"] = b"Bearer " + self._target.credential.encode()
        return headers

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        body = response.read(LARGEST_ANSWER_BYTES + 1)
        if len(body) > LARGEST_ANSWER_BYTES:
            raise self._unreachable("the answer is too large for a Paddock")
        if response.length:
            raise self._unreachable("the answer was cut off")
        return body

    def _parsed(self, text: str | bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self._unreachable("what answers there is no Paddock") from error

    def _refusal(self, status: int, body: bytes) -> CommandFailed:
        try:
            error = json.loads(body)["error"]
            message, code = str(error["message"]), error.get("code")
        except (ValueError, KeyError, TypeError):
            return self._unreachable(f"what answers there is no Paddock (status {status})")
        if status == UNAUTHORIZED:
            where = self._target.url
            return CommandFailed(
                UNREACHABLE,
                f"The server at {where} does not know us.",
                "It may run another manifest: name it with --manifest, or set PADDOCK_KEY.",
            )
        if status in (BAD_REQUEST, NOT_FOUND) and code not in NOT_SO_CODES:
            return CommandFailed(BAD_INPUT, message)
        return CommandFailed(NOT_SO, message)

    def _no_name(self) -> CommandFailed:
        host = self._target.listener.host
        return CommandFailed(BAD_INPUT, f"{self._target.found_by}: {host!r} is no name of a machine.")

    def _unreachable(self, why: str) -> CommandFailed:
        target = self._target
        return CommandFailed(
            UNREACHABLE,
            f"No running server at {target.url} ({target.found_by}): {why}.",
            "Start it with `paddock up`, or name it with --url.",
        )


def _context(certificate: Path | None) -> ssl.SSLContext:
    """Whom to trust: our own server by the very certificate that it shows, whatever names stand in that."""
    if certificate is None:
        return ssl.create_default_context()
    context = ssl.create_default_context(cafile=str(certificate))
    context.check_hostname = False
    # The certificate itself is known; who signed it does not matter.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def model_path(name: str, verb: str = "") -> str:
    """The path of a model, whose name may hold anything."""
    path = f"/models/{quote(name, safe='')}"
    return f"{path}/{verb}" if verb else path


def _with_query(path: str, query: Mapping[str, object]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return PREFIX + path + (f"?{urlencode(given)}" if given else "")
