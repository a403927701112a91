"""What a model's own arguments say about speculation, and the same arguments without it (05 §4). Pure.

Called by planning (decisions, memory) and by recovery. Types add up over all occurrences and nothing later on
the line takes one away (15 §3), so whoever wants them gone has to remove them. The variable of types never
reaches a child and counts for nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from framework.engines.args import values_of
from framework.values.drafter_variables import DRAFTER_FILE_VARIABLES, DRAFTER_VARIABLES

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")
TYPE_FLAG, DEFAULT_FLAG = "--spec-type", "--spec-default"
DRAFTER_FLAGS = frozenset({"--model-draft", "--spec-draft-model", "-md"})
DRAFTER_HUB_FLAGS = frozenset({"--spec-draft-hf", "-hfd", "-hfrd", "--hf-repo-draft"})
DEPTH_FLAGS = frozenset({"--spec-draft-n-max", "--draft-max", "--draft-n", "--draft"})
DEPTH_VARIABLES = ("LLAMA_ARG_SPEC_DRAFT_N_MAX", "LLAMA_ARG_DRAFT_MAX")
DRAFT_K_FLAGS = frozenset({"--cache-type-k-draft", "--spec-draft-type-k", "-ctkd"})
DRAFT_V_FLAGS = frozenset({"--cache-type-v-draft", "--spec-draft-type-v", "-ctvd"})
DRAFT_TYPE_VARIABLES = ("LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K", "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V")
DRAFT_LAYERS_FLAGS = frozenset({"--spec-draft-ngl", "-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft"})
DRAFT_LAYERS_VARIABLE = "LLAMA_ARG_N_GPU_LAYERS_DRAFT"
DRAFT_DEVICE_FLAGS = frozenset({"--spec-draft-device", "-devd", "--device-draft"})
HOST_WORDS = frozenset({"cpu", "none"})
# What --spec-default stands for in the builds that have it (15 §3).
DEFAULT_TYPE = "ngram-mod"
NO_TYPE = "none"
# Some builds take settings of a type behind it: `mtp:n_max=1,p_min=0.0`.
SETTING_MARK, ASSIGNMENT = ":", "="


def spec_types(args: Sequence[str]) -> tuple[str, ...]:
    """All types that the arguments switch on, in order; one value with `none` in it is none at all."""
    found: list[str] = []
    for place, token in enumerate(args):
        if token == DEFAULT_FLAG:
            found.append(DEFAULT_TYPE)
        elif token == TYPE_FLAG:
            found += _types_of(next(values_of(args[place : place + 2], (TYPE_FLAG,)), ""))
    return tuple(dict.fromkeys(found))


def _types_of(value: str) -> list[str]:
    parts = [part.strip().lower().split(SETTING_MARK)[0] for part in value.split(",")]
    names = [name for name in parts if name and ASSIGNMENT not in name]
    return [] if NO_TYPE in names else names


def owns_speculation(args: Collection[str]) -> bool:
    """Whether the user drives speculation himself (05 §4.1); tuning flags beside the policy do not count."""
    return TYPE_FLAG in args or DEFAULT_FLAG in args


def depth(args: Sequence[str], env: Mapping[str, str] | None = None) -> int | None:
    """Tokens drafted at once: the last value that is a whole number, else that of a variable."""
    known = env or {}
    declared = [known[name] for name in reversed(DEPTH_VARIABLES) if name in known]
    numbers = [number for text in (*declared, *values_of(args, DEPTH_FLAGS)) for number in _whole(text)]
    return numbers[-1] if numbers else None


def drafter(args: Sequence[str], env: Mapping[str, str] | None = None) -> str | None:
    """File or hub id of the drafter: the last one named, else that of a variable."""
    found = _named_drafter(args, env or {})
    return found[1] if found is not None else None


def drafter_naming(args: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """The flag or variable that names the drafter, as it is written; empty for none."""
    found = _named_drafter(args, env or {})
    return found[0] if found is not None else ""


def is_drafter_file(args: Sequence[str], env: Mapping[str, str] | None = None) -> bool:
    """Whether what `drafter` returns is a file, not something that the engine gets from a hub."""
    return drafter_naming(args, env) in DRAFTER_FLAGS.union(DRAFTER_FILE_VARIABLES)


def _named_drafter(args: Sequence[str], env: Mapping[str, str]) -> tuple[str, str] | None:
    """What names the drafter, and the drafter."""
    for place in reversed(range(len(args))):
        if args[place] in DRAFTER_FLAGS or args[place] in DRAFTER_HUB_FLAGS:
            value = next(values_of(args[place : place + 2], (args[place],)), "")
            if value:
                return args[place], value
    for variable in DRAFTER_VARIABLES:
        if env.get(variable):
            return variable, env[variable]
    return None


def draft_cache_types(
    args: Sequence[str], env: Mapping[str, str] | None = None
) -> tuple[str | None, str | None]:
    """Types of the drafter's own K and V caches; None is f16."""
    known = env or {}
    axes = zip((DRAFT_K_FLAGS, DRAFT_V_FLAGS), DRAFT_TYPE_VARIABLES, strict=True)
    key, value = (_last_text(args, flags) or known.get(variable, "").strip() for flags, variable in axes)
    return key or None, value or None


def is_drafter_on_cpu(args: Sequence[str], env: Mapping[str, str] | None = None) -> bool:
    """Whether a separate drafter is kept off the GPUs; a head goes with the model."""
    layers = [number for text in values_of(args, DRAFT_LAYERS_FLAGS) for number in _whole(text)]
    if not layers:
        layers = list(_whole((env or {}).get(DRAFT_LAYERS_VARIABLE, "")))
    devices = [part.strip().lower() for part in _last_text(args, DRAFT_DEVICE_FLAGS).split(",")]
    return layers[-1:] == [0] or all(name in HOST_WORDS for name in devices)


def without_speculation(args: Sequence[str]) -> tuple[str, ...]:
    """The arguments with everything taken out that switches speculation on: types, and drafters, which some
    builds load and use without any type. Settings of what is gone stay; they change nothing."""
    kept: list[str] = []
    skips = False
    for token in args:
        if skips:
            skips = False
        elif token == TYPE_FLAG or token in DRAFTER_FLAGS or token in DRAFTER_HUB_FLAGS:
            skips = True  # what follows is its value, whatever it looks like (15 §1)
        elif token != DEFAULT_FLAG:
            kept.append(token)
    return tuple(kept)


def _last_text(args: Sequence[str], flags: Collection[str]) -> str:
    values = [value.strip() for value in values_of(args, flags)]
    return values[-1] if values else ""


def _whole(text: str) -> Iterator[int]:
    if WHOLE_NUMBER.fullmatch(text):
        yield int(text)
