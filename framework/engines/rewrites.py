"""A command line and an environment with one thing taken out, for another try of a start (06 §13). Pure.

Called by runtime.rungs. Works on whole sections, the user's own included: what made a start fail may stand in
any of them, and the last occurrence of a flag wins. No section ends between a flag and its value. The token
behind a value flag is its value whatever it looks like (15 §1), except that flash attention was once a switch
without one: builds of that time get it taken away, where others are told `off`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from framework.engines.args import AUTO_WORDS, FLASH_FLAGS, TRUE_WORDS, V_TYPE_FLAGS
from framework.engines.granted import UNQUANTISED
from framework.engines.spec_args import DRAFT_V_FLAGS
from framework.values.drafter_variables import DRAFTER_VARIABLES
from framework.values.engine import Capabilities
from framework.values.plan import Section

ALL_V_FLAGS = frozenset(V_TYPE_FLAGS) | DRAFT_V_FLAGS
V_TYPE_VARIABLES = ("LLAMA_ARG_CACHE_TYPE_V", "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V")
FLASH_VARIABLE = "LLAMA_ARG_FLASH_ATTN"
PLAIN_TYPE = "f16"
PROJECTOR_FLAGS = frozenset({"-mm", "--mmproj", "-mmu", "--mmproj-url"})
PROJECTOR_VARIABLES = ("LLAMA_ARG_MMPROJ", "LLAMA_ARG_MMPROJ_URL")
FIT_FLAGS = frozenset({"-fit", "--fit"})
# What of a placement says where the launch may go at all; the rest says which layer goes where.
PIN_FLAGS = frozenset({"--rpc", "--device"})
PLACEMENT = "placement"
FIT_ON, FIT_OFF = ("--fit", "on"), ("--fit", "off")

Tokens = Sequence[str]


def has_flash_switch(caps: Capabilities) -> bool:
    """Whether flash attention is a switch to this build, and off without it: no word may stand behind it."""
    return any(flag in caps.switches for flag in FLASH_FLAGS)


def has_flash_attention(sections: Iterable[Section], *, is_switch: bool = False) -> bool:
    """Whether the line asks for flash attention, by `on`, `auto` or no word at all; the last flag decides."""
    words = [
        value
        for section in sections
        for flag, value in _flash_pairs(section.tokens, is_switch=is_switch)
        if flag in FLASH_FLAGS
    ]
    return bool(words) and (words[-1] is None or words[-1].lower() in TRUE_WORDS | AUTO_WORDS)


def without_flash_attention(sections: Iterable[Section], *, is_switch: bool = False) -> tuple[Section, ...]:
    """The line with flash attention off wherever it was on or automatic, and V caches that can do without."""

    def off(tokens: Tokens) -> Iterator[str]:
        for flag, _ in _flash_pairs(tokens, is_switch=is_switch):
            if flag not in FLASH_FLAGS:
                yield flag
            elif not is_switch:
                yield from (flag, "off")

    return with_plain_values(_each(sections, off))


def without_flash_variable(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variable of flash attention, which has a say where the line has none."""
    return {name: value for name, value in env.items() if name != FLASH_VARIABLE}


def has_quantised_values(sections: Iterable[Section], env: Mapping[str, str]) -> bool:
    """Whether a V cache, the drafter's included, is of a type that needs flash attention."""
    pairs = (pair for section in sections for pair in _pairs(section.tokens))
    values = [value for flag, value in pairs if flag in ALL_V_FLAGS]
    values += [env[name] for name in V_TYPE_VARIABLES if env.get(name, "").strip()]
    return any(_is_quantised(value) for value in values if value is not None)


