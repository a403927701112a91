"""The dashes in front of a flag, and what editors make of them. Pure."""

from __future__ import annotations

import re

DASHES = re.compile(r"[\u2010-\u2015\u2212\ufe58\ufe63\uff0d-]+")
