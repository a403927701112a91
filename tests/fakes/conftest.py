"""Fake engines as children of the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeFake
from tests.support.fake_children import Child, Launch


@pytest.fixture
def launch(fake_engine: MakeFake, tiny_gguf: Path) -> Iterator[Launch]:
    """Start fake engines, on two slots; whatever still runs afterwards is killed."""
    children: list[Child] = []

    def start(*arguments: str, model: Path = tiny_gguf, healthy: bool = True, **script: Any) -> Child:
        children.append(Child(fake_engine(**script), model, *arguments))
        if healthy:
            children[-1].wait_healthy()
        return children[-1]

    yield start
    for child in children:
        child.process.kill()
        child.process.communicate()
