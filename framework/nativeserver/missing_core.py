"""What is said when the compiled core can't be imported. Pure; used by process and serving."""

from __future__ import annotations

PACKAGE = "paddock_native"
NO_CORE = "the compiled core cannot be used"
INSTALL = "install it with `make native` in a checkout, or `pip install ./native` from its folder"


def with_remedy(error: ImportError) -> ImportError:
    """The error of an import; where a part of the core is not installed, with how to install it."""
    is_absent = isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == PACKAGE
    return ImportError(f"{error}; {INSTALL}") if is_absent else error
