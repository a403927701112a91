"""Reasoning that a model writes before its answer, between tags. Called by chat.formats."""

from __future__ import annotations

from typing import Protocol

from framework.chat.text_source import Markers, Source, Steps

TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
)
"""In the order they are looked for in templates; models are told apart by the second ones."""


class ReasoningSink(Protocol):
    """Where it goes."""

    def reasoning(self, text: str) -> None:
        """A piece."""


def reasoning_tags(template: str) -> tuple[str, str]:
    """The tags that a chat template knows; empty ones when it knows none."""
    return next((pair for pair in TAGS if pair[1] in template), ("", ""))


def read_reasoning(
    source: Source, sink: ReasoningSink, start: str, end: str, *, is_open: bool
) -> Steps[None]:
    """Takes reasoning if it is next, with its tags and the line ends that only set it apart.

    Whatever looks like a call within it is talk about one. Without an end tag, all of it is reasoning.
    """
    space = "" if is_open else (yield from source.space())
    if not (yield from source.literal(start)) and not is_open:
        source.put_back(space)
        return
    yield from source.skip("\r\n")
    if (yield from source.until(Markers((end,)), sink.reasoning)):
        source.take(len(end))
        yield from source.skip("\r\n")
