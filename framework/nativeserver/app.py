"""The application: routes behind the gate (12 §2-3).

Made by nativeserver.process before the model is loaded, so that whoever asks is told so; `loaded` is called
when it is.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from framework.chat.builtin_templates import BUILTIN_TEMPLATES, DEFAULT
from framework.chat.template import ChatTemplate
from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.errors import ApiError
from framework.nativeserver.gate import Gate
from framework.nativeserver.options import ServerOptions
from framework.nativeserver.routes import make_routes
from framework.nativeserver.services import Services
from framework.nativeserver.transport import error_response

log = logging.getLogger(__name__)

EXAMPLE = ({"role": "user", "content": "Hello"},)


def make_app(options: ServerOptions, bridge: EngineBridge) -> Starlette:
    """The application over an engine that may still be loading."""
    services = Services(options, bridge, _model_name(options), _now_s())
    app = Starlette(
        routes=make_routes(options.api_prefix),
        middleware=[Middleware(Gate, services=services)],
        exception_handlers={HTTPException: _no_route},
    )
    app.router.redirect_slashes = False
    app.state.services = services
    return app


def loaded(app: Starlette) -> None:
    """The model is in memory: from now on requests are answered. Raises TemplateError. On any thread."""
    services: Services = app.state.services
    meta, chat = services.bridge.meta, services.options.chat
    own = meta.chat_template if chat.jinja else ""
    source = chat.template or own or BUILTIN_TEMPLATES[DEFAULT]
    templates = ChatTemplate(source, bos=meta.bos_text, eos=meta.eos_text)
    # A template that fails does so now, and not in the first chat; what it can do is found out here as well.
    templates.render(EXAMPLE)
    log.debug("the chat template can do this: %s", dict(templates.caps))
    services.templates = templates
    services.created_at = _now_s()


def _model_name(options: ServerOptions) -> str:
    """First alias, else the path of the model as it was given (15 §4)."""
    return options.aliases[0] if options.aliases else str(options.engine.get("model_path", ""))


def _now_s() -> int:
    return int(datetime.now(UTC).timestamp())


async def _no_route(_request: Request, _error: Exception) -> Response:
    """An unknown path, or an unknown method of a known one."""
    return error_response(ApiError("not_found", "File Not Found"))
