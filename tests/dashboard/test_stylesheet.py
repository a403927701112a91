"""Contrast of every pair of colours that stands together, in light and dark (WCAG AA)."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.dashboard.fake_system import STATIC

TONES = ("ok", "busy", "wait", "bad", "idle")
GROUNDS = ("surface", "ground", "sunken")
TEXT_PAIRS = [
    *((text, ground) for text in ("text", "muted", "accent") for ground in GROUNDS),
    *((tone, ground) for tone in TONES for ground in ("surface", "ground", f"{tone}-soft")),
    *((text, f"{tone}-soft") for text in ("text", "muted", "accent") for tone in TONES),
    ("on-accent", "accent"),
]
# What must be told from its surroundings without being read: borders of controls, bars, focus.
SHAPE_PAIRS = [
    ("line-strong", "surface"),
    ("accent", "ground"),
    *((tone, f"{tone}-soft") for tone in TONES),
]
TEXT_RATIO = 4.5
SHAPE_RATIO = 3.0


@cache
def palette(scheme: str) -> dict[str, str]:
    """The colour tokens of a scheme; dark ones override light ones."""
    css = (STATIC / "app.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    light, dark = (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in blocks[:2])
    return light if scheme == "light" else {**light, **dark}


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT_PAIRS)
def test_text_can_be_read(scheme: str, text: str, ground: str) -> None:
    colours = palette(scheme)
    assert contrast(colours[text], colours[ground]) >= TEXT_RATIO


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("shape", "ground"), SHAPE_PAIRS)
def test_shapes_can_be_seen(scheme: str, shape: str, ground: str) -> None:
    colours = palette(scheme)
    assert contrast(colours[shape], colours[ground]) >= SHAPE_RATIO


def test_no_style_is_left_for_a_class_that_no_template_has() -> None:
    css = re.sub(r"/\*.*?\*/", "", (STATIC / "app.css").read_text(encoding="utf-8"), flags=re.DOTALL)
    selectors = " ".join(re.findall(r"([^{}]+)\{", css))
    styled = set(re.findall(r"\.([a-z][a-z-]*)", selectors))
    templates = STATIC.parent / "templates"
    text = " ".join(path.read_text(encoding="utf-8") for path in templates.glob("*.html"))
    # Put together by a template from a prefix and a value.
    made = {name for name in styled if name.startswith(("tone-", "icon-", "tile-", "page-", "diff-"))}
    assert {name for name in styled - made if name not in text} == set()


def test_no_part_of_the_style_is_caught_in_one_for_narrow_windows() -> None:
    """Headings stand between rules, so that a lost brace is seen."""
    depth, nested = 0, []
    for line in (STATIC / "app.css").read_text(encoding="utf-8").splitlines():
        if line.startswith("/* ") and depth:
            nested.append(line)
        depth += line.count("{") - line.count("}")
    assert (nested, depth) == ([], 0)
