"""Where pages, browser assets and documentation lie: beside the package in a checkout, inside it in a wheel.

Reads nothing.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def templates_dir() -> Path:
    """The folder of the Jinja2 pages and fragments."""
    return _find("templates")


def static_dir() -> Path:
    """The folder of style sheets and scripts; `vendor/` below it may be missing, pages work without."""
    return _find("static")


def docs_dir() -> Path:
    """The folder of the documentation; a wheel has only what pages show of it."""
    return _find("docs")


def _find(name: str) -> Path:
    """A wheel holds `_web` (pyproject.toml, force-include); a checkout has the folder at its top level."""
    packaged = PACKAGE / "_web" / name
    return packaged if packaged.is_dir() else PACKAGE.parent / name
