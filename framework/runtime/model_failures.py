"""Failure classes of starts that failed for their files: weights or projector (06 §14.1 rows 1-7). Pure.

Called by runtime.failures.
"""

from __future__ import annotations

from framework.runtime.start_end import StartEnd, Told, describe_exit
from framework.runtime.start_signs import (
    NO_TENSOR_SPLIT,
    aborted_at_split,
    blames_projector,
    divides_tensors,
    said_of_projector,
)

IMAGE_ARCHITECTURES = frozenset(
    {
        "qwen_image",
        "flux",
        "sd1",
        "sdxl",
        "sd3",
        "aura",
        "hidream",
        "cosmos",
        "ltxv",
        "hyvid",
        "wan",
        "lumina2",
    }
)
OLLAMA_FOLDER, OLLAMA_CACHE, OLLAMA_ID = ".ollama", ".cache/ollama/", "ollama/"
OLLAMA_WORDS = ("key not found", "failed to load model")


def tensor_unsupported(end: StartEnd) -> Told | None:
    """The build cannot divide tensors of this model."""
    is_abort = divides_tensors(end.plan) and aborted_at_split(end)
    if not is_abort and not end.says(NO_TENSOR_SPLIT):
        return None
    said = end.line_with(NO_TENSOR_SPLIT, "split_axis")
    return (
        "tensor_unsupported",
        f"This llama-server build cannot divide tensors of this model over devices. It said: {said}",
        f'Set models.{end.plan.request.id}.placement.split = "layer", and remove --split-mode from'
        " engine_args if it is there.",
    )


def architecture_unknown(end: StartEnd) -> Told | None:
    """The build does not know the architecture: an image model, a file of Ollama's, or one that is newer."""
    name = end.unknown_architecture
    if name is None:
        return None
    if name in IMAGE_ARCHITECTURES:
        return (
            "image_model",
            f"{end.plan.main_gguf.name} is an image or video generation model ({name});"
            " llama-server serves text models.",
            "Name a text model in source.",
        )
    if _is_ollamas(end):
        return _ollama_model(end)
    return (
        "unsupported_architecture",
        f"This llama-server build does not know the model architecture '{name}'; the file itself is fine.",
        f"Use a newer llama.cpp build: set engines.{end.plan.request.engine.name}.binary to it.",
    )


def ollama_file(end: StartEnd) -> Told | None:
    """A file of Ollama's that this engine cannot load, for no reason that is known better."""
    return _ollama_model(end) if _is_ollamas(end) and end.says(*OLLAMA_WORDS) else None


def projector_failed(end: StartEnd) -> Told | None:
    """A start with a projector that failed, and then without one as well."""
    before = end.before_text_only
    if before is None:
        return None
    if before.is_hard and end.is_hard:
        return (
            "gpu_driver",
            f"The engine ended with {describe_exit(before.exit_code)}, and with"
            f" {describe_exit(end.exit_code)} without its projector: neither model nor projector is the"
            " cause, but most likely the GPU's driver or runtime.",
            "Update the driver. A second GPU that is not supported is often the cause: leave it out of the"
            " pool, on AMD with ROCR_VISIBLE_DEVICES.",
        )
    if blames_projector(before):
        return (
            "projector_mismatch",
            f"Projector and engine do not fit: {said_of_projector(before)} Without the projector"
            f" the engine ended with {describe_exit(end.exit_code)}.",
            "Get the projector that belongs to the model, or a newer llama.cpp build.",
        )
    return (
        "vision_start",
        f"The engine ended with {describe_exit(before.exit_code)} while a projector was loaded, and with"
        f" {describe_exit(end.exit_code)} without it.",
        "`paddock logs` shows what both starts said; try without projector, or a newer llama.cpp build.",
    )


def _ollama_model(end: StartEnd) -> Told:
    return (
        "ollama_model",
        f"{end.plan.main_gguf} is a file of Ollama's, and this engine cannot load it: some of them do not"
        " run under llama.cpp.",
        "Get the GGUF from its publisher, or serve it with Ollama.",
    )


def _is_ollamas(end: StartEnd) -> bool:
    path, named = end.plan.main_gguf, end.plan.request.source.repo or ""
    return OLLAMA_FOLDER in path.parts or OLLAMA_CACHE in path.as_posix() or named.startswith(OLLAMA_ID)
