"""Everything on the page Try, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from framework.dashboard.pages.shell import Shell
from framework.dashboard.tryout.lanes import LOADED, Lane
from framework.dashboard.tryout.settings import FORMATS, MOST_TEMPERATURE, MOST_TOKENS, USUAL_TOKENS
from framework.dashboard.tryout.talk import Answer, Talk, Turn, talk_json
from framework.proxy.model_choice import nearest_names, shown
from framework.values.instance import ModelView

TRY = "/try"
# A list that is longer is searched by typing, with the names below the field.
MOST_OPTIONS = 40
BLANK = Turn("", (Answer(""),))


@dataclass(frozen=True)
class ModelOption:
    """A model that can be chosen; `title` is its display name, or empty."""

    name: str
    title: str


@dataclass(frozen=True)
class ChoiceGroup:
    """Models of one kind in the list."""

    label: str
    options: tuple[ModelOption, ...]


@dataclass(frozen=True)
class Choice:
    """The fields that choose one model, or two. `is_long`: typed and completed, in place of a list."""

    groups: tuple[ChoiceGroup, ...]
    first: str
    second: str
    is_long: bool


@dataclass(frozen=True)
class TryForm:
    """The settings as typed, with what is wrong with them."""

    texts: Mapping[str, str]
    faults: Mapping[str, str]
    formats: tuple[tuple[str, str], ...] = FORMATS
    usual_tokens: int = USUAL_TOKENS
    most_tokens: int = MOST_TOKENS
    most_temperature: str = f"{MOST_TEMPERATURE:g}"


@dataclass(frozen=True)
class TryPage:
    """The page. `empty` says why there is nothing to try, where there is nothing; `talk` is the conversation
    as its form carries it, `message` what is being written; the script makes answers from `blank`."""

    shell: Shell
    empty: str
    choice: Choice
    lanes: tuple[Lane, ...]
    faults: tuple[str, ...]
    turns: Talk
    talk: str
    message: str
    form: TryForm
    remedies: tuple[tuple[str, str], ...]
    wants_key: bool
    new_url: str
    blank: Turn = BLANK


def choice_of(views: Sequence[ModelView], first: str, second: str) -> Choice:
    """The models in declared order, those that are loaded first."""
    loaded = tuple(_option(view) for view in views if view.state in LOADED)
    other = tuple(_option(view) for view in views if view.state not in LOADED)
    groups = [
        ChoiceGroup(label, options)
        for label, options in (("Loaded", loaded), ("Not loaded", other))
        if options
    ]
    return Choice(tuple(groups), first, second, is_long=len(views) > MOST_OPTIONS)


def kept_talk(talk: Talk) -> str:
    """The conversation for the form; nothing before the first message."""
    return talk_json(talk) if talk else ""


def no_such_model(name: str, views: Sequence[ModelView]) -> str:
    """What is said of a name that is no model of this reader."""
    near = nearest_names(name, [view.request.id for view in views])
    meant = f" Did you mean {', '.join(map(shown, near))}?" if near else ""
    return f"There is no model {shown(name)} that you may use.{meant}"


def _option(view: ModelView) -> ModelOption:
    return ModelOption(view.request.id, view.request.live.display_name or "")
