"""Paddock's inference engine: a model, its slots, and the thread that decodes for them.

The extension module is `paddock_native._core`; this package loads the libraries of llama.cpp that it needs.
"""

from paddock_native import _libraries

_folder = _libraries.load_libraries()

from paddock_native import _core  # noqa: E402  (needs the libraries)
from paddock_native._core import (  # noqa: E402
    ContextFacts,
    Device,
    Engine,
    EngineParams,
    GenerationParams,
    GrammarTrigger,
    LoadError,
    LoraParams,
    LoraView,
    MetadataOverride,
    ModelMeta,
    PromptProgress,
    ReasoningParams,
    Result,
    SamplingParams,
    SlotView,
    Snapshot,
    Task,
    TensorPlacement,
    Timings,
    TokenProbability,
    TokenRecord,
    Totals,
    library_info,
    list_devices,
    problems_of,
    set_log_verbosity,
)

if _folder is not None:
    _core._set_backend_folder(str(_folder))

__all__ = [
    "ContextFacts",
    "Device",
    "Engine",
    "EngineParams",
    "GenerationParams",
    "GrammarTrigger",
    "LoadError",
    "LoraParams",
    "LoraView",
    "MetadataOverride",
    "ModelMeta",
    "PromptProgress",
    "ReasoningParams",
    "Result",
    "SamplingParams",
    "SlotView",
    "Snapshot",
    "Task",
    "TensorPlacement",
    "Timings",
    "TokenProbability",
    "TokenRecord",
    "Totals",
    "library_info",
    "list_devices",
    "problems_of",
    "set_log_verbosity",
]
