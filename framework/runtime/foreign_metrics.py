"""What an engine says at `/metrics`, read as text of a stranger (13 §9, 12 §18). Pure.

An engine may be anybody's build: its text must not pass for metrics of ours, bring series without end, or
make a scraper refuse ours with it. So names begin with `llamacpp:`, everything is bounded, and a line that
is not plainly a sample is left out and counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from framework.telemetry.exposition import Kind

PREFIX = "llamacpp:"
LONGEST_TEXT_BYTES = 2**20
LONGEST_LINE = 2000
LONGEST_HELP = 200
# llama-server has a dozen, our own engine about 60 and some for each slot and position of a draft.
MOST_SAMPLES = 1000
MOST_FAMILIES = 200
MOST_LABELS = 8

NAME = re.compile(r"llamacpp:[a-zA-Z_][a-zA-Z0-9_]{0,99}")
LINE = re.compile(r"(?P<name>\S+?)(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>\S+)(?:[ \t]+-?[0-9]{1,19})?[ \t]*")
LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]{0,59})\s*=\s*"((?:[^"\\\n]|\\[\\n"]){0,100})"\s*(?:,|$)')
UNESCAPE = re.compile(r"\\(.)")
KINDS: Mapping[str, Kind] = {"counter": "counter", "gauge": "gauge"}
# Labels that we add; an engine's own of these names are kept beside them, as Prometheus does.
OURS = frozenset({"model", "replica"})


@dataclass(frozen=True)
class ForeignFamily:
    """One metric of an engine: samples by their labels."""

    kind: Kind
    meaning: str
    samples: Mapping[tuple[tuple[str, str], ...], float]


@dataclass
class ForeignMetrics:
    """All metrics of one answer by name, and how many lines were left out by reason."""

    families: dict[str, ForeignFamily] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


def read_metrics(raw: bytes) -> ForeignMetrics:
    """The metrics of an answer; never fails."""
    found = ForeignMetrics()
    if len(raw) > LONGEST_TEXT_BYTES:
        found.refused["too_large"] += 1
        return found
    kinds: dict[str, Kind] = {}
    meanings: dict[str, str] = {}
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    count = 0
    for line in raw.decode("utf-8", "replace").split("\n"):
        if not line.strip():
            continue
        if line.startswith("#"):
            _read_comment(line, kinds, meanings)
            continue
        reason = _read_sample(line, samples, count)
        if reason:
            found.refused[reason] += 1
        else:
            count += 1
    for name, values in samples.items():
        kind: Kind = kinds.get(name, "untyped")
        found.families[name] = ForeignFamily(kind, meanings.get(name, "Of the engine."), values)
    return found


def _read_comment(line: str, kinds: dict[str, Kind], meanings: dict[str, str]) -> None:
    words = line.split(None, 3)
    if len(words) < 4 or not NAME.fullmatch(words[2]) or len(kinds) + len(meanings) > 2 * MOST_FAMILIES:
        return
    if words[1] == "TYPE" and words[3].strip() in KINDS:
        kinds.setdefault(words[2], KINDS[words[3].strip()])
    if words[1] == "HELP":
        told = "".join(c if c.isprintable() else " " for c in words[3][:LONGEST_HELP])
        meanings.setdefault(words[2], told.strip())


def _read_sample(
    line: str, samples: dict[str, dict[tuple[tuple[str, str], ...], float]], count: int
) -> str | None:
    """Add the sample of a line; why it is none, as a code."""
    match = LINE.fullmatch(line) if len(line) <= LONGEST_LINE else None
    if match is None:
        return "malformed"
    name = match["name"]
    if not NAME.fullmatch(name):
        return "foreign_name"
    labels = _labels(match["labels"] or "")
    if labels is None:
        return "bad_labels"
    value = _number(match["value"])
    if value is None:
        return "bad_value"
    if count >= MOST_SAMPLES or (name not in samples and len(samples) >= MOST_FAMILIES):
        return "too_many"
    if labels in samples.setdefault(name, {}):
        return "duplicate"
    samples[name][labels] = value
    return None


def _labels(text: str) -> tuple[tuple[str, str], ...] | None:
    found: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip(", \t")):
        match = LABEL.match(text, at)
        if match is None or len(found) >= MOST_LABELS:
            return None
        name, value = match[1], UNESCAPE.sub(lambda one: "\n" if one[1] == "n" else one[1], match[2])
        name = f"exported_{name}" if name in OURS else name
        if name.startswith("__") or name in found or not (value.isprintable() or not value):
            return None
        found[name] = value
        at = match.end()
    return tuple(sorted(found.items()))


def _number(text: str) -> float | None:
    """A finite number; whole ones stay whole, so that large counts keep their digits."""
    if text.isascii() and text.isdecimal() and len(text) <= 18:
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
