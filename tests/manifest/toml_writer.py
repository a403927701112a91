"""Hypothesis strategies for TOML texts: headers, dotted keys, inline tables, all kinds of strings.

The texts are drawn together with nothing else: what they mean is for tomllib to say.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

PLAIN = st.text(alphabet="abcxyz_-09", min_size=1, max_size=6)
ODD = st.text(alphabet="aé.#=[]{}'\"\\ \tß🦙\u0085", min_size=0, max_size=6)
SCALARS = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["true", "false", "1.5", "-2e3", "nan", "-inf", "0x1F", "1_000", "0o17"]),
    st.sampled_from(["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5-07:00"]),
)
COMMENTS = st.sampled_from(["", " # a = [1]", "# '''", ' # """'])
BLANKS = st.sampled_from(["", " ", "\t"])


def basic(text: str) -> str:
    """Text between double quotes."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


@st.composite
def keys(draw: st.DrawFn) -> str:
    """One part of a key in any spelling."""
    if draw(st.booleans()):
        return draw(PLAIN)
    text = draw(ODD)
    if "'" not in text and draw(st.booleans()):
        return f"'{text}'"
    return basic(text)


@st.composite
def strings(draw: st.DrawFn) -> str:
    """A string value of any of the four kinds."""
    text = draw(ODD)
    kind = draw(st.sampled_from(["basic", "literal", "long basic", "long literal"]))
    if kind == "literal" and "'" not in text:
        return f"'{text}'"
    if kind == "long literal" and "'" not in text:
        return f"'''\n{text}\n# no comment\n'''"
    if kind == "long basic":
        inside = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"""{inside}\\\n   x ""{inside}"" \n[a]"""'
    return basic(text)


def values(depth: int) -> st.SearchStrategy[str]:
    """A value; lists and inline tables down to `depth` levels."""
    leaf = st.one_of(SCALARS, strings())
    return leaf if depth == 0 else st.one_of(leaf, lists(depth - 1), inline_tables(depth - 1))


@st.composite
def lists(draw: st.DrawFn, depth: int) -> str:
    """A list, on one line or over several with comments."""
    items = draw(st.lists(values(depth), max_size=3))
    if not items:
        return "[ ]"
    if draw(st.booleans()):
        return "[\n  " + ", # ]\n\n  ".join(items) + draw(st.sampled_from(["", ",", ", # end\n"])) + "\n]"
    return "[" + ",".join(items) + "]"


@st.composite
def inline_tables(draw: st.DrawFn, depth: int) -> str:
    """An inline table with distinct keys, some of them dotted."""
    names = draw(st.lists(PLAIN, max_size=3, unique=True))
    pairs = [f"{name}.{draw(keys())}" if draw(st.booleans()) else name for name in names]
    return "{ " + ", ".join(f"{pair} = {draw(values(depth))}" for pair in pairs) + " }"


@st.composite
def statements(draw: st.DrawFn) -> str:
    """One assignment."""
    parts = draw(st.lists(keys(), min_size=1, max_size=3))
    dot = draw(st.sampled_from([".", " . "]))
    return f"{draw(BLANKS)}{dot.join(parts)}{draw(BLANKS)}={draw(BLANKS)}{draw(values(2))}{draw(COMMENTS)}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A text of statements under headers. It may declare things twice; `assume` that tomllib takes it."""
    lines: list[str] = draw(st.lists(statements(), max_size=3))
    for header in draw(st.lists(st.lists(keys(), min_size=1, max_size=3), max_size=4)):
        brackets = draw(st.sampled_from([("[", "]"), ("[[", "]]")]))
        lines.append(f"{brackets[0]} {'.'.join(header)}{draw(BLANKS)}{brackets[1]}{draw(COMMENTS)}")
        lines += draw(st.lists(statements(), max_size=3))
    return "\n".join(lines)


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """Every path below a value, with what is there."""
    found: list[tuple[tuple[str | int, ...], Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append(((*path, key), inner))
        found += paths_of(inner, (*path, key))
    return found
