"""The stub of the compiled core: type checks of the native server rest on it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools.fetch import ROOT

pytestmark = pytest.mark.engine


def test_the_stub_says_what_the_installed_core_has() -> None:
    line = [sys.executable, str(ROOT / "native" / "tools" / "write_stub.py"), "--check"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
