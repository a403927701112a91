"""Taking in a model that was loaded (12 §1.3, 10 §3 row L11)."""

from __future__ import annotations

import pytest

from framework.chat.template import TemplateError
from framework.nativeserver.app import loaded
from framework.nativeserver.options import ChatOptions
from tests.nativeserver.small_world import TEMPLATE, small_world

OTHER = "{% for message in messages %}<{{ message['content'] }}>{% endfor %}"


async def test_requests_are_answered_once_the_model_is_taken_in() -> None:
    async with small_world() as world:
        services = world.app.state.services
        services.templates, services.created_at = None, 0
        assert (await world.get("/health")).status_code == 503
        loaded(world.app)
        assert (await world.get("/health")).status_code == 200
        assert services.templates.source == TEMPLATE
        assert services.created_at >= services.started_at > 1_700_000_000


@pytest.mark.parametrize(
    ("chat", "own", "used"),
    [
        (ChatOptions(template=OTHER), TEMPLATE, OTHER),
        (ChatOptions(), "", "<|im_start|>"),
        (ChatOptions(jinja=False), OTHER, "<|im_start|>"),
        (ChatOptions(jinja=False, template=OTHER), TEMPLATE, OTHER),
    ],
    ids=["named", "model-without-one", "no-jinja", "no-jinja-and-named"],
)
async def test_the_template_is_the_named_one_else_the_models(chat: ChatOptions, own: str, used: str) -> None:
    async with small_world(chat=chat) as world:
        world.core.meta_.chat_template = own
        loaded(world.app)
        assert used in world.app.state.services.templates.source


@pytest.mark.parametrize(
    "source", ["{% for %}", "{{ raise_exception('never') }}", "{{ messages.missing() }}"]
)
async def test_a_template_that_does_not_work_is_found_out_at_once(source: str) -> None:
    async with small_world() as world:
        world.core.meta_.chat_template = source
        world.app.state.services.created_at = 0
        with pytest.raises(TemplateError):
            loaded(world.app)
        assert world.app.state.services.created_at == 0
