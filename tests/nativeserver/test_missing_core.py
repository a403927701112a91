"""A server without its compiled core says how to install it; one whose core is broken says what broke."""

from __future__ import annotations

import subprocess
import sys

import pytest

from framework.nativeserver.missing_core import with_remedy
from framework.nativeserver.process import load_core


@pytest.mark.parametrize("name", ["paddock_native", "paddock_native._core"])
def test_an_absent_core_has_both_ways_to_install_it(name: str) -> None:
    text = str(with_remedy(ModuleNotFoundError(f"No module named '{name}'", name=name)))
    assert name in text
    assert "make native" in text
    assert "pip install ./native" in text


def test_another_fault_stays_what_it_is() -> None:
    broken = ImportError("libllama.so: cannot open shared object file", name="paddock_native")
    assert with_remedy(broken) is broken


def test_the_core_is_asked_for_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paddock_native", None)
    with pytest.raises(ImportError, match="make native"):
        load_core()


def test_the_version_says_that_the_core_is_missing() -> None:
    hidden = (
        "import importlib.util as u; found = u.find_spec;"
        " u.find_spec = lambda name: None if name == 'paddock_native' else found(name);"
        " from framework.nativeserver.help_text import version_text; print(version_text())"
    )
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=True)
    assert "version: " in done.stdout
    assert "paddock_native, is not installed; install it with `make native`" in done.stdout
