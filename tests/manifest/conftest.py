"""Fixtures of the manifest tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from framework.manifest.load import load_manifest
from tests.manifest.reading import Reading


class Load(Protocol):
    """Write files below a fresh directory and load `serve.toml` of it."""

    def __call__(
        self, text: str | bytes, environ: Mapping[str, str] | None = None, **files: str | bytes
    ) -> Reading: ...


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Files are given by name with `_` for `.` and `__` for `/`: `models_d__a_toml`."""

    def write_and_load(
        text: str | bytes, environ: Mapping[str, str] | None = None, **files: str | bytes
    ) -> Reading:
        for name, content in {"serve_toml": text, **files}.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return Reading(load_manifest(tmp_path / "serve.toml", environ or {}))

    return write_and_load
