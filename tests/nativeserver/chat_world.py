"""The whole application over an engine whose results a test writes, for chats and their official clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anthropic
import httpx2
import openai

from framework.chat.template import ChatTemplate
from framework.nativeserver.app import make_app
from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.options import ServerOptions
from tests.nativeserver.generation_world import (
    GrammarTrigger,
    WrittenEngine,
    final,
    generation_params,
    new_task,
    partial,
)
from tests.proxy.asgi_client import AsgiCall, start_call

# In the manner of Qwen 2.5, with reasoning.
TEMPLATE = r"""{%- if tools %}<tools>{{ tools | tojson }}</tools>
{% endif %}
{%- for message in messages %}
<|im_start|>{{ message.role }}
{%- if message.tool_call_id %} for {{ message.tool_call_id }}{% endif %}
{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{- '\n' ~ message.content }}
{%- for call in message.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""
URL = "http://engine"
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TOOL: Any = {"type": "function", "function": WEATHER}
CALLING = (
    "<think>\nhmm\n</think>\n\nLet me see.\n<tool_call>\n"
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
)
"""A reply with reasoning, text and a call."""


def whole(text: str, **fields: Any) -> Callable[[Any], list[Any]]:
    """Each task gets this reply at its end."""
    return lambda task: [final(task, text.encode(), n_decoded=5, **fields)]


def streamed(text: str, size: int = 3, **fields: Any) -> Callable[[Any], list[Any]]:
    """Each task gets this reply in pieces of some bytes."""
    data = text.encode()

    def results(task: Any) -> list[Any]:
        pieces = [partial(task, data[start : start + size]) for start in range(0, len(data), size)]
        return [*pieces, final(task, n_decoded=5, **fields)]

    return results


class ChatWorld:
    """Application, engine and clients."""

    def __init__(self, template: str = TEMPLATE, **options: Any) -> None:
        self.engine = WrittenEngine()
        vars(self.engine.meta_).update(bos_text="", eos_text="<|im_end|>", chat_template=template)
        module = SimpleNamespace(
            Task=new_task, GenerationParams=generation_params, GrammarTrigger=GrammarTrigger
        )
        self.bridge = EngineBridge(self.engine, module)  # type: ignore[arg-type]
        self.app = make_app(ServerOptions(engine={}, aliases=("small",), **options), self.bridge)
        services = self.app.state.services
        services.templates = ChatTemplate(template, eos="<|im_end|>")
        services.created_at = 1
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app))
        self.openai = openai.AsyncOpenAI(
            base_url=f"{URL}/v1", api_key="none", http_client=self.http, max_retries=0
        )
        self.anthropic = anthropic.AsyncAnthropic(
            base_url=URL, api_key="none", http_client=self.http, max_retries=0
        )

    @property
    def prompt(self) -> str:
        """What the newest task was asked."""
        return self.engine.detokenize(self.engine.tasks[-1].tokens, True).decode()

    def start(self, path: str, body: Any) -> AsgiCall:
        """Begin a request."""
        return start_call(self.app, path, body)

    async def post(self, path: str, body: Any) -> AsgiCall:
        """The whole answer."""
        return await self.start(path, body).finished()


@asynccontextmanager
async def chat_world(template: str = TEMPLATE, **options: Any) -> AsyncIterator[ChatWorld]:
    """A world whose bridge is at work."""
    world = ChatWorld(template, **options)
    async with world.bridge, world.http:
        yield world
    world.engine.close()
