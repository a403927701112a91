"""One model file: what it holds, and the memory a launch would take, as `paddock inspect` says it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framework.api.inspect_query import MOST_LAYERS
from framework.api.inspection import Inspection, InspectSettings
from framework.api.model_files import FileView
from framework.api.shapes import inspect_json
from framework.dashboard.formats import share
from framework.dashboard.pages.files import FileRow, row_of
from framework.dashboard.pages.shell import Shell
from framework.dashboard.pages.waterfall import MemorySection, memory_section
from framework.engines.granted import CACHE_TYPES
from framework.manifest.number_values import LARGEST_BATCH, LARGEST_CONTEXT, MOST_SLOTS
from framework.values.reason import Reason
from framework.values.units_text import counted, size

MEMORY_ID = "file-memory"
# What the facts of 13 §3 are called here, and what they count.
FACTS: Mapping[str, tuple[str, str]] = {
    "architecture": ("Architecture", ""),
    "file_type": ("Quantisation", ""),
    "size_label": ("Size label", ""),
    "parameters": ("Parameters", "parameter"),
    "weight_bytes": ("Weights", "byte"),
    "tensors": ("Tensors", "tensor"),
    "layers": ("Layers", "layer"),
    "context_train": ("Trained context", "token"),
    "sliding_window": ("Sliding window", "token"),
    "windowed_layers": ("Layers with a window", "layer"),
    "heads": ("Attention heads", "head"),
    "kv_heads": ("KV heads", "head"),
    "key_length": ("Key length", "element"),
    "value_length": ("Value length", "element"),
    "embedding": ("Embedding", "element"),
    "feed_forward": ("Feed forward", "element"),
    "vocabulary": ("Vocabulary", "token"),
    "tokenizer": ("Tokenizer", ""),
    "experts": ("Experts", "expert"),
    "experts_used": ("Experts at once", "expert"),
    "latent_rank": ("Latent rank", "element"),
    "state_size": ("State size", "element"),
    "prediction_layers": ("Prediction layers", "layer"),
    "diffusion": ("Diffusion", ""),
    "vision": ("Sees pictures", ""),
    "audio": ("Hears sound", ""),
    "projection": ("Projects to", "element"),
}
TEMPLATE: Mapping[str, str] = {
    "present": "Chat template",
    "tools": "Tools",
    "reasoning": "Reasoning",
    "efforts": "Reasoning efforts",
    "always_on": "Reasoning always on",
    "preserve_thinking": "Can keep earlier reasoning",
}
# How a template is told to reason (02 §6).
REASONING = {
    "enable_thinking": "can be switched on and off",
    "enable_thinking_effort": "can be switched on and off, and by effort",
    "reasoning_effort": "by effort",
}


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
class InspectForm:
    """The settings that memory was worked out for. Texts are empty where nothing was chosen."""

    action: str
    context: int | None
    context_train: int | None
    slots: int
    cache: str
    caches: tuple[str, ...]
    ubatch: int | None
    offload: int | None
    device: str
    devices: tuple[str, ...]
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
    is_model: bool
    form: InspectForm
    memory: MemorySection
    json_url: str


@dataclass(frozen=True)
class FilePage:
    """Everything on `/files/ID`; without `detail` the fault of the file says why."""

    shell: Shell
    file: FileRow
    detail: FileDetail | None


def file_page(
    shell: Shell, view: FileView, settings: InspectSettings, devices: tuple[str, ...], json_url: str
) -> FilePage:
    """The page of a file; `devices` are the names that a form offers."""
    row = row_of(view.file)
    if view.inspection is None:
        return FilePage(shell, row, None)
    document = inspect_json(view.inspection)
    detail = FileDetail(
        facts=tuple(_facts(document["facts"])),
        template=tuple(_template(document["template"])),
        companions=_texts({name: path for name, path in document["companions"].items() if path}),
        files=tuple(Fact(entry["path"], size(entry["bytes"])) for entry in document["files"]),
        types=_types(view.inspection),
        reasons=view.inspection.reasons,
        is_model=view.file.role != "projector",
        form=_form(row, settings, devices),
        memory=memory_section(MEMORY_ID, view.inspection.memory),
        json_url=json_url,
    )
    return FilePage(shell, row, detail)


def _facts(facts: Mapping[str, Any]) -> Iterator[Fact]:
    """Those that the file holds; a plain no is not worth a line."""
    for key, (name, unit) in FACTS.items():
        value = facts[key]
        if value is None or value is False:
            continue
        if unit == "byte":
            yield Fact(name, size(value))
        else:
            yield Fact(name, counted(value, unit) if unit else _text(value))


def _template(template: Mapping[str, Any]) -> Iterator[Fact]:
    if not template["present"]:
        yield Fact(TEMPLATE["present"], "none in the file")
        return
    for key, name in TEMPLATE.items():
        if template[key] or key in ("tools", "reasoning"):
            value = template[key]
            yield Fact(name, REASONING.get(value, value) if key == "reasoning" else _text(value))


def _types(inspection: Inspection) -> tuple[TypeRow, ...]:
    weights = inspection.facts.weights
    return tuple(
        TypeRow(name, size_bytes, share(size_bytes, weights.total_bytes))
        for name, size_bytes in weights.bytes_by_type.items()
    )


def _form(row: FileRow, settings: InspectSettings, devices: tuple[str, ...]) -> InspectForm:
    key, value = settings.cache_types
    chosen = key if key == value else f"{key}:{value}"
    return InspectForm(
        action=row.url,
        context=settings.context,
        context_train=row.context_train,
        slots=settings.slots,
        cache=chosen,
        caches=tuple(dict.fromkeys((*CACHE_TYPES, chosen))),
        ubatch=settings.ubatch,
        offload=settings.gpu_layers,
        device=settings.device or "",
        devices=devices,
    )


def _texts(values: Mapping[str, Any]) -> tuple[Fact, ...]:
    return tuple(Fact(name.capitalize(), _text(value)) for name, value in values.items())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
