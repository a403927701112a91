"""What the command line says of drafting and of the loop guard, as a whole (11 §3.2, §18.1, §19.2, 12 §19.6).

Called by settings. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from framework.nativeserver.flags import depth, drafters, loop_guard, speculation
from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.table import BY_SPELLING
from framework.nativeserver.flags.without_effect import DRAFT_REPOSITORY_TARGET
from framework.nativeserver.readings import Reading
from framework.nativeserver.usage_error import UsageError
from framework.values.loop_guard import contradiction

Targets = Mapping[str, Any]
LEAST_MATCH = 16
"""Shorter look-ups find what has nothing to do with the text (11 §6.5)."""
MATCH_FLAG = "--spec-ngram-mod-n-match"
DEFAULT_FLAG = BY_SPELLING["--spec-default"]


def after_default(readings: Sequence[Reading]) -> list[Reading]:
    """Without the lengths that stand before `--spec-default`, which stands for the usual ones."""
    last = max((n for n, reading in enumerate(readings) if reading.flag is DEFAULT_FLAG), default=-1)
    return [
        reading
        for number, reading in enumerate(readings)
        if number > last or not reading.flag.target.startswith(drafters.MOD_TARGET)
    ]


def asked_types(targets: Targets, warnings: list[str]) -> tuple[str, ...]:
    """Types in their order; a draft model alone is one. Raises UsageError."""
    kinds: tuple[str, ...] = tuple(dict.fromkeys(targets.get(speculation.TYPES_TARGET, ())))
    names_a_model = drafters.MODEL_TARGET in targets or DRAFT_REPOSITORY_TARGET in targets
    if names_a_model and speculation.TYPES_TARGET not in targets:
        kinds = (speculation.OF_A_MODEL,)
    if kinds and only_embeds(targets):
        if targets.get(speculation.STRICT_TARGET):
            raise UsageError(f"error: --spec-strict: {_undrafted(kinds)}; leave out one of the two")
        warnings.append(_undrafted(kinds))
        return kinds
    match = targets.get(f"{drafters.MOD_TARGET}match", drafters.MOD_DEFAULTS["match"])
    if speculation.DEFAULT_TYPE in kinds and match < LEAST_MATCH:
        warnings.append(f"{MATCH_FLAG} {match} is small: below {LEAST_MATCH} most of what it finds is wrong")
    return kinds


def only_embeds(targets: Targets) -> bool:
    """Whether the server generates nothing that could be drafted."""
    return bool(targets.get("server.embeddings") or targets.get("server.reranking"))


def _undrafted(kinds: Sequence[str]) -> str:
    return f"--spec-type {','.join(kinds)} is off: embeddings are not drafted"


def speculation_settings(targets: Targets, kinds: Sequence[str]) -> dict[str, Any]:
    """Attributes of the core's SpeculationParams; those of its parts one level below. Raises UsageError."""
    _check_pairs(targets)
    settings: dict[str, Any] = {"types": list(kinds)} if kinds and not only_embeds(targets) else {}
    for target, value in targets.items():
        group, _, name = target.partition(".")
        if group == "speculation":
            part, _, attribute = name.rpartition(".")
            (settings.setdefault(part, {}) if part else settings)[attribute] = value
    return settings


def loop_guard_settings(targets: Targets) -> dict[str, Any]:
    """Defaults of the request's object of this name. Raises UsageError."""
    given = {
        name: targets[f"loop_guard.{name}"] for name in loop_guard.DEFAULTS if f"loop_guard.{name}" in targets
    }
    problem = contradiction({**loop_guard.DEFAULTS, **given})
    if problem is not None:
        raise UsageError(f"error: {problem.text(loop_guard.FLAG_NAMES)}; set both")
    return given


def _check_pairs(targets: Targets) -> None:
    """The lower one of two flags first. What isn't given has its default."""
    for low, high in _PAIRS:
        least, most = (targets.get(flag.target, _default(flag)) for flag in (low, high))
        is_strict = low.target in depth.FRINGE_TARGETS
        if least > most or (is_strict and least == most):
            words = "less than" if is_strict else "at most"
            raise UsageError(
                f"error: {low.names[0]} {least:g} must be {words} {high.names[0]} {most:g}; set both"
            )


def _default(flag: Flag) -> float:
    return float(flag.default)


def _pairs(names: Iterable[tuple[str, str]]) -> tuple[tuple[Flag, Flag], ...]:
    return tuple((BY_SPELLING[low], BY_SPELLING[high]) for low, high in names)


_PAIRS = _pairs(
    (
        depth.FRINGE_FLAGS,
        (speculation.N_MIN_FLAG, speculation.N_MAX_FLAG),
        ("--spec-ngram-mod-n-min", "--spec-ngram-mod-n-max"),
    )
)
