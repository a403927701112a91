"""What builds of other times can do, from their help texts."""

from __future__ import annotations

from functools import cache

from framework.engines.help_text import parse_help
from framework.values.engine import Capabilities
from tests.fake_engine.eras import ERAS, Name, help_text


@cache
def caps_of(era: Name) -> Capabilities:
    """Capabilities of the build of an era."""
    return parse_help(help_text(era), exit_code=0, version_text=ERAS[era].version)
