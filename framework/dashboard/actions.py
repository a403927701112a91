"""What the buttons do: load, unload, reload, then back to the page with a confirmation (07 §3.11, §5.1)."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import CSRF_FIELD, authorise
from framework.api.services import Services
from framework.dashboard.answers import NotFound, confirmed, own_path
from framework.dashboard.desk import Desk
from framework.dashboard.forms import field, read_form
from framework.dashboard.urls import model_url
from framework.proxy.model_choice import nearest_names, shown
from framework.values.action import STOP_MODES
from framework.values.event import Event
from framework.values.instance import ModelView


async def load(desk: Desk, request: Request) -> Response:
    """Start a model."""
    return await _command(desk, request, lambda model, _, by: desk.services.fleet.load(model, by=by))


async def unload(desk: Desk, request: Request) -> Response:
    """Stop a model; without a choice its running requests are finished first."""

    def command(model: str, form: FormData, by: str) -> Event:
        asked = field(form, "mode")
        mode = next((mode for mode in STOP_MODES if mode == asked), STOP_MODES[0])
        return desk.services.fleet.unload(model, mode, by=by)

    return await _command(desk, request, command)


async def reload(desk: Desk, request: Request) -> Response:
    """Replace a model's instances, whatever the comparison says."""
    return await _command(desk, request, lambda model, _, by: desk.services.fleet.reload(model, by=by))


def known_model(services: Services, request: Request) -> ModelView:
    """The model that an address names by id or alias. Raises NotFound with the nearest names."""
    name: str = request.path_params["name"]
    view = services.fleet.view(services.fleet.resolve(name) or name)
    if view is not None:
        return view
    near = nearest_names(name, [view.request.id for view in services.fleet.views()])
    raise NotFound(
        f"There is no model {shown(name)} in the manifest.", tuple((hit, model_url(hit)) for hit in near)
    )


async def _command(desk: Desk, request: Request, give: Callable[[str, FormData, str], Event]) -> Response:
    """Prove the caller, give the command, lead back to a page that confirms it."""
    form = await read_form(request)
    caller = authorise(request, desk.services, "operate", csrf_token=field(form, CSRF_FIELD) or None)
    name = known_model(desk.services, request).request.id
    try:
        event = give(name, form, caller.name)
    except KeyError:
        # Still there to be looked at, but no longer declared.
        raise NotFound(f"{shown(name)} is no longer in the manifest.", ()) from None
    return confirmed(own_path(field(form, "back")), event.id)
