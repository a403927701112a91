"""All facts of a local model, as planning and `paddock inspect` use them: files, header, template, tensors.

Blocks for some 10 ms per file the first time and far below one after that; call it in a worker thread.
Refuses what no engine could load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from sys import getsizeof

from framework.models.companions import (
    Companion,
    Companions,
    drafter_fault,
    find_companions,
    find_projector,
    projector_fault,
)
from framework.models.file_set import FileSet, read_set
from framework.models.ggml_types import FILE_TYPES, type_name
from framework.models.gguf_fields import GgufHeader
from framework.models.gguf_tensors import TensorInfo, TensorResult, read_tensors
from framework.models.header_cache import HeaderCache, cache_directory
from framework.models.recent import cost_bytes
from framework.models.swa_pattern import with_window
from framework.models.template_caps import template_capabilities
from framework.values.engine import FileId
from framework.values.reason import Reason
from framework.values.reasoning import TemplateCapabilities
from framework.values.units_text import size


@dataclass(frozen=True)
class WeightSummary:
    """The tensors of all files of a model, summed up."""

    parameters: int = 0
    tensors: int = 0
    total_bytes: int = 0
    """Of tensors whose type is known."""
    bytes_by_type: Mapping[str, int] = field(default_factory=dict)
    """Largest first."""


@dataclass(frozen=True)
class ModelFacts:
    """What is known about a model before a server is started."""

    files: FileSet
    header: GgufHeader
    """Of the first file, with the window pattern that the engine will use."""
    template: TemplateCapabilities
    tensors: tuple[TensorInfo, ...]
    """Of all files, in their order. Offsets are those within each file."""
    weights: WeightSummary

    @property
    def quantisation(self) -> str | None:
        """The recipe by the header, such as `Q4_K_M`; None where it says nothing we know."""
        return FILE_TYPES.get(self.header.file_type) if self.header.file_type is not None else None


class FactsReader:
    """Reads facts and remembers them; one for a process."""

    def __init__(self, cache: HeaderCache | None = None) -> None:
        self._headers = HeaderCache(cache_directory()) if cache is None else cache

    def read(self, path: Path, *, model_id: str = "", template: str | None = None) -> ModelFacts:
        """Facts of the model that `path` belongs to; `template` stands in for that of the file.

        Raises `Refused` as `file_set.read_set` does.
        """
        files, results = read_set(path, self._headers.read)
        key = (path, files.files, model_id, template)
        facts: ModelFacts | None = self._headers.recent.get(key)
        if facts is None:
            facts = assemble(files, results, model_id=model_id, template=template)
            # Tensors may outlive the headers that they came with, so they count for themselves.
            size_bytes = cost_bytes(facts.header, facts.tensors) + getsizeof(template)
            self._headers.recent.put(key, facts, size_bytes)
        return facts

    def glance(self, path: Path) -> ModelFacts:
        """As `read`, for looking through many files: nothing of it stays in memory."""
        files, results = read_set(path, lambda file: self._headers.read(file, keep=False))
        return assemble(files, results)

    def companions(self, facts: ModelFacts) -> Companions:
        """Projector and drafter among the neighbours of the model's files."""
        return find_companions(facts.files.main, _as_read(facts), self.read_file)

    def projector_beside(self, facts: ModelFacts) -> Companion:
        """The projector among the neighbours of the model's files."""
        return find_projector(facts.files.main, _as_read(facts), self.read_file)

    def projector_fault(self, projector: Path, facts: ModelFacts) -> Reason | None:
        """Why this projector must not be launched with the model; None where nothing speaks against it."""
        return projector_fault(projector, self.read_file(projector), facts.files.main, _as_read(facts))

    def drafter_fault(self, drafter: ModelFacts, facts: ModelFacts, *, is_named: bool) -> Reason | None:
        """Why this drafter must not be used for the model; None where nothing speaks against it."""
        models = (drafter, facts)
        (path, own), (main, wanted) = ((one.files.main, _as_read(one)) for one in models)
        return drafter_fault(path, own, main, wanted, is_named=is_named)

    def read_file(self, path: Path) -> TensorResult:
        """Header and tensors of one file, such as a projector. Never raises."""
        try:
            status = path.stat()
        except OSError:
            return read_tensors(path)  # which says what is wrong
        return self._headers.read(FileId(path, status.st_size, status.st_mtime_ns))


def assemble(
    files: FileSet,
    results: Iterable[TensorResult],
    *,
    model_id: str = "",
    template: str | None = None,
) -> ModelFacts:
    """Facts from what was read of each file; nothing is opened."""
    read = tuple(results)
    header = with_window(read[0].header)
    tensors = tuple(tensor for result in read for tensor in result.tensors)
    if template is None and header.chat_template is None and header.template_bytes:
        files = replace(files, notes=(*files.notes, _large_template(files.main, header.template_bytes)))
    return ModelFacts(
        files=files,
        header=header,
        template=template_capabilities(header.chat_template if template is None else template, model_id),
        tensors=tensors,
        weights=summarise(tensors),
    )


def _large_template(path: Path, size_bytes: int) -> Reason:
    return Reason(
        "template_too_large",
        f"The chat template of {path.name} has {size(size_bytes)}, more than is looked into: whether the"
        " model thinks or calls tools is not known.",
        "Give the model a chat template of its own with `template`.",
        "warning",
        {"path": str(path), "template_bytes": size_bytes},
    )


def _as_read(facts: ModelFacts) -> TensorResult:
    return TensorResult("ok", header=facts.header)


def summarise(tensors: Iterable[TensorInfo]) -> WeightSummary:
    """Count and add up tensors."""
    count = parameters = 0
    by_type: dict[int, int] = {}
    for _, dims, type_id, _, size_bytes in tensors:
        count += 1
        parameters += prod(dims)
        by_type[type_id] = by_type.get(type_id, 0) + (size_bytes or 0)
    largest_first = sorted(by_type.items(), key=lambda item: -item[1])
    named = {type_name(type_id): total for type_id, total in largest_first}
    return WeightSummary(parameters, count, sum(by_type.values()), named)
