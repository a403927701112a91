"""Which files of a repository are a variant of its model (02 §4). Pure, over lists of repository paths.

Called by the hub client for live listings and for snapshots of its cache. Where more than one file set fits,
nothing is chosen: a silent pick among many sizes is a guess about somebody's memory and bandwidth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from framework.models.file_names import (
    base_name,
    is_big_endian,
    is_companion,
    is_gguf,
    is_helper,
    label,
    other_shards,
    repo_path,
    shard,
)
from framework.values.reason import Failure, Reason, Refused

DEFAULT_LABEL = "q4_k_m"
SHOWN = 12
MOST_CANDIDATES = 200
"""As evidence. No model has more variants; a data set that is called a model may have more files."""
SEPARATORS = "-_."


@dataclass(frozen=True)
class VariantFiles:
    """A complete variant: the file that is given to the engine, its other shards, its label."""

    main: str
    shards: tuple[str, ...] = ()
    label: str | None = None
    notes: tuple[Reason, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, `main` first."""
        return (self.main, *self.shards)


def model_files(paths: Iterable[str], variant: str | None = None) -> list[str]:
    """What can be main weights, sorted: no companions, helpers, or twins of the other byte order."""
    return sorted(
        path
        for path in {repo_path(path) for path in paths}
        if is_gguf(path)
        and not is_companion(path)
        and not is_helper(path)
        and not is_big_endian(path, variant)
    )


def variant_paths(paths: Iterable[str], variant: str | None) -> list[str]:
    """The files of a variant, sorted; all model files without one (02 §4.1).

    A label decides first, then a whole last part of the name, then any part of the path.
    """
    key = (variant or "").strip().lower()
    candidates = model_files(paths, variant)
    if not key:
        return candidates
    ways = (_labelled, _ending, _containing)
    return next((found for way in ways if (found := way(candidates, key))), [])


def file_sets(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """The files grouped into sets, each sorted, its first file in front. Sets may be incomplete."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path in sorted(paths):
        part = shard(path)
        groups.setdefault((part.prefix, part.total) if part else (path, ""), []).append(path)
    return [tuple(group) for group in groups.values()]


def complete_sets(paths: Iterable[str]) -> list[VariantFiles]:
    """Every complete variant of a repository: what there is to choose from, in the order of the names."""
    return [_variant(files) for files in file_sets(model_files(paths)) if not missing_shards(files)]


def choose_variant(paths: Sequence[str], variant: str | None = None, *, repo: str = "") -> VariantFiles:
    """The files of the variant asked for; without one, the only variant or the usual one (02 §4.2-4.4).

    Raises `Refused`: `variant_unclear` with the candidates where none or several fit, `incomplete_set`.
    """
    key = (variant or "").strip()
    sets = file_sets(variant_paths(paths, variant))
    if not key and len(sets) > 1:
        sets = [files for files in sets if _label_key(files[0]) == DEFAULT_LABEL] or sets
    if len(sets) != 1:
        raise Refused(Failure(_unclear(repo, key, sets, model_files(paths))))
    (files,) = sets
    if missing := missing_shards(files):
        raise Refused(Failure(_incomplete(repo, files[0], missing)))
    chosen = _variant(files)
    lowered = key.lower()
    if lowered in ("", _label_key(files[0])) or files[0] in _ending(model_files(paths, key), lowered):
        return chosen
    return replace(chosen, notes=(_by_part(key, chosen),))


def missing_shards(files: Sequence[str]) -> list[int]:
    """Which indices a set lacks; empty for a complete set and for a single file."""
    first = shard(files[0])
    if first is None:
        return []
    present = {part.index for path in files if (part := shard(path)) is not None}
    return [index for index in range(1, int(first.total) + 1) if index not in present] or sorted(
        index for index in present if not 1 <= index <= int(first.total)
    )


def _variant(files: Sequence[str]) -> VariantFiles:
    return VariantFiles(files[0], other_shards(files, files[0]), label(files[0]))


def _labelled(candidates: list[str], key: str) -> list[str]:
    return [path for path in candidates if _label_key(path) == key]


def _ending(candidates: list[str], key: str) -> list[str]:
    """Files called `<what all names begin with><key>`: `Compact` is `M-Compact`, not `M-I-Compact`."""
    stems = {path: _stem(path).lower() for path in candidates}
    # What the first and the last in order begin with, all between them do.
    first, last = min(stems.values(), default=""), max(stems.values(), default="")
    found = []
    for path, stem in stems.items():
        before = stem.removesuffix(key)
        begins_all = first.startswith(before) and last.startswith(before)
        if before != stem and begins_all and (not before or before[-1] in SEPARATORS):
            found.append(path)
    return found


def _containing(candidates: list[str], key: str) -> list[str]:
    part = re.compile(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])")
    return [path for path in candidates if part.search(path.lower())]


def _label_key(path: str) -> str:
    return (label(path) or "").lower()


def _stem(path: str) -> str:
    """Base name without shard part and extension."""
    part = shard(base_name(path))
    return part.prefix if part else base_name(path).rpartition(".")[0]


def _unclear(repo: str, key: str, sets: list[tuple[str, ...]], all_files: list[str]) -> Reason:
    place = repo or "the repository"
    offered = _names(sets or file_sets(all_files))
    if not all_files:
        message = f"There is no model file in {place}."
    elif key and not sets:
        message = f"There is no variant {key!r} in {place}; there are: {_listed(offered)}."
    elif key:
        message = f"{key!r} fits several variants in {place}: {_listed(offered)}."
    else:
        message = f"Several variants are in {place}, and none is named: {_listed(offered)}."
    return Reason(
        "variant_unclear",
        message,
        "Name one of them behind a colon, or a file." if all_files else "Name a repository with GGUF files.",
        "error",
        {"repo": repo, "variant": key or None, "candidates": offered[:MOST_CANDIDATES]},
    )


def _names(sets: Iterable[Sequence[str]]) -> list[str]:
    """What to ask for: the label where it is the only one of its kind, else the file."""
    firsts = [files[0] for files in sets]
    labels = [label(path) for path in firsts]
    times = Counter(labels)
    return [own if own and times[own] == 1 else path for own, path in zip(labels, firsts, strict=True)]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _incomplete(repo: str, main: str, missing: list[int]) -> Reason:
    numbers = [str(index) for index in missing]
    return Reason(
        "incomplete_set",
        f"The set of {main} in {repo or 'the repository'} is not complete: shard {_listed(numbers)} is "
        "missing or impossible.",
        "Choose another variant, or ask the owner of the repository to upload the rest.",
        "error",
        {"repo": repo, "path": main, "missing": missing[:SHOWN], "missing_count": len(missing)},
    )


def _by_part(key: str, chosen: VariantFiles) -> Reason:
    return Reason(
        "variant_by_part",
        f"No variant is called {key!r}; {chosen.label or chosen.main} is the only one that contains it.",
        f"Ask for {chosen.label} to be exact." if chosen.label else "",
        "info",
        {"asked": key, "label": chosen.label, "path": chosen.main},
    )
