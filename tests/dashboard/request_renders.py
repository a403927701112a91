"""The pages of requests in every state worth seeing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from framework.dashboard.pages.request import RequestPage, ended_body, gone_body, running_body
from framework.dashboard.pages.requests import RequestQuery, RequestsPage, requests_page
from framework.dashboard.pages.shell import Shell
from framework.proxy.records import RequestView
from framework.telemetry.tables import KeptRequest
from framework.values.request_record import RequestTexts
from tests.dashboard import samples
from tests.telemetry.samples import record

Named = tuple[str, str, object]
ASKED = {"messages": [{"role": "user", "content": "Name three horses."}], "max_tokens": 100, "system": ""}


def kept(number: int, **fields: Any) -> KeptRequest:
    """A request of the log."""
    return KeptRequest(number, record(number, **{"at": samples.NOW, **fields}))


def view(number: int, **fields: Any) -> RequestView:
    """A request that is served now."""
    values: dict[str, Any] = {
        "route": "/v1/chat/completions",
        "model": "smollm2",
        "replica": 0,
        "key": "laptop",
    }
    return RequestView(
        f"req-{number}", samples.NOW, **{**values, "phase": "streaming", "tokens": 40, **fields}
    )


def requests(shell: Shell, *kept: KeptRequest, **fields: Any) -> RequestsPage:
    """The page of these requests."""
    query = fields.pop("query", RequestQuery())
    mode = fields.pop("mode", "metadata")
    running = fields.pop("running", ())
    return requests_page(shell, query, kept, running, samples.NOW, mode, **fields)


ROWS = (
    kept(1, prompt_tokens_per_s=812.5, generation_tokens_per_s=41.2, prompt_s=0.2, generation_s=1.1),
    kept(2, status=499, generation_tokens_per_s=12.0, error="cancelled", key=None),
    kept(3, status=429, model=None, replica=None, first_token_s=None, error="rate_limited", stop_reason=None),
    kept(
        4,
        status=502,
        first_token_s=None,
        total_s=0.0,
        queue_s=0.0,
        error="engine_error",
        drafted=9,
        accepted=4,
    ),
)


def request_pages(shell: Shell) -> Iterator[Named]:
    """The list and single requests; together they print every branch."""
    running = (
        view(7),
        view(8, phase="waiting", model="", key=None, replica=None, tokens=0),
        view(9, phase="sent", replica=1),
    )
    whole = requests(shell, *ROWS, running=running, models=("smollm2",), keys=("laptop",), older=True)
    yield "requests", "requests.html", whole
    yield "requests-empty", "requests.html", requests(shell)
    yield "requests-off", "requests.html", requests(shell, mode="off", faults=(samples.CONTEXT_CUT,))
    nothing = RequestQuery(model="x", status="404", last_s="77", before=5)
    yield "requests-filter-finds-nothing", "requests.html", requests(shell, query=nothing)
    yield "request-running", "request.html", RequestPage(shell, running_body(running[0], samples.NOW))
    yield "request-gone", "request.html", RequestPage(shell, gone_body("req-x"))
    texts = RequestTexts(ASKED, {"content": "Red, white and bay."}, True)
    full = replace(ROWS[0].record, texts=texts, retried=True, drafted=9, accepted=4)
    yield "request-full", "request.html", RequestPage(shell, ended_body(full, "full"))
    for row in ROWS:
        page = RequestPage(shell, ended_body(row.record, "full" if row.seq == 1 else "metadata"))
        yield f"request-{row.seq}", "request.html", page


def hostile_request_pages(shell: Shell, text: str) -> Iterator[Named]:
    """The same with a hostile text wherever one can come from outside."""
    texts = RequestTexts({text: text, "messages": [{text: text}]}, {"content": text}, False)
    row = kept(1, model=text, key=text, route=text, error=text, stop_reason=text, instance=text)
    running = (view(2, model=text, key=text, route=text),)
    query = RequestQuery(model=text, key=text)
    listed = requests(shell, row, query=query, running=running, models=(text,), keys=(text,))
    yield "requests", "requests.html", listed
    body = ended_body(replace(row.record, id=text, texts=texts), "full")
    yield "request", "request.html", RequestPage(shell, body)
