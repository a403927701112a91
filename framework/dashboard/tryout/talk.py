"""A conversation as the page Try shows it, and as it travels in the form of a browser without script. Pure.

The server keeps none: it lives in the page. What comes back in a form is the reader's own, checked for its
shape, and printed as text only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from framework.api.errors import ApiError

# More than anybody reads on one page; whoever needs more has a client for it.
MOST_TURNS = 50
MOST_ANSWERS = 2
MOST_CALLS = 32


@dataclass(frozen=True)
class ToolCall:
    """What a model wants called; `arguments` is the JSON text that it wrote."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Trouble:
    """Why there is no answer, or not all of one. `reason` is the code of what is behind it, explained on a
    page of its own; empty where the error has none."""

    code: str
    message: str
    remedy: str
    reason: str = ""


TROUBLE_FIELDS = tuple(field.name for field in fields(Trouble))


@dataclass(frozen=True)
class RequestText:
    """The request of an answer, to be sent again from elsewhere."""

    curl: str
    python: str


NO_REQUEST = RequestText("", "")


@dataclass(frozen=True)
class Answer:
    """What one model said. `note` tells how it ended where that is worth a word; `numbers` are names with
    values in words; `place` makes ids of elements unique on the page."""

    model: str
    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    trouble: Trouble | None = None
    note: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    request: RequestText = NO_REQUEST
    place: str = "blank"


@dataclass(frozen=True)
class Turn:
    """A message and what was said to it, by one model or two."""

    user: str
    answers: tuple[Answer, ...] = ()


Talk = tuple[Turn, ...]


def talk_json(talk: Talk) -> str:
    """The conversation as text for a form."""
    return json.dumps([_turn_json(turn) for turn in talk], ensure_ascii=False)


def read_talk(text: str) -> Talk:
    """The conversation of a form. Raises ApiError 400 for anything that the page did not write."""
    if not text:
        return ()
    try:
        turns = json.loads(text)
        if len(turns) > MOST_TURNS:
            raise ApiError(
                400,
                "invalid_body",
                f"The conversation has {len(turns)} messages; at most {MOST_TURNS} are kept on a page "
                "without script. Begin a new one.",
            )
        return tuple(_turn(turn, place) for place, turn in enumerate(turns))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        message = "The conversation in the form cannot be read. Begin a new one."
        raise ApiError(400, "invalid_body", message, param="conversation") from error


def messages_of(talk: Talk, lane: int) -> list[dict[str, str]]:
    """What a model is told of earlier turns: its own answers, or those of the first model where it was not
    there yet. Turns that came to nothing are left out, so that roles go on to alternate."""
    messages: list[dict[str, str]] = []
    for turn in talk:
        if not turn.answers:
            continue
        answer = turn.answers[lane] if lane < len(turn.answers) else turn.answers[0]
        if answer.trouble is not None and not answer.text:
            continue
        messages.append({"role": "user", "content": turn.user})
        messages.append({"role": "assistant", "content": answer.text})
    return messages


def _turn_json(turn: Turn) -> dict[str, Any]:
    return {"user": turn.user, "answers": [_answer_json(answer) for answer in turn.answers]}


def _answer_json(answer: Answer) -> dict[str, Any]:
    trouble = answer.trouble
    return {
        "model": answer.model,
        "text": answer.text,
        "thinking": answer.thinking,
        "calls": [{"name": call.name, "arguments": call.arguments} for call in answer.calls],
        "trouble": None if trouble is None else asdict(trouble),
        "note": answer.note,
        "numbers": [list(pair) for pair in answer.numbers],
        "curl": answer.request.curl,
        "python": answer.request.python,
    }


def _turn(value: Mapping[str, Any], place: int) -> Turn:
    answers: Sequence[Any] = value["answers"]
    return Turn(
        _text(value["user"]),
        tuple(_answer(answer, f"{place}-{lane}") for lane, answer in enumerate(answers[:MOST_ANSWERS])),
    )


def _answer(value: Mapping[str, Any], place: str) -> Answer:
    trouble = value["trouble"]
    return Answer(
        model=_text(value["model"]),
        text=_text(value["text"]),
        thinking=_text(value["thinking"]),
        calls=tuple(
            ToolCall(_text(call["name"]), _text(call["arguments"])) for call in value["calls"][:MOST_CALLS]
        ),
        trouble=None if trouble is None else Trouble(*(_text(trouble[name]) for name in TROUBLE_FIELDS)),
        note=_text(value["note"]),
        numbers=tuple((_text(name), _text(text)) for name, text in value["numbers"]),
        request=RequestText(_text(value["curl"]), _text(value["python"])),
        place=place,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    # Half of a character that takes two cannot be printed; no page has written one.
    value.encode()
    return value
