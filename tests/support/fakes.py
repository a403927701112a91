"""Write fake engines: an executable wrapper bound to a script of faults."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tests.fake_engine.script import Script

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class FakeEngine:
    """A fake llama-server on disk. `path` goes into the manifest as `binary`."""

    path: Path
    script_file: Path

    def rescript(self, **script: Any) -> None:
        """What the next start does; what runs already keeps its script."""
        if unknown := script.keys() - {item.name for item in fields(Script)}:
            raise ValueError(f"no such fault: {', '.join(sorted(unknown))}")
        self.script_file.write_text(json.dumps(script), encoding="utf-8")

    def starts(self) -> list[dict[str, Any]]:
        """Every start so far, oldest first: `pid`, `argv`, `environment` (engine variables only)."""
        return self._records("starts")

    def requests(self) -> list[dict[str, Any]]:
        """Every generation request so far, oldest first: `path`, `headers` (lower case), `body`."""
        return self._records("requests")

    def _records(self, kind: str) -> list[dict[str, Any]]:
        path = Path(f"{self.script_file}.{kind}")
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_fake_engine(folder: Path, **script: Any) -> FakeEngine:
    """A wrapper named `llama-server` in `folder`, and beside it the script that it follows."""
    folder.mkdir(parents=True, exist_ok=True)
    engine = FakeEngine(folder / "llama-server", folder / "script.json")
    engine.rescript(**script)
    # -S: no site packages, so that a start costs tens of milliseconds; exec: one process, one pid.
    variables = f"FAKE_SCRIPT={shlex.quote(str(engine.script_file))} PYTHONPATH={shlex.quote(str(ROOT))}"
    command = f"{shlex.quote(sys.executable)} -S -m tests.fake_engine"
    engine.path.write_text(f'#!/bin/sh\n{variables} exec {command} "$@"\n', encoding="utf-8")
    engine.path.chmod(0o755)
    return engine
