"""Find a model by name or alias, or say which names come near (08 §2.1); and one of its replicas."""

from __future__ import annotations

from framework.api.errors import ApiError
from framework.api.services import Services
from framework.proxy.model_choice import nearest_names, shown
from framework.values.instance import ModelView


def find_model(name: str, services: Services) -> ModelView:
    """The model with this name or alias. Raises ApiError 404."""
    model_id = services.fleet.resolve(name)
    view = None if model_id is None else services.fleet.view(model_id)
    if view is None:
        raise unknown_model(name, services)
    return view


def unknown_model(name: str, services: Services) -> ApiError:
    """404 with the nearest names."""
    views = services.fleet.views()
    known = [n for view in views for n in (view.request.id, *view.request.live.aliases)]
    near = ", ".join(shown(hit) for hit in nearest_names(name, known))
    message = f"There is no model {shown(name)}." + (f" Nearest names: {near}." if near else "")
    return ApiError(404, "model_not_found", message, param="model")


def require_replica(services: Services, view: ModelView, replica: int) -> None:
    """Raises ApiError 404 for a replica that is not declared, does not run and left no log."""
    known = {*range(view.request.live.replicas), *(instance.replica for instance in view.instances)}
    if replica in known or services.fleet.log(view.request.id, replica) is not None:
        return
    listed = ", ".join(map(str, sorted(known)))
    message = f"{shown(view.request.id)} has no replica {replica}; it has {listed}."
    raise ApiError(404, "replica_not_found", message, param="replica")
