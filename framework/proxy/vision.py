"""Whether a model takes pictures, as far as it is known without a load (02 §12.7). Pure.

Called for the model list and for the advice to clients that sent a picture to a model without eyes.
"""

from __future__ import annotations

from collections.abc import Iterator

from framework.proxy.access import may_use
from framework.proxy.exchange import Exchange
from framework.values.instance import InstanceView, ModelView


def sees(view: ModelView) -> bool | None:
    """What runs, else what is planned, else what is asked; None where the projector is yet to be found."""
    asked = view.request.projector
    if asked is None:
        return False
    known = next((seen for one in view.instances if (seen := _instance_sees(one)) is not None), None)
    return known if known is not None or asked == "auto" else True


def _instance_sees(instance: InstanceView) -> bool | None:
    if instance.result is not None and instance.result.outcome == "ready":
        return instance.result.vision
    return instance.plan.projector is not None if instance.plan is not None else None


def vision_models(exchange: Exchange) -> Iterator[str]:
    """Models that take pictures and that this client may use; looked for only where they are to be named."""
    for view in exchange.services.fleet.views():
        if not view.removed and sees(view) and may_use(exchange.key, view.request):
            yield view.request.id
