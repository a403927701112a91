"""Whether the files of a split model belong together, by what their headers say (02 §4.3). Pure.

File names count from 1, headers (`split.no`) from 0; only the first file describes the model; each says how
many tensors the whole set has. Called by file_set once all files were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from framework.models.ggml_types import GGML_TYPES, type_name
from framework.models.gguf_tensors import TensorResult
from framework.values.reason import Reason

PLAIN_TYPES = frozenset(number for number, known in GGML_TYPES.items() if known.block_elements == 1)
BLOCK = "blk."


def set_fault(paths: Sequence[Path], results: Sequence[TensorResult]) -> Reason | None:
    """Why an engine would refuse the set, though each file may be in order; None where it would not."""
    main = results[0].header
    if len(paths) == 1 and (main.split_count or 0) > 1:
        return _glued(paths[0], main.split_count or 0)
    if len(paths) == 1 or any(result.status != "ok" for result in results):
        return None
    for index, (path, result) in enumerate(zip(paths, results, strict=True)):
        if why := _misplaced(index, len(paths), result, results[0]):
            return _inconsistent(path, why, {"shard": index + 1})
    return _tensor_fault(paths, results)


def set_notes(paths: Sequence[Path], results: Sequence[TensorResult]) -> tuple[Reason, ...]:
    """What is odd about a set that an engine would load."""
    if len(paths) == 1:
        return ()
    own = [_weight_types(result) for result in results]
    for path, types in list(zip(paths, own, strict=True))[1:]:
        if own[0] and types and not own[0] & types:
            return (_mixed(paths[0], own[0], path, types),)
    return ()


def _misplaced(index: int, count: int, result: TensorResult, first: TensorResult) -> str:
    """Why a file cannot be number `index` of a set of `count`, as a clause; empty where it can."""
    header = result.header
    if header.split_count is not None and header.split_count != count:
        return f"it belongs to a set of {header.split_count} files, not {count}"
    if header.split_number is not None and header.split_number != index:
        return f"its header calls it number {header.split_number + 1} of the set"
    if header.architecture and first.header.architecture not in (None, header.architecture):
        return f"it is of the architecture {header.architecture!r}, the first file of another"
    return ""


def _tensor_fault(paths: Sequence[Path], results: Sequence[TensorResult]) -> Reason | None:
    names = Counter(tensor.name for result in results for tensor in result.tensors)
    name, times = max(names.items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        return _inconsistent(paths[0], f"the tensor {name!r} is in {times} places of it", {"tensor": name})
    declared, found = results[0].header.split_tensors, names.total()
    if declared is not None and declared != found:
        why = f"its files hold {found} tensors, where {declared} are declared"
        return _inconsistent(paths[0], why, {"tensors": found, "declared": declared})
    return None


def _weight_types(result: TensorResult) -> frozenset[int]:
    """Quantised types of what is in the layers; embeddings and output often differ from it."""
    layers = (tensor for tensor in result.tensors if tensor.name.startswith(BLOCK))
    return frozenset(tensor.type for tensor in layers) - PLAIN_TYPES


def _glued(path: Path, count: int) -> Reason:
    return Reason(
        "bad_model_file",
        f"{path} declares that it is one of {count} parts, but it is a single file by its name.",
        "Keep the parts as they were uploaded, or join them with llama-gguf-split --merge; cat cannot do it.",
        "error",
        {"path": str(path), "status": "unmerged_split", "split_count": count},
    )


def _inconsistent(path: Path, why: str, evidence: dict[str, object]) -> Reason:
    return Reason(
        "shard_set_inconsistent",
        f"The files of the set of {path} do not belong together: {why}.",
        "Get all files of one variant again, from the same place.",
        "error",
        {"path": str(path), **evidence},
    )


def _mixed(main: Path, main_types: frozenset[int], path: Path, types: frozenset[int]) -> Reason:
    return Reason(
        "shards_mixed",
        f"{path.name} is quantised as {_listed(types)}, {main.name} as {_listed(main_types)}; "
        "it may be of another variant.",
        "Get all files of one variant again, from the same place.",
        "warning",
        {"path": str(path), "main": str(main)},
    )


def _listed(types: frozenset[int]) -> str:
    return ", ".join(type_name(number) for number in sorted(types))
