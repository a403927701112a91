"""Window patterns from an installed `transformers` (02 §5.5); here one that a test wrote."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.models.swa_introspection import introspect

CONFIGURATIONS = """
class Period:
    sliding_window_pattern = 6

class Layers:
    layer_types = ["sliding_attention", "full_attention"]

class Text:
    sliding_window_pattern = 4

class Nested:
    sliding_window_pattern = 6
    def __init__(self):
        self.text_config = Text()

class Source:
    def __init__(self, sliding_window_pattern: int = 3):
        pass

class Broken:
    def __init__(self):
        raise SystemError("no")

class Silent:
    pass

CONFIG_MAPPING = {
    name.lower(): globals()[name] for name in ("Period", "Layers", "Nested", "Source", "Broken", "Silent")
}
"""


@pytest.fixture
def transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of that name, forgotten again after the test."""
    folder = tmp_path / "transformers" / "models" / "auto"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        (package / "__init__.py").touch()
    (folder / "configuration_auto.py").write_text(CONFIGURATIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("architecture", "entry"),
    [
        ("period", 6),
        ("layers", 2),
        ("nested", 4),
        ("source", 3),
        ("broken", None),
        ("silent", None),
        ("unknown", None),
    ],
)
def test_what_the_package_says(transformers: None, architecture: str, entry: int | None) -> None:
    assert introspect(architecture) == entry


def test_without_the_package_nothing_is_known() -> None:
    assert introspect("no-such-architecture") is None
