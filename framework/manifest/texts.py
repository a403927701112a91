"""Parsers for texts with a meaning: names, paths, secrets, sources, variables. All raise `BadValue`.

No file is touched here: paths stay as written until `files.py` resolves them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from framework.manifest.bad_value import BadValue
from framework.manifest.spec_modes import CANONICAL

# 01 §2.12.
LONGEST_NAME = 200
# Linux's PATH_MAX: a longer text is no path, and no argument that anybody means.
LONGEST_TEXT = 4096

DIGEST = re.compile(r"[0-9a-fA-F]{64}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HUB = re.compile(
    r"hf:([A-Za-z0-9_.-]{1,96}/[A-Za-z0-9_.-]{1,96})(?::([A-Za-z0-9_.-]{1,64})|/([^:\s]{1,200}))?"
)
SOURCE_FORM = "the path of a GGUF file, hf:owner/repo:QUANT or hf:owner/repo/file.gguf"


@dataclass(frozen=True)
class SecretRef:
    """Where a secret lies: `env:NAME` or `file:PATH`; or only its digest, `sha256:HEX`."""

    kind: Literal["env", "file", "sha256"]
    name: str


@dataclass(frozen=True)
class WrittenSource:
    """Where weights come from, as written: `path`, or the parts of a hub reference."""

    path: str | None = None
    repo: str | None = None
    variant: str | None = None
    file: str | None = None


def parse_text(value: Any, *, what: str = "text", longest: int = LONGEST_TEXT) -> str:
    """Non-empty text on one line."""
    if not isinstance(value, str):
        raise BadValue("wrong_type", f"{what} in quotes")
    if not value.strip():
        raise BadValue("empty", f"{what} that is not empty")
    if len(value) > longest:
        raise BadValue("too_long", f"{what} of at most {longest} characters, not {len(value)}")
    if CONTROL.search(value):
        raise BadValue("control_character", f"{what} without control characters or line ends")
    return value


def parse_name(value: Any) -> str:
    """Name of a model, pool, engine or policy (01 §2.12)."""
    return parse_text(value, what="a name", longest=LONGEST_NAME)


def parse_policy_name(value: Any) -> str:
    """Name of a table `[speculation.NAME]`; its settings do not stand where it is named."""
    if isinstance(value, dict | bool):
        raise BadValue(
            "wrong_type", "the name of a table [speculation.NAME], which holds the mode and its settings"
        )
    return parse_name(value)


def parse_model_name(value: Any) -> str:
    """Name or alias of a model. It stands in addresses, where clients take `.` and `..` for folders."""
    name = parse_name(value)
    if not name.strip("."):
        raise BadValue("bad_name", "a name that is more than dots, which addresses cannot hold")
    return name


def parse_environment_name(value: Any) -> str:
    """Name of an environment variable."""
    if not isinstance(value, str) or not ENVIRONMENT_NAME.fullmatch(value):
        raise BadValue("bad_name", "the name of an environment variable: letters, digits and _")
    return value


def parse_environment_value(value: Any) -> str:
    """Value of an environment variable; may be empty and may hold line ends, not NUL."""
    if not isinstance(value, str):
        raise BadValue("wrong_type", "text in quotes, as every environment variable", repeat=False)
    if "\0" in value or len(value) > LONGEST_TEXT:
        raise BadValue("bad_value", f"at most {LONGEST_TEXT} characters without NUL", repeat=False)
    return value


def parse_environment_pattern(value: Any) -> str:
    """Name of an environment variable, or the start of one followed by `*`."""
    if not isinstance(value, str) or not ENVIRONMENT_NAME.fullmatch(value.removesuffix("*")):
        raise BadValue("bad_name", "the name of an environment variable, or its start followed by *")
    return value


def parse_secret(value: Any) -> SecretRef:
    """`env:NAME` or `file:PATH`; anything else may be a secret and is not repeated."""
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "env" and ENVIRONMENT_NAME.fullmatch(name):
        return SecretRef("env", name)
    if kind == "file" and name.strip() and not CONTROL.search(name):
        return SecretRef("file", name)
    must_be = "a reference, env:NAME or file:PATH, never the secret itself"
    raise BadValue("literal_secret", must_be, repeat=False)


def parse_key(value: Any) -> SecretRef:
    """A secret, or `sha256:` and its digest in hex, which tells nobody the key."""
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "sha256" and DIGEST.fullmatch(name):
        return SecretRef("sha256", name.lower())
    try:
        return parse_secret(value)
    except BadValue:
        must_be = "env:NAME, file:PATH or sha256:DIGEST (`paddock key` makes one), never the key itself"
        raise BadValue("literal_secret", must_be, repeat=False) from None


def parse_file_secret(value: Any) -> SecretRef:
    """`file:PATH` alone, for what only a file can hold."""
    ref = parse_secret(value)
    if ref.kind != "file":
        raise BadValue("bad_value", "a file, as file:PATH", repeat=False)
    return ref


def parse_source(value: Any) -> WrittenSource:
    """A path as written, or the parts of a hub reference."""
    if not isinstance(value, str) or not value.strip() or CONTROL.search(value) or len(value) > LONGEST_TEXT:
        raise BadValue("bad_source", SOURCE_FORM)
    if not value.startswith("hf:"):
        if "://" in value:
            raise BadValue("bad_source", f"{SOURCE_FORM}; other addresses are not fetched")
        return WrittenSource(path=value)
    match = HUB.fullmatch(value)
    if match is None or not _is_plain(match.group(1), match.group(3)):
        raise BadValue("bad_source", SOURCE_FORM)
    return WrittenSource(repo=match.group(1), variant=match.group(2), file=match.group(3))


def _is_plain(repo: str, file: str | None) -> bool:
    """Whether a hub reference names a repository and a model file in it, and nothing above or beside it."""
    parts = [*repo.split("/"), *(file or "x").split("/")]
    return all(part.strip(".") for part in parts) and (file is None or file.lower().endswith(".gguf"))


def parse_template(value: Any) -> str:
    """Path behind `file:`."""
    text = value if isinstance(value, str) else ""
    if not text.startswith("file:") or not text[5:].strip() or CONTROL.search(text):
        plain = text and not text.startswith("file:") and not CONTROL.search(text) and "{" not in text
        raise BadValue("bad_template", "file: and a path", suggestion=f'"file:{text}"' if plain else "")
    return parse_text(text[5:])


def parse_state_dir(value: Any) -> str | None:
    """`auto` as None, or a path."""
    text = parse_text(value, what='"auto" or a path')
    return None if text == "auto" else text


def parse_mode(value: Any) -> str | bool:
    """Any text or boolean: spellings that are not known are a warning, not an error (05 §2.4)."""
    if isinstance(value, bool):
        return value
    return parse_text(value, what=f"one of {', '.join(CANONICAL)}, true or false")
