"""What names of model files and repositories say (02 §3). Pure.

A repository path uses `/`; `\\` is turned into it first. Called by variants, companions, the hub client and
thinking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

SHARD_NAME = re.compile(
    r"(?P<prefix>.+)-(?P<index>\d{5})-of-(?P<total>\d{5})\.gguf", re.IGNORECASE | re.ASCII | re.DOTALL
)
GGUF = ".gguf"
# In the order of 02 §3.5; the first form that fits counts.
LABEL = re.compile(
    r"(?:UD-)?(?:MXFP\d+(?:_[A-Z0-9]+)*|IQ\d+_[A-Z]+(?:_[A-Z0-9]+)?|TQ\d+_\d+|Q\d+_K_[A-Z]+|Q\d+_\d+|Q\d+_K"
    r"|BF16|F16|F32)",
    re.IGNORECASE | re.ASCII,
)
# Files that stand beside models and are none: what quantisers leave, and what is not here completely.
HELPER_STEMS = ("imatrix", "ggml-vocab")
BIG_ENDIAN = re.compile(r"(?:^|(?<=[-_]))be(?=[._-]|$)")
NUMBER_OF_PARAMETERS = re.compile(
    r"(?<![a-z0-9.])(?:(?P<times>\d+)x|e)?(?P<number>\d+(?:\.\d+)?)(?P<unit>[bm])(?![a-z0-9])", re.IGNORECASE
)
# Models of this family draft with a separate file; `gemma4` alone and `gemma-3n-` are others.
GEMMA_4 = re.compile(r"gemma[-_]?4[-_]", re.IGNORECASE)
MILLIONS_PER_BILLION = 1000
HUB_HOST = "huggingface.co"
REPO_PART = re.compile(r"\w[\w.-]{0,95}", re.ASCII)
OTHER_KINDS = ("datasets", "spaces")


@dataclass(frozen=True)
class Shard:
    """A name of the form `<prefix>-<index>-of-<total>.gguf`; `total` is text, as sets are compared by it."""

    prefix: str
    index: int
    total: str

    @property
    def possible(self) -> bool:
        """Whether there can be such a file: indices run from 1 to the total."""
        return 1 <= self.index <= int(self.total)

    def name(self, index: int) -> str:
        """The name of another file of the set."""
        return f"{self.prefix}-{index:05d}-of-{self.total}{GGUF}"


def repo_path(path: str) -> str:
    """A repository path with `/` only."""
    return path.replace("\\", "/")


def base_name(path: str) -> str:
    """The last part of a repository path."""
    return repo_path(path).rpartition("/")[2]


def shard(path: str) -> Shard | None:
    """The parts of a shard's name, impossible ones included; None for other names (02 §3.1)."""
    match = SHARD_NAME.fullmatch(repo_path(path))
    return Shard(match["prefix"], int(match["index"]), match["total"]) if match else None


def other_shards(paths: Iterable[str], first: str) -> tuple[str, ...]:
    """All other shards of the set of `first`, sorted; none where it is no shard (02 §3.2)."""
    own = shard(first)
    if own is None:
        return ()
    found = {path: shard(path) for path in paths if path != first}
    key = (own.prefix, own.total)
    return tuple(sorted(path for path, part in found.items() if part and (part.prefix, part.total) == key))


def is_gguf(path: str) -> bool:
    """Whether the name is that of a GGUF file. Parts of downloads, such as `x.gguf.part`, are none."""
    return repo_path(path).lower().endswith(GGUF)


def is_companion(path: str) -> bool:
    """Whether a GGUF only serves beside another model: a projector or a drafter (02 §3.4)."""
    lowered = repo_path(path).lower()
    *folders, name = lowered.split("/")
    return is_gguf(lowered) and ("mmproj" in lowered or name.startswith("mtp-") or "mtp" in folders)


def is_helper(path: str) -> bool:
    """Whether a GGUF is no model at all, as the importance matrices of quantisers are."""
    return is_gguf(path) and base_name(path).lower().startswith(HELPER_STEMS)


def label(path: str) -> str | None:
    """The quantisation label of a file, as it is spelled (02 §3.5)."""
    *folders, name = repo_path(path).split("/")
    part = SHARD_NAME.fullmatch(name)
    stem = part["prefix"] if part else name[: -len(GGUF)] if is_gguf(name) else name
    for text in (stem, *reversed(folders)):
        if found := [match[0] for match in LABEL.finditer(text) if _stands_alone(text, match)]:
            return found[-1]
    return None


def contains_label(text: str) -> bool:
    """Whether a label occurs anywhere."""
    return LABEL.search(text) is not None


def is_big_endian(path: str, variant: str | None = None) -> bool:
    """Whether the file is a byte-swapped twin, which must never be chosen (02 §3.6)."""
    parent, _, name = repo_path(path).lower().rpartition("/")
    stem = name.rpartition(".")[0] or name
    key = (variant or "").strip().lower()
    for match in BIG_ENDIAN.finditer(stem):
        if key and key in stem[: match.start()]:
            return True
        rest = stem[match.end() :].lstrip("._-")
        if not rest or not contains_label(rest):
            return not _variant_in_parent_only(parent, stem, key)
    return False


def repo_of_url(url: str | None) -> str | None:
    """The model repository that a hub address names (02 §3.7)."""
    text = (url or "").strip()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host = parts.hostname
    except ValueError:
        return None
    names = [name for name in parts.path.split("/") if name]
    if host != HUB_HOST or len(names) < 2 or names[0] in OTHER_KINDS:
        return None
    if not all(REPO_PART.fullmatch(name) for name in names[:2]):
        return None
    return f"{names[0]}/{names[1]}"


def names_gemma_4(*names: str) -> bool:
    """Whether an id or a base name is of the family whose prediction head is a file of its own (02 §3.8)."""
    return any(GEMMA_4.search(name) for name in names)


def billions(model_id: str | None, size_label: str | None = None) -> float | None:
    """Parameters in billions by the model's id, else by its size label (02 §3.12)."""
    last = (model_id or "").rpartition("/")[2]
    return next((found for text in (last, size_label or "") if (found := _billions(text))), None)


def _billions(text: str) -> float | None:
    match = NUMBER_OF_PARAMETERS.search(text)
    if match is None:
        return None
    number = float(match["number"]) * int(match["times"] or 1)
    return number / MILLIONS_PER_BILLION if match["unit"] in "mM" else number


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    around = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
    return not any(character.isalnum() for character in around)


def _variant_in_parent_only(parent: str, stem: str, key: str) -> bool:
    if not parent or (key and key in stem):
        return False
    return key in parent if key else contains_label(parent)
