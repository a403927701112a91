"""Engine references, binaries and what a binary was found to be able to do (06 §0, §4.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

EngineKind = Literal["llama-server", "native"]
Origin = Literal["manifest", "env", "managed", "path", "bundled"]


@dataclass(frozen=True)
class EngineRef:
    """One `[engines.NAME]` table. At most one of `path`, `dir`, `command` is set; none means `auto`."""

    name: str = "default"
    kind: EngineKind = "llama-server"
    path: Path | None = None
    dir: Path | None = None
    command: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    env_passthrough: tuple[str, ...] = ()
    api_key: bool = True
    datacenter_tuning: bool = True
    """Whether variables that suit datacenter cards are set where there are only such (04 §7.2)."""


@dataclass(frozen=True)
class FileId:
    """Identity of a file as far as caches care: path, size in bytes, modification time."""

    path: Path
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class EngineBinary:
    """A found engine. `entry` is executed, `library_dir` holds its libraries (06 §3.1)."""

    entry: Path
    library_dir: Path
    file: FileId
    origin: Origin
    vulkan_only: bool = False
    bundled_hip: bool = False
    via_wrapper: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    """What a prebuilt wheel says its binary needs in the environment; empty for all other origins."""


@dataclass(frozen=True)
class Capabilities:
    """What `--help` and `--version` of a binary said. Everything false or empty when nothing was learnt."""

    conclusive: bool = False
    version: str = "unknown"
    build: str = "unknown"
    flags: frozenset[str] = frozenset()
    """Long flags that are real, that is listed and not removal stubs."""
    short_flags: frozenset[str] = frozenset()
    """Spellings of real flags with one dash, such as `-ngl`."""
    switches: frozenset[str] = frozenset()
    """Spellings of real flags that take no value."""
    is_partial: bool = False
    """The help text is written by hand, as some forks have it, and may leave flags out."""
    removed: Mapping[str, str] = field(default_factory=dict)
    """Removal stub to the hint its help text gives."""
    spec_types: tuple[str, ...] = ()
    mtp_token: str | None = None
    ngram_flavour: Literal["new", "legacy"] | None = None
    depth_flag: str | None = None
    drafter_flag: str | None = None
    adapter_form: Literal["colon", "pair"] | None = None
    """How `--lora-scaled` takes its value: one `path:scale` token, or path and scale as two tokens."""
    fault: str = ""
    """Why the binary could not be asked, as a clause such as "did not end within 10 s"; empty otherwise."""
    trace_level: int | None = None
    """Log verbosity that adds the memory and offload lines; None where the default prints them already."""

    def has(self, flag: str) -> bool:
        """Whether a long flag such as `--metrics` is real."""
        return flag in self.flags

    def takes_value(self, flag: str) -> bool:
        """Whether a long flag is real and has a value behind it."""
        return flag in self.flags and flag not in self.switches
