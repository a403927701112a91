"""Read what `--help` and `--version` of an engine say (06 §4.2-4.7, 14 §3). Pure; called by probe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from framework.values.engine import Capabilities

LONG_FLAG = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*")
SHORT_FLAG = re.compile(r"-[A-Za-z][A-Za-z0-9_-]*")
TOKEN = re.compile(r"[^,\s]+")
# One blank before a value, more before the description.
VALUE = re.compile(r" \S")
INDENTED_ENTRY = re.compile(r" {1,11}(?=-)")
LIST_RUN = re.compile(r"[\w-]+(?:[,|][\w-]+)+")
# Some builds list their types in a sentence, with a blank behind each comma.
SPOKEN_LIST = re.compile(r"(?<![\w-])none(?:,\s+[\w-]+)+")
BARE_MTP = re.compile(r"(?<![\w-])mtp(?![\w-])")
TRACE_LEVEL = re.compile(r"-\s*(\d)\s*:\s*trace\b")
REMOVED = "argument has been removed"
HINT_LIMIT = 200
VERBOSITY_FLAGS = ("--log-verbosity", "--verbosity")

NEW_NGRAM = ("--spec-ngram-mod-n-match", "--spec-ngram-mod-n-min", "--spec-ngram-mod-n-max")
LEGACY_NGRAM = ("--spec-ngram-size-n", "--draft-min", "--draft-max")
DEPTH_FLAGS = ("--spec-draft-n-max", "--draft-max")
DRAFTER_FLAGS = ("--model-draft", "--spec-draft-model")

# `version: 0.1.1-dev (build 10470, commit abc)`, `version: 10360 (90e6a9131)`, `b10360-90e6a9131`
NAMED_VERSION = re.compile(r"version:\s*([\w.+-]{1,64})\s*\(build\s+(\d{1,9}),\s*commit\s+(\w{1,64})\)")
NUMBERED_VERSION = re.compile(r"version:\s*(\d{1,9})\s*\((\w{1,64})\)")
TAGGED_VERSION = re.compile(r"\bb(\d{1,9})-([0-9a-f]{4,40})\b")


@dataclass(frozen=True)
class Block:
    """One entry of the help text: its flags, and its text, declaration line included."""

    flags: tuple[str, ...]
    """Long ones."""
    shorts: tuple[str, ...]
    takes_value: bool
    text: str

    @property
    def removed(self) -> bool:
        """Whether the flag only parses to say that it is gone (06 §4.6)."""
        return REMOVED in self.flat

    @property
    def flat(self) -> str:
        """The text on one line: help is wrapped at a fixed column, in the middle of sentences."""
        return " ".join(self.text.split())


def parse_help(text: str, *, exit_code: int | None, version_text: str = "") -> Capabilities:
    """Capabilities by the rules of 06 §4. `exit_code` None means that the probe did not end by itself."""
    lines = text.splitlines()
    is_partial = _is_indented(lines)
    blocks = tuple(
        _blocks([INDENTED_ENTRY.sub("", line, count=1) for line in lines] if is_partial else lines)
    )
    real = [block for block in blocks if not block.removed]
    flags = frozenset(flag for block in real for flag in block.flags)
    removed = {flag: _hint(block) for block in blocks if block.removed for flag in block.flags}
    spec_text = _spec_text(text, blocks)
    version, build = parse_version(version_text)
    return Capabilities(
        conclusive=exit_code == 0 and bool(text.strip()),
        version=version,
        build=build,
        flags=flags,
        short_flags=frozenset(flag for block in real for flag in block.shorts),
        switches=frozenset(
            flag for block in real if not block.takes_value for flag in (*block.flags, *block.shorts)
        ),
        is_partial=is_partial,
        removed={flag: hint for flag, hint in removed.items() if flag not in flags},
        spec_types=_spec_types(spec_text),
        mtp_token=_mtp_token(spec_text),
        ngram_flavour=_ngram_flavour(flags),
        depth_flag=_first_real(DEPTH_FLAGS, flags),
        drafter_flag=_first_real(DRAFTER_FLAGS, flags),
        adapter_form=_adapter_form(blocks),
        trace_level=_trace_level(blocks),
    )


def parse_version(text: str) -> tuple[str, str]:
    """Version and build as shown to people; `unknown` for what the text does not say.

    Home-made builds say build 0 or 1: the number is for display, nothing is decided on it.
    """
    if named := NAMED_VERSION.search(text):
        return named[1], f"b{named[2]}-{named[3]}"
    if numbered := NUMBERED_VERSION.search(text) or TAGGED_VERSION.search(text):
        return f"b{numbered[1]}", f"b{numbered[1]}-{numbered[2]}"
    return "unknown", "unknown"


def _is_indented(lines: Sequence[str]) -> bool:
    """Whether entries stand a little to the right, as in the help of forks, which is written by hand.

    Elsewhere it is printed from the table of the parser, and an indented flag belongs to the text of another.
    """
    flags = [bool(LONG_FLAG.match(line) or SHORT_FLAG.match(line)) for line in lines]
    return not any(flags) and any(INDENTED_ENTRY.match(line) for line in lines)


def _blocks(lines: Iterable[str]) -> Iterator[Block]:
    """Split at lines that start with `-`; lines before the first one belong to nothing."""
    entry: list[str] = []
    for line in lines:
        if line.startswith("-"):
            if entry:
                yield _block(entry)
            entry = [line]
        elif entry:
            entry.append(line)
    if entry:
        yield _block(entry)


def _block(lines: list[str]) -> Block:
    """An entry; its declaration ends at the first token that is no flag (value or description)."""
    flags: list[str] = []
    shorts: list[str] = []
    end = 0
    for token in TOKEN.finditer(lines[0]):
        if not token[0].startswith("-"):
            break
        end = token.end()
        if LONG_FLAG.fullmatch(token[0]):
            flags.append(token[0])
        elif SHORT_FLAG.fullmatch(token[0]):
            shorts.append(token[0])
    return Block(tuple(flags), tuple(shorts), VALUE.match(lines[0], end) is not None, "\n".join(lines))


def _hint(block: Block) -> str:
    """What the stub says to use instead; empty when it says nothing."""
    hint = block.flat.partition(REMOVED)[2].lstrip(". ")
    return re.sub(r"\s*\(env: \w+\)$", "", hint)[:HINT_LIMIT]


def _spec_text(text: str, blocks: tuple[Block, ...]) -> str:
    own = [block.text for block in blocks if "--spec-type" in block.flags]
    if own:
        return "\n".join(own)
    return "\n".join(line for line in text.splitlines() if "--spec-type" in line)


def _spec_types(spec_text: str) -> tuple[str, ...]:
    """Items of every run joined by `,` or `|`; the list may stand on a continuation line.

    Every list of types has `none`, so that where one has it, other lists are of something else.
    """
    plain = re.sub(r"[\[\]{}<>()]", " ", spec_text)
    runs = [token for token in plain.split() if LIST_RUN.fullmatch(token) and not token.startswith("-")]
    lists = [re.split(r"[,|]", run) for run in runs]
    lists += [re.split(r",\s+", found[0]) for found in SPOKEN_LIST.finditer(plain)]
    of_types = [items for items in lists if "none" in items]
    return tuple(dict.fromkeys(item for items in of_types or lists for item in items))


def _mtp_token(spec_text: str) -> str | None:
    if "draft-mtp" in spec_text:
        return "draft-mtp"
    return "mtp" if BARE_MTP.search(spec_text) else None


def _ngram_flavour(flags: frozenset[str]) -> Literal["new", "legacy"] | None:
    if flags.issuperset(NEW_NGRAM):
        return "new"
    return "legacy" if flags.issuperset(LEGACY_NGRAM) else None


def _first_real(names: tuple[str, ...], flags: frozenset[str]) -> str | None:
    return next((name for name in names if name in flags), None)


def _adapter_form(blocks: tuple[Block, ...]) -> Literal["colon", "pair"] | None:
    text = next((block.flat for block in blocks if "--lora-scaled" in block.flags and not block.removed), "")
    if not text:
        return None
    return "colon" if re.search(r"fname:scale", text, re.IGNORECASE) else "pair"


def _trace_level(blocks: tuple[Block, ...]) -> int | None:
    """Builds that renumbered their levels (14 §2) list one named `trace`; older ones print it by default."""
    for block in blocks:
        if set(VERBOSITY_FLAGS).intersection(block.flags) and not block.removed:
            level = TRACE_LEVEL.search(block.text)
            return int(level[1]) if level else None
    return None
