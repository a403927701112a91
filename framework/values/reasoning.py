"""What a model's chat template can do, reasoning above all (02 §1.1, 08 §10.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ReasoningStyle = Literal["enable_thinking", "enable_thinking_effort", "reasoning_effort"]

LADDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Levels of effort, weak to strong."""


@dataclass(frozen=True)
class TemplateCapabilities:
    """What a template was found to support. The defaults are those of a model without one."""

    supports_reasoning: bool = False
    reasoning_style: ReasoningStyle = "enable_thinking"
    reasoning_always_on: bool = False
    effort_levels: tuple[str, ...] = ()
    """In the order of `LADDER`; empty where the template names none."""
    supports_preserve_thinking: bool = False
    supports_tools: bool = False

    @property
    def switchable(self) -> bool:
        """Whether a request can turn thinking on or off."""
        return self.supports_reasoning and not self.reasoning_always_on


@dataclass(frozen=True)
class ReasoningFacts:
    """What a request may ask of the model that runs."""

    template: TemplateCapabilities = TemplateCapabilities()
    architecture: str | None = None
    default: str | None = None
    """What a request gets that says nothing: `on`, `off`, a level, or `always`; None: it never reasons, or
    nobody knows."""


NO_REASONING = ReasoningFacts()
