"""Chat templates: Jinja2 text of a model that turns a conversation into a prompt.

Called by nativeserver for every chat. A template is read once; rendering is bounded in time and memory.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import jinja2

from framework.chat.template_limits import TemplateError, rendering
from framework.chat.template_probes import probe_capabilities
from framework.chat.template_sandbox import TemplateSandbox

__all__ = ["ChatTemplate", "TemplateError"]

MAX_SOURCE_CHARS = 1 << 20
_FILE = "<template>"
# What a hostile or broken template can raise from within Python or Jinja2.
_TROUBLE = (
    *(jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError),
    *(RecursionError, MemoryError, SyntaxError, AssertionError, NotImplementedError),
)
_sandbox = TemplateSandbox()


class ChatTemplate:
    """A template that was read; raises TemplateError when it can't be."""

    def __init__(self, source: str, *, bos: str = "", eos: str = "") -> None:
        if len(source) > MAX_SOURCE_CHARS:
            raise TemplateError(f"the chat template is longer than {MAX_SOURCE_CHARS} characters")
        self.source = source
        self._tokens = {"bos_token": bos, "eos_token": eos}
        self.bos = bos
        try:
            self._template = _sandbox.from_string(source)
        except _TROUBLE as error:
            raise TemplateError(f"the chat template can't be read: {_told(error)}") from error

    @cached_property
    def caps(self) -> Mapping[str, bool]:
        """What the template does with the parts of a conversation, by the names of /props."""
        return probe_capabilities(self.source, self.render)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt for messages as `chat.messages` makes them; raises TemplateError with the line."""
        variables = {
            **self._tokens,
            **(extra or {}),
            "messages": messages,
            "tools": tools or None,
            "add_generation_prompt": add_generation_prompt,
        }
        with rendering():
            try:
                return self._template.render(variables)
            except TemplateError as error:
                raise TemplateError(f"{error}{_line(error)}") from error
            except _TROUBLE as error:
                raise TemplateError(f"the chat template failed: {_told(error)}{_line(error)}") from error


def _told(error: BaseException) -> str:
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.message} (line {error.lineno})"
    if isinstance(error, RecursionError | MemoryError):
        return "it is nested too deeply, or refers to itself without end"
    return str(error)[:500] or type(error).__name__


def _line(error: BaseException) -> str:
    """The innermost line of the template that was at work."""
    frames = traceback.extract_tb(error.__traceback__, limit=200)
    lines = [frame.lineno for frame in frames if frame.filename == _FILE]
    return f" (line {lines[-1]} of the chat template)" if lines else ""
