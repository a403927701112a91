"""The pages that explain reasons. Nothing on them moves by itself."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import visit
from framework.dashboard.answers import page_answer, see_other, shell_of
from framework.dashboard.desk import Desk
from framework.dashboard.pages.reason_pages import bearers_of, reason_page, reasons_page
from framework.dashboard.views import running_instances

REASONS = "/reasons"
OK, NOT_FOUND = 200, 404
# How far back events are looked through for a code.
SEARCHED_EVENTS = 500


async def reasons(desk: Desk, request: Request) -> Response:
    """What every reason means, and what to do about it."""
    seen = visit(request, desk.services)
    shell = shell_of(desk, request, "Reasons", "none")
    return page_answer(desk, request, seen, "reasons.html", reasons_page(shell, desk.services.reasons))


async def reason(desk: Desk, request: Request) -> Response:
    """One reason: what it means, what to do, who has it now. A code that nobody explains has a page too."""
    seen = visit(request, desk.services)
    services = desk.services
    code = request.path_params["code"]
    if not code:
        return see_other(REASONS)
    views = services.fleet.views()
    devices = desk.devices.look(running_instances(views))
    page = reason_page(
        shell_of(desk, request, code, "none"),
        services.reasons,
        code,
        bearers_of(views, devices.devices, devices.reasons),
        services.events.recent(limit=SEARCHED_EVENTS),
    )
    return page_answer(desk, request, seen, "reason.html", page, OK if page.meanings else NOT_FOUND)
