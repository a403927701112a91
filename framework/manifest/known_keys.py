"""All keys that a manifest knows, and which of them an unknown one was probably meant to be (01 §2.1)."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from framework.manifest.key_paths import KeyPath, dotted
from framework.manifest.schema import ManifestTable
from framework.manifest.suggest import nearest
from framework.manifest.table import Table

NAME = "NAME"
"""Stands for the name of a model, pool, engine or policy in a path."""
LETTERS_OF_A_TYPO = 2

OTHER_WORDS = {
    "args": ("engine_args",),
    "cache_type_k": ("kv_cache.k",),
    "cache_type_v": ("kv_cache.v",),
    "chat_template": ("template",),
    "ctx": ("context",),
    "ctx_size": ("context",),
    "env": ("environment",),
    "command": ("binary",),
    "file": ("source",),
    "flash_attn": ("flash_attention",),
    "gpu_memory_utilization": ("fill",),
    "idle": ("unload_after",),
    "idle_timeout": ("unload_after",),
    "host": ("listen",),
    "lora": ("adapters",),
    "mmproj": ("projector",),
    "model": ("source",),
    "n_ctx": ("context",),
    "n_gpu_layers": ("placement.gpu_layers",),
    "ngl": ("placement.gpu_layers",),
    "n_parallel": ("slots",),
    "parallel": ("slots",),
    "path": ("source", "binary"),
    "port": ("listen",),
    "ttl": ("unload_after",),
}
"""Words of other programs for keys of ours."""


def table_class(annotation: Any) -> type[Table] | None:
    """The table class inside a field's type: itself, in an `X | None`, or in a list or dict of them."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return annotation
    return next((found for argument in get_args(annotation) if (found := table_class(argument))), None)


def keys_below(table: type[Table], path: KeyPath = ()) -> list[KeyPath]:
    """Paths of all keys of a table class and of the tables in it; names of tables are `NAME`."""
    paths: list[KeyPath] = []
    for name, field in table.model_fields.items():
        here: KeyPath = (*path, name)
        paths.append(here)
        inner = table_class(field.annotation)
        if inner is not None:
            named = str(field.annotation).startswith("dict[")
            paths += keys_below(inner, (*here, NAME) if named else here)
    return paths


@cache
def all_keys() -> tuple[KeyPath, ...]:
    """Every key of a manifest, in the order of the classes."""
    return tuple(keys_below(ManifestTable))


def meant(key: str, table: type[Table], path: KeyPath) -> str:
    """The key that `key`, in the table at `path`, was probably meant to be; empty when nothing is near.

    Order: (1) almost a key of the same table, (2) another program's word for one, (3) a key of another table,
    by its whole path, (4) less like a key of the same table, (5) almost a key of another table.
    """
    own = tuple(table.model_fields)
    spelled = key.lower().replace("-", "_")
    likely = nearest(spelled, own)
    if likely and _is_typo(spelled, likely):  # (1)
        return likely
    words = OTHER_WORDS.get(spelled, (spelled,))
    for word in words:
        if word.partition(".")[0] in own:  # (2)
            return word
    elsewhere = _nearest_path(words[0].rpartition(".")[2], path)
    if elsewhere or likely:  # (3), (4)
        return elsewhere or likely
    leaf = nearest(spelled, dict.fromkeys(str(one[-1]) for one in all_keys()))
    return _nearest_path(leaf, path) if _is_typo(spelled, leaf) else ""  # (5)


def _nearest_path(key: str, path: KeyPath) -> str:
    """The path of a key with this name that has most in common with `path`; empty when there is none."""
    found = [one for one in all_keys() if one[-1] == key]
    return dotted(max(found, key=lambda one: _shared(one, path))) if found else ""


def _is_typo(key: str, known: str) -> bool:
    long_enough = min(len(key), len(known)) > LETTERS_OF_A_TYPO
    return long_enough and abs(len(key) - len(known)) <= LETTERS_OF_A_TYPO and key[:1] == known[:1]


def _shared(one: KeyPath, path: KeyPath) -> int:
    """How many parts two paths have in common from the start, whatever the tables are named."""
    pairs = zip(one, path, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a not in (b, NAME)), min(len(one), len(path)))
