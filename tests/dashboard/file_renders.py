"""The pages of model files in every state worth seeing, rendered without a server or a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from framework.api.inspect_notes import InspectSettings
from framework.api.inspection import Inspection
from framework.api.model_files import FilesAnswer, FileView, ModelFile
from framework.dashboard.pages.file import AskedSettings, FilePage, file_page
from framework.dashboard.pages.files import FilesPage, files_page
from framework.dashboard.pages.shell import Shell
from framework.models.companions import Companions
from framework.models.facts import ModelFacts, WeightSummary
from framework.models.file_set import FileSet
from framework.models.gguf_fields import GgufHeader
from framework.values.engine import FileId
from framework.values.plan import FitPlan
from framework.values.reason import Reason
from framework.values.reasoning import TemplateCapabilities
from tests.dashboard import fits
from tests.dashboard.samples import MIB

FOLDER = Path("/models")
FAULT = Reason("bad_model_file", "/models/x.gguf is cut off: 5 bytes are missing.", "Get it again.", "error")
TINY = ModelFile(
    "0123456789abcdef",
    FOLDER / "tiny-Q4_K_M.gguf",
    98 * MIB,
    1,
    "model",
    ("smollm2", "other"),
    "Tiny",
    "llama",
    "Q4_K_M",
    8192,
    None,
    is_read=True,
)
SHARDS = replace(TINY, id="1" * 16, path=FOLDER / "big-00001-of-00002.gguf", parts=2, used_by=(), title=None)
PROJECTOR = replace(TINY, id="2" * 16, path=FOLDER / "mmproj.gguf", role="projector", context_train=None)
BROKEN = ModelFile("3" * 16, FOLDER / "x.gguf", 5, 1, "model", fault=FAULT, is_read=True)
UNREAD = ModelFile("4" * 16, FOLDER / "later.gguf", 5, 1, "model")


def inspection_of(file: ModelFile, text: str = "", memory: FitPlan = fits.ON_HOST) -> Inspection:
    """What a look into a file finds; `text` stands wherever the file holds one."""
    header = GgufHeader(
        architecture=text or "llama",
        name=text or "Tiny",
        size_label=text or None,
        tokenizer_model=text or "gpt2",
        chat_template=text or "{% if tools %}",
        context_length=8192,
        n_layers=30,
        is_diffusion=bool(text),
    )
    identities = tuple(FileId(file.path.with_name(f"{n}.gguf"), 5, 1) for n in range(file.parts))
    template = TemplateCapabilities(True, "reasoning_effort", effort_levels=("low", "high"))
    weights = WeightSummary(134_515_008, 272, 92 * MIB, {"Q4_K": 63 * MIB, text or "Q8_0": 29 * MIB})
    beside = FOLDER / (text.replace("/", "_") or "mmproj.gguf")
    reasons = (Reason("companion_unfit", text or "It does not fit.", text, "warning", {"path": text}),)
    facts = ModelFacts(FileSet(file.path, (), identities), header, template, (), weights)
    return Inspection(facts, Companions(beside, None, reasons if text else ()), memory)


def list_page(shell: Shell, *files: ModelFile, complete: bool = True) -> FilesPage:
    """The page of a list."""
    return files_page(shell, FilesAnswer((FOLDER,), files, complete))


def view_page(
    shell: Shell,
    file: ModelFile,
    inspection: Inspection | None = None,
    settings: InspectSettings = InspectSettings(),  # noqa: B008 - a frozen value
    faults: Mapping[str, str] | None = None,
) -> FilePage:
    """The page of a file."""
    asked = AskedSettings(settings, texts_of(settings), faults or {})
    return file_page(shell, FileView(file, inspection), asked, ("CUDA0", "CPU"), "/api/v1/files/x/inspect")


def texts_of(settings: InspectSettings) -> dict[str, str]:
    """The settings as an address has them."""
    given = {
        "context": settings.context,
        "slots": settings.slots,
        "ubatch": settings.ubatch,
        "offload": settings.gpu_layers,
        "device": settings.device,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def file_pages(shell: Shell) -> Iterator[tuple[str, str, object]]:
    """Name, template and value of each."""
    yield "files", "files.html", list_page(shell, TINY, SHARDS, PROJECTOR, BROKEN, UNREAD, complete=False)
    yield "files-empty", "files.html", list_page(shell)
    asked = InspectSettings(4096, 4, ("q8_0", "f16"), 256, gpu_layers=3, device="CUDA0")
    yield "file", "file.html", view_page(shell, TINY, inspection_of(TINY, memory=fits.ON_TWO), asked)
    bare = replace(inspection_of(SHARDS), companions=Companions())
    header = replace(bare.facts.header, chat_template=None)
    bare = replace(bare, facts=replace(bare.facts, header=header), memory=FitPlan())
    unnamed = replace(SHARDS, context_train=None)
    yield "file-shards", "file.html", view_page(shell, unnamed, bare)
    yield "file-projector", "file.html", view_page(shell, PROJECTOR, inspection_of(PROJECTOR))
    yield "file-broken", "file.html", view_page(shell, BROKEN)
    odd = replace(bare, memory_reasons=(Reason("no_such_device", "No GPU0.", "Name another.", "warning"),))
    yield "file-odd-settings", "file.html", view_page(shell, TINY, odd)
    yield "file-senseless", "file.html", view_page(shell, TINY, bare, asked, {"context": "context: no."})


def hostile_file_pages(shell: Shell, text: str) -> Iterator[tuple[str, str, object]]:
    """The same with a hostile text wherever a file or its name can hold one."""
    reason = Reason("a_code", text, text, "error", {text: text})
    name = Path(f"/{text.replace('/', '_')}.gguf")
    file = replace(TINY, path=name, title=text, architecture=text, quantisation=text, used_by=(text,))
    yield "files", "files.html", list_page(shell, file, replace(file, fault=reason))
    memory = fits.fit_of(fits.line(text, text, MIB), fits=None)
    settings = InspectSettings(device=text)
    inspection = replace(inspection_of(file, text, memory), memory_reasons=(reason,))
    yield "file", "file.html", view_page(shell, file, inspection, settings)
    yield "file-senseless", "file.html", view_page(shell, file, inspection, settings, {"context": text})
    yield "file-broken", "file.html", view_page(shell, replace(file, fault=reason))
