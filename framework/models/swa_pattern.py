"""Which layers of a model attend to a sliding window only (02 §5), as the engine will have it. Pure.

The header says it for few models; for the others llama.cpp has it built in. Called by facts, after the header
was read. What is not found here is left to the memory model, which then says that it assumes. Other programs'
ideas of an architecture are not asked: what counts is which layers this engine gives a small cache, and a
pattern that it does not have would promise memory that it then takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from framework.models.gguf_fields import LAYER_LIMIT, GgufHeader

Entry = int | tuple[bool, ...]
"""A period, or one flag per layer that repeats; true = windowed."""

# As llama.cpp has them built in; `-` of a name is `_` here.
BUILT_IN: Mapping[str, Entry] = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gemma_embedding": 6,
    "gpt_oss": 2,
    "cohere2": 4,
    "exaone4": 4,
    "olmo2": 4,
    "llama4": 4,
    "afmoe": 4,
    "smallthinker": (False, True, True, True),
}
# Windows of the engine where the header names none, in tokens; EXAONE 4 has one in its largest size only.
BUILT_IN_WINDOWS = {"gemma2": 4096, "llama4": 8192}
EXAONE_4_LAYERS, EXAONE_4_WINDOW = 64, 4096


def with_window(header: GgufHeader) -> GgufHeader:
    """The header with the engine's own window and, where there is a window, a mask (02 §2.10 step 3)."""
    window = header.sliding_window if header.sliding_window is not None else _built_in_window(header)
    known = replace(header, sliding_window=window)
    if header.swa_mask is not None or not window or header.is_diffusion:
        return known
    entry = built_in_pattern(header.architecture, header.n_layers)
    return known if entry is None else replace(known, swa_mask=mask_of(entry, header.n_layers or 0))


def built_in_pattern(architecture: str | None, n_layers: int | None) -> Entry | None:
    """The pattern of an architecture; None where the engine has none for it."""
    if not architecture or not n_layers or n_layers > LAYER_LIMIT:
        return None
    return BUILT_IN.get(architecture.replace("-", "_"))


def mask_of(entry: Entry, n_layers: int) -> tuple[bool, ...]:
    """One flag per layer. A period leaves every period-th layer without a window."""
    if isinstance(entry, int):
        return tuple((layer + 1) % entry != 0 for layer in range(n_layers))
    return tuple(entry[layer % len(entry)] for layer in range(n_layers))


def _built_in_window(header: GgufHeader) -> int | None:
    if header.architecture == "exaone4" and header.n_layers == EXAONE_4_LAYERS:
        return EXAONE_4_WINDOW
    return BUILT_IN_WINDOWS.get(header.architecture or "")
