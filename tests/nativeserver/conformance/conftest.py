"""Both servers with the demo model, for every module that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine_pair import EnginePair, running_pair


@pytest.fixture(scope="package")
def pair(
    engine_binary: Path, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EnginePair]:
    """Two slots of 1024 tokens."""
    folder = tmp_path_factory.mktemp("pair")
    arguments = ("-c", "2048", "-np", "2", "--metrics", "--slot-save-path", str(folder))
    with running_pair(engine_binary, smollm2, folder, *arguments) as running:
        yield running
