"""The manifest in force, and what is wrong with the file as it is now (01 §2.5, 13 §5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from framework.values.manifest import Manifest
from framework.values.problem import Problem


@dataclass
class CurrentManifest:
    """The last good manifest. `problems` belong to the newest text of the file, warnings included."""

    manifest: Manifest
    loaded_at: datetime
    problems: tuple[Problem, ...] = ()
    server_notices: tuple[str, ...] = ()
    """`[server]` fields whose new value waits for the next `up`."""
