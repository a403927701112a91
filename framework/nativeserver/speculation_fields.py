"""Request fields of drafting and of the loop guard (12 §5.4, 11 §18.2, §19.3). Called by fields.

Both have an object; those of drafting are read under dotted names as well, which go before the object's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from framework.nativeserver.core_speculation import Speculation
from framework.nativeserver.field_table import INT32_MAX, Field, checked, fault, wrong_type
from framework.nativeserver.flags import loop_guard
from framework.nativeserver.flags.depth import CONTROLLERS
from framework.nativeserver.flags.speculation import KNOWN_TYPES, MOST_DRAFTED, N_MAX, N_MAX_FLAG, N_MIN, NONE
from framework.nativeserver.speculation_shape import NOT_BUILT
from framework.values.loop_guard import contradiction

Running = Callable[[], Speculation]
OBJECT, GUARD = "speculative", "reasoning_loop_guard"
TYPE = f"{OBJECT}.type"
MEMBERS = ("type", "n_max", "n_min", "p_min", "adaptive", "controller")
MOST_GUARDED = 4096
"""Tokens of a request's window: the guard compares all of it with itself, on the thread that decodes."""


def _number(name: str, low: int, high: int = INT32_MAX) -> Field:
    return Field((name,), "integer", name, low, high)


GUARD_FIELDS: tuple[Field, ...] = (
    Field(("mode",), "string", "mode"),
    _number("min_reasoning_tokens", 0),
    _number("window_tokens", 1, MOST_GUARDED),
    _number("max_period", 1, MOST_GUARDED),
    _number("min_repeated_coverage", 1, MOST_GUARDED),
    _number("check_interval", 1),
    _number("interventions_max", 0),
)
_GUARD_NAMES = {field.names[0]: f"{GUARD}.{field.names[0]}" for field in GUARD_FIELDS}


def read_speculation(
    params: Any, body: Mapping[str, Any], settings: Mapping[str, Any], running: Running
) -> None:
    """Sets what the body says on the core's SpeculationRequest, and nothing else. Raises ApiError.

    `settings` are those of the command line; `running` is asked when a type is named.
    """
    given = _given(body)
    n_max, n_min = settings.get("n_max", N_MAX), settings.get("n_min", N_MIN)
    for field in (
        Field((), "integer", "n_max", 1, n_max),
        Field((), "integer", "n_min", 0, n_max),
        Field((), "number", "p_min", 0, 1),
        Field((), "boolean", "adaptive"),
    ):
        name = f"{OBJECT}.{field.target}"
        if name in given:
            setattr(params, str(field.target), _checked(field, name, given[name], n_max))
    _check_lengths(given, n_max, n_min)
    if (name := f"{OBJECT}.controller") in given:
        params.controller = _word(name, given[name], CONTROLLERS)
    kind = _type(given)
    if kind == NONE or (kind and kind in running().types):
        params.type = kind


def _checked(field: Field, name: str, value: Any, n_max: int) -> Any:
    """A length above the server's own is refused with the flag that allows more."""
    if isinstance(value, int) and value > field.high == n_max < MOST_DRAFTED:
        raise fault(
            name,
            f"value must be between {int(field.low)} and {n_max}, but got {value}; it is for draft models"
            f" (n-gram types have lengths of their own), and {N_MAX_FLAG} raises its limit,"
            f" up to {MOST_DRAFTED}",
        )
    return checked(field, name, value)


def ignored_type_reason(body: Mapping[str, Any], running: Running) -> str:
    """Why the type that a body names is not used; empty when it is, or when it names none."""
    kind = _type(_given(body))
    if kind in ("", NONE):
        return ""
    speculation = running()
    if kind in speculation.types:
        return ""
    return next((dropped.reason for dropped in speculation.dropped if dropped.type == kind), NOT_BUILT)


def read_loop_guard(params: Any, body: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Sets LoopGuardParams: the body's object over the server's, if there is any. Raises ApiError."""
    given = _object(body, GUARD)
    if not given and GUARD not in defaults:
        return
    values: dict[str, Any] = {**loop_guard.DEFAULTS, **defaults.get(GUARD, {})}
    for field in GUARD_FIELDS:
        name = field.names[0]
        if given.get(name) is not None:
            values[name] = checked(field, _GUARD_NAMES[name], given[name])
    _word(_GUARD_NAMES["mode"], values["mode"], loop_guard.MODES)
    problem = contradiction(values)
    if problem is not None:
        raise fault(_GUARD_NAMES[problem.name], problem.text(_GUARD_NAMES))
    for name, value in values.items():
        setattr(params, name, value)


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    """Fields about drafting by their dotted names. Looks only for known ones: clients can send any number."""
    nested = _object(body, OBJECT)
    values = {f"{OBJECT}.{name}": (body.get(f"{OBJECT}.{name}"), nested.get(name)) for name in MEMBERS}
    return {
        name: dotted if dotted is not None else inner
        for name, (dotted, inner) in values.items()
        if dotted is not None or inner is not None
    }


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_type(name, "object", value)
    return value


def _type(given: Mapping[str, Any]) -> str:
    """The type that is named, or nothing."""
    return _word(TYPE, given[TYPE], KNOWN_TYPES) if TYPE in given else ""


def _word(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, "string", value)
    if value not in allowed:
        raise fault(name, f"must be one of {', '.join(allowed)}")
    return value


def _check_lengths(given: Mapping[str, Any], n_max: int, n_min: int) -> None:
    """The shortest draft against the longest, where the body changes one of them."""
    name_of_most, name_of_least = f"{OBJECT}.n_max", f"{OBJECT}.n_min"
    most, least = given.get(name_of_most, n_max), given.get(name_of_least, n_min)
    if least > most:
        name, low, high = (name_of_least, 0, most) if name_of_least in given else (name_of_most, least, n_max)
        raise fault(name, f"value must be between {low} and {high}, but got {given[name]}")