def with_plain_values(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The line with f16 for every quantised V cache; K caches stay as they are."""

    def plain(tokens: Tokens) -> Iterator[str]:
        for flag, value in _pairs(tokens):
            yield flag
            if value is not None:
                yield PLAIN_TYPE if flag in ALL_V_FLAGS and _is_quantised(value) else value

    return _each(sections, plain)


def without_quantised_values(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without variables that ask for a quantised V cache."""
    quantised = {name for name in V_TYPE_VARIABLES if _is_quantised(env.get(name, ""))}
    return {name: value for name, value in env.items() if name not in quantised}


def has_projector(sections: Iterable[Section], env: Mapping[str, str]) -> bool:
    """Whether a projector is loaded."""
    pairs = (pair for section in sections for pair in _pairs(section.tokens))
    on_line = any(flag.partition("=")[0] in PROJECTOR_FLAGS for flag, _ in pairs)
    return on_line or any(env.get(name) for name in PROJECTOR_VARIABLES)


def text_only(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The line without a projector, whoever named it."""

    def text(tokens: Tokens) -> Iterator[str]:
        for flag, value in _pairs(tokens):
            if flag.partition("=")[0] not in PROJECTOR_FLAGS:
                yield flag
                if value is not None:
                    yield value

    return _each(sections, text)


def without_projector(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without a projector."""
    return {name: value for name, value in env.items() if name not in PROJECTOR_VARIABLES}


def without_drafters(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what names a drafter: some builds draft with any that they are given."""
    return {name: value for name, value in env.items() if name not in DRAFTER_VARIABLES}


def has_fit_step(sections: Iterable[Section]) -> bool:
    """Whether the engine's own fit step runs, which is so unless the line says otherwise."""
    pairs = (pair for section in sections for pair in _pairs(section.tokens))
    words = [value for flag, value in pairs if flag in FIT_FLAGS]
    return not words or words[-1] in TRUE_WORDS


def fitted(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The line with the same devices, on which the engine's own fit step says what goes where."""

    def pins(tokens: Tokens) -> Iterator[str]:
        for flag, value in _pairs(tokens):
            if flag in PIN_FLAGS and value is not None:
                yield from (flag, value)
        yield from FIT_ON

    return _placement(sections, pins)


def unfitted(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The line with the engine's own fit step off, in the place where it was on."""

    def off(tokens: Tokens) -> Iterator[str]:
        kept = [(flag, value) for flag, value in _pairs(tokens) if flag not in FIT_FLAGS]
        yield from (token for pair in kept for token in pair if token is not None)
        yield from FIT_OFF

    return _placement(sections, off)


def without(sections: Iterable[Section], name: str) -> tuple[Section, ...]:
    """The line without a section."""
    return tuple(section for section in sections if section.name != name)


def _each(sections: Iterable[Section], change: Callable[[Tokens], Iterator[str]]) -> tuple[Section, ...]:
    changed = (replace(section, tokens=tuple(change(section.tokens))) for section in sections)
    return tuple(section for section in changed if section.tokens)


def _placement(sections: Iterable[Section], change: Callable[[Tokens], Iterator[str]]) -> tuple[Section, ...]:
    """A line without a placement gets one behind everything that is ours."""
    found = list(sections)
    if not any(section.name == PLACEMENT for section in found):
        ours = sum(section.kind != "user" for section in found)
        found.insert(ours, Section(PLACEMENT, ()))
    return tuple(
        replace(section, tokens=tuple(change(section.tokens))) if section.name == PLACEMENT else section
        for section in found
    )


def _pairs(tokens: Tokens) -> Iterator[tuple[str, str | None]]:
    """Tokens with the values of those flags that matter here; all others stand alone."""
    with_value = ALL_V_FLAGS | PROJECTOR_FLAGS | PIN_FLAGS | FIT_FLAGS
    rest = iter(tokens)
    for token in rest:
        yield token, (next(rest, None) if token in with_value else None)


def _flash_pairs(tokens: Tokens, *, is_switch: bool) -> Iterator[tuple[str, str | None]]:
    """Tokens, those of flash attention with their word if they have one; it may be in any case."""
    place = 0
    while place < len(tokens):
        flag, following = tokens[place], "".join(tokens[place + 1 : place + 2])
        is_word = following in AUTO_WORDS or (bool(following) and not following.startswith("-"))
        has_word = flag in FLASH_FLAGS and is_word and not is_switch
        yield flag, (following if has_word else None)
        place += 2 if has_word else 1


def _is_quantised(cache_type: str) -> bool:
    name = cache_type.strip().lower()
    return bool(name) and name not in UNQUANTISED
