"""One model file: what it holds, and the memory a launch would take, as `paddock inspect` says it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.api.inputs import LONGEST_SHOWN
from framework.api.inspect_notes import InspectSettings
from framework.api.inspect_query import MOST_LAYERS
from framework.api.inspection import Inspection
from framework.api.model_files import FileView
from framework.api.named_facts import named_abilities, named_facts, plain_text
from framework.api.shapes import inspect_json
from framework.dashboard.formats import share
from framework.dashboard.pages.files import FileRow, row_of
from framework.dashboard.pages.shell import Shell
from framework.dashboard.pages.waterfall import MemorySection, memory_section
from framework.manifest.number_values import LARGEST_BATCH, LARGEST_CONTEXT, MOST_SLOTS
from framework.values.cache_types import CACHE_TYPES
from framework.values.reason import Reason
from framework.values.units_text import size

MEMORY_ID = "file-memory"
NOT_WORKED_OUT = "Not worked out: a setting above makes no sense."


@dataclass(frozen=True)
class Fact:
    """A name and what there is to say, with its unit."""

    name: str
    text: str


@dataclass(frozen=True)
class TypeRow:
    """Weights of one type; `part_share` is of all weights."""

    name: str
    size_bytes: int
    part_share: float


@dataclass(frozen=True)
class AskedSettings:
    """The settings of the address, as texts, and what they come to; the defaults where there are `faults`."""

    settings: InspectSettings
    texts: Mapping[str, str]
    faults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class InspectForm:
    """The settings as they were asked for. Texts are empty where nothing was chosen."""

    action: str
    context: str
    context_train: int | None
    slots: str
    cache: str
    caches: tuple[str, ...]
    ubatch: str
    offload: str
    device: str
    devices: tuple[str, ...]
    faults: Mapping[str, str]
    """Why a setting makes no sense, by the name of its field."""
    most_context: int = LARGEST_CONTEXT
    most_slots: int = MOST_SLOTS
    most_ubatch: int = LARGEST_BATCH
    most_layers: int = MOST_LAYERS


@dataclass(frozen=True)
class FileDetail:
    """What is in a file that can be read. `is_model`: a launch of it alone makes sense."""

    facts: tuple[Fact, ...]
    template: tuple[Fact, ...]
    companions: tuple[Fact, ...]
    files: tuple[Fact, ...]
    types: tuple[TypeRow, ...]
    reasons: tuple[Reason, ...]
    """Of the file and what stands beside it."""
    is_model: bool
    form: InspectForm
    memory: MemorySection
    memory_reasons: tuple[Reason, ...]
    """Of the settings that memory was worked out for."""
    json_url: str


@dataclass(frozen=True)
class FilePage:
    """Everything on `/files/ID`; without `detail` the fault of the file says why."""

    shell: Shell
    file: FileRow
    detail: FileDetail | None


def file_page(
    shell: Shell, view: FileView, asked: AskedSettings, devices: tuple[str, ...], json_url: str
) -> FilePage:
    """The page of a file; `devices` are the names that a form offers."""
    row = row_of(view.file)
    if view.inspection is None:
        return FilePage(shell, row, None)
    document = inspect_json(view.inspection)
    detail = FileDetail(
        facts=tuple(Fact(*told) for told in named_facts(document["facts"])),
        template=tuple(Fact(*told) for told in named_abilities(document["template"])),
        companions=_texts({name: path for name, path in document["companions"].items() if path}),
        files=tuple(Fact(entry["path"], size(entry["bytes"])) for entry in document["files"]),
        types=_types(view.inspection),
        reasons=view.inspection.file_reasons,
        is_model=view.file.role != "projector",
        form=_form(row, asked, devices),
        memory=_memory(view.inspection, asked.faults),
        memory_reasons=() if asked.faults else view.inspection.memory_reasons,
        json_url=json_url,
    )
    return FilePage(shell, row, detail)


def _types(inspection: Inspection) -> tuple[TypeRow, ...]:
    weights = inspection.facts.weights
    return tuple(
        TypeRow(name, size_bytes, share(size_bytes, weights.total_bytes))
        for name, size_bytes in weights.bytes_by_type.items()
    )


def _memory(inspection: Inspection, faults: Mapping[str, str]) -> MemorySection:
    if faults:
        return MemorySection(MEMORY_ID, "", (), (), NOT_WORKED_OUT)
    return memory_section(MEMORY_ID, inspection.memory)


def _form(row: FileRow, asked: AskedSettings, devices: tuple[str, ...]) -> InspectForm:
    key, value = asked.settings.cache_types
    chosen = key if key == value else f"{key}:{value}"
    texts = {name: text[:LONGEST_SHOWN] for name, text in asked.texts.items()}
    return InspectForm(
        action=row.url,
        context=texts.get("context", ""),
        context_train=row.context_train,
        slots=texts.get("slots") or str(asked.settings.slots),
        cache=chosen,
        caches=tuple(dict.fromkeys((*CACHE_TYPES, chosen))),
        ubatch=texts.get("ubatch", ""),
        offload=texts.get("offload", ""),
        device=texts.get("device", ""),
        devices=devices,
        faults=asked.faults,
    )


def _texts(values: Mapping[str, Any]) -> tuple[Fact, ...]:
    return tuple(Fact(name.capitalize(), plain_text(value)) for name, value in values.items())
