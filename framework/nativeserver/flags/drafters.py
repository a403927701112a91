"""Flags of the groups "draft model" and "n-grams": the drafters, each with its own settings (11 §5-6)."""

from __future__ import annotations

from framework.nativeserver.flags.context import TYPE, TYPES_ALLOWED
from framework.nativeserver.flags.device import ALL_LAYERS, COUNT, LAYERS
from framework.nativeserver.flags.flag import Flag, valued
from framework.nativeserver.flags.pairs import DEVICES
from framework.nativeserver.flags.values import Value, text_value, whole

MODEL_TARGET = "speculation.model.path"
MOD_TARGET = "speculation.mod."
MOD_DEFAULTS = {"match": 24, "min": 48, "max": 64}
LENGTH = whole(1, 1024)
FILE_NAME = text_value("FNAME")


def _layers(text: str) -> int:
    """Nothing is fitted for a drafter, which is small: auto means all of it."""
    layers = LAYERS.read(text)
    return ALL_LAYERS if layers is None else int(layers)


MODEL: tuple[Flag, ...] = (
    valued(
        "--spec-draft-model -md --model-draft",
        MODEL_TARGET,
        FILE_NAME,
        "model that drafts; without --spec-type it means draft-simple",
        env="SPEC_DRAFT_MODEL",
    ),
    valued(
        "--spec-draft-ngl -ngld --gpu-layers-draft --n-gpu-layers-draft",
        "speculation.model.n_gpu_layers",
        Value("N", _layers),
        "layers of it on devices: a number, 'auto' or 'all', which both are all",
        default="auto",
        env="N_GPU_LAYERS_DRAFT",
    ),
    valued(
        "--spec-draft-device -devd --device-draft",
        "speculation.model.devices",
        DEVICES,
        "devices for it, by the names of --list-devices",
        default="as --device",
    ),
    valued(
        "--spec-draft-type-k -ctkd --cache-type-k-draft",
        "speculation.model.cache_type_k",
        TYPE,
        f"type of K in its KV cache; {TYPES_ALLOWED}",
        default="f16",
        env="SPEC_DRAFT_CACHE_TYPE_K",
    ),
    valued(
        "--spec-draft-type-v -ctvd --cache-type-v-draft",
        "speculation.model.cache_type_v",
        TYPE,
        f"type of V in its KV cache; {TYPES_ALLOWED}",
        default="f16",
        env="SPEC_DRAFT_CACHE_TYPE_V",
    ),
    valued(
        "--spec-draft-threads -td --threads-draft",
        "speculation.model.n_threads",
        COUNT,
        "threads for its steps",
        default="as --threads",
    ),
    valued(
        "--spec-draft-threads-batch -tbd --threads-batch-draft",
        "speculation.model.n_threads_batch",
        COUNT,
        "threads for its prompts",
        default="as --threads-batch",
    ),
)


def _mod(name: str, attribute: str, text: str) -> Flag:
    default = str(MOD_DEFAULTS[attribute])
    return valued(f"--spec-ngram-mod-{name}", MOD_TARGET + attribute, LENGTH, text, default=default)


def _lengths(kind: str, group: str) -> tuple[Flag, ...]:
    def length(name: str, attribute: str, default: int, text: str) -> Flag:
        target = f"speculation.{group}.{attribute}"
        return valued(f"--spec-ngram-{kind}-{name}", target, LENGTH, f"{kind}: {text}", default=str(default))

    return (
        length("size-n", "n", 12, "tokens of the pattern that is looked for"),
        length("size-m", "m", 48, "tokens of a draft"),
        length("min-hits", "min_hits", 1, "times that a pattern must have come up"),
    )


NGRAMS: tuple[Flag, ...] = (
    _mod("n-match", "match", "mod: tokens that are looked up; fewer than 16 find too much"),
    _mod("n-min", "min", "mod: shortest draft that is of use"),
    _mod("n-max", "max", "mod: longest draft"),
    *_lengths("simple", "simple"),
    *_lengths("map-k", "map_k"),
    *_lengths("map-k4v", "map_k4v"),
    valued(
        "-lcs --lookup-cache-static",
        "speculation.lookup_static",
        FILE_NAME,
        "cache: file of n-grams that is only read",
    ),
    valued(
        "-lcd --lookup-cache-dynamic",
        "speculation.lookup_dynamic",
        FILE_NAME,
        "cache: file of n-grams of earlier replies",
    ),
)
