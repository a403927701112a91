"""Which layers of a model attend to a sliding window only (02 §5). Pure: sources come in as functions.

The header says it for few models; for the others llama.cpp has it built in. Called by facts, after the header
was read; what is not found here is left to the memory model, which then assumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from framework.models.file_names import repo_of_url
from framework.models.gguf_fields import LAYER_LIMIT, GgufHeader, OriginHints

Entry = int | tuple[bool, ...]
"""A period, or one flag per layer that repeats; true = windowed."""
Tier = Literal["header", "stored", "built_in", "introspection", "hub"]

# As llama.cpp has them built in, by the architecture's name in `transformers`.
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
    "smallthinker": (False, True, True, True),
}
# Windows of the engine where the header names none, in tokens; EXAONE 4 has one in its largest size only.
BUILT_IN_WINDOWS = {"gemma2": 4096, "llama4": 8192}
EXAONE_4_LAYERS, EXAONE_4_WINDOW = 64, 4096
FULL = "full"


@dataclass(frozen=True)
class PatternSources:
    """Where a pattern may come from besides header and table; a source that is not there is skipped.

    `stored` is what was found earlier, by architecture. `introspect` answers for an architecture, `config`
    for a repository (its `config.json`, None for any fault); both may block, and `config` uses the network.
    """

    stored: Mapping[str, object] = field(default_factory=dict)
    introspect: Callable[[str], object] | None = None
    config: Callable[[str], Mapping[str, Any] | None] | None = None


@dataclass(frozen=True)
class FoundPattern:
    """An entry and where it came from. What the slow tiers found is worth storing."""

    entry: Entry
    tier: Tier

    @property
    def worth_storing(self) -> bool:
        """Whether finding it again would cost time."""
        return self.tier in ("introspection", "hub")


def with_window(header: GgufHeader, sources: PatternSources | None = None) -> GgufHeader:
    """The header with the engine's own window and, where there is a window, a mask (02 §2.10 step 3)."""
    window = header.sliding_window if header.sliding_window is not None else _built_in_window(header)
    known = replace(header, sliding_window=window)
    if header.swa_mask is not None or not window or header.is_diffusion:
        return known
    found = find_pattern(header.architecture, header.n_layers, header.origin, sources)
    return known if found is None else replace(known, swa_mask=mask_of(found.entry, header.n_layers or 0))


def find_pattern(
    architecture: str | None,
    n_layers: int | None,
    origin: OriginHints,
    sources: PatternSources | None = None,
) -> FoundPattern | None:
    """The pattern of an architecture, from the first tier that has one (02 §5.4)."""
    if not architecture or not n_layers or n_layers > LAYER_LIMIT:
        return None
    given = sources or PatternSources()
    names = spellings(architecture)
    tiers: list[tuple[Tier, Iterable[object]]] = [
        ("stored", (given.stored.get(name) for name in names)),
        ("built_in", (BUILT_IN.get(name) for name in names)),
        ("introspection", map(given.introspect, names) if given.introspect else ()),
        ("hub", map(_configured(given.config), repositories(origin)) if given.config else ()),
    ]
    for tier, answers in tiers:
        for answer in answers:
            if (entry := entry_of(answer)) is not None:
                return FoundPattern(entry, tier)
    return None


def spellings(architecture: str) -> tuple[str, ...]:
    """GGUF says `gpt-oss` where `transformers` says `gpt_oss`."""
    forms = (architecture, architecture.replace("-", "_"), architecture.replace("_", "-"))
    return tuple(dict.fromkeys(forms))


def entry_of(value: object) -> Entry | None:
    """A value as an entry (02 §5.2). A boolean is none: `true` would pass for the period 1."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value > 0 else None
    if isinstance(value, list | tuple) and 0 < len(value) <= LAYER_LIMIT:
        return tuple(bool(flag) for flag in value)
    return None


def mask_of(entry: Entry, n_layers: int) -> tuple[bool, ...]:
    """One flag per layer. A period leaves every period-th layer without a window."""
    if isinstance(entry, int):
        return tuple((layer + 1) % entry != 0 for layer in range(n_layers))
    return tuple(entry[layer % len(entry)] for layer in range(n_layers))


def entry_of_layer_types(types: object) -> Entry | None:
    """The entry of a list such as `["sliding_attention", "full_attention"]` (02 §5.3)."""
    if not isinstance(types, Sequence) or isinstance(types, str) or not 0 < len(types) <= LAYER_LIMIT:
        return None
    flags = tuple(FULL not in str(layer_type).lower() for layer_type in types)
    return next((n for n in range(1, len(flags) + 1) if mask_of(n, len(flags)) == flags), flags)


def entry_of_config(config: Mapping[str, Any]) -> Entry | None:
    """The entry in a `config.json` of `transformers`, that of the text part where there are several."""
    text = config.get("text_config")
    own: Mapping[str, Any] = text if isinstance(text, Mapping) else config
    period = own.get("sliding_window_pattern")
    if isinstance(period, int) and (entry := entry_of(period)) is not None:
        return entry
    return entry_of_layer_types(own.get("layer_types"))


def repositories(origin: OriginHints) -> tuple[str, ...]:
    """Repositories that may hold the configuration of a model, in order (02 §5.6)."""
    candidates = (
        origin.hf_repository,
        repo_of_url(origin.source_url),
        repo_of_url(origin.source_repo_url),
        repo_of_url(origin.base_repo_url),
        _joined(origin.base_organization, origin.base_name),
        _joined(origin.organization, origin.basename),
    )
    return tuple(dict.fromkeys(repo for repo in candidates if repo))


def _joined(owner: str | None, name: str | None) -> str | None:
    parts = [(part or "").strip().replace(" ", "-") for part in (owner, name)]
    return "/".join(parts) if all(parts) else None


def _configured(
    read: Callable[[str], Mapping[str, Any] | None],
) -> Callable[[str], Entry | None]:
    def entry(repo: str) -> Entry | None:
        config = read(repo)
        return None if config is None else entry_of_config(config)

    return entry


def _built_in_window(header: GgufHeader) -> int | None:
    if header.architecture == "exaone4" and header.n_layers == EXAONE_4_LAYERS:
        return EXAONE_4_WINDOW
    return BUILT_IN_WINDOWS.get(header.architecture or "")
