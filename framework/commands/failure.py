"""How a command ends when it cannot do what was asked: one sentence and an exit code (00 §5)."""

from __future__ import annotations

OK = 0
NOT_SO = 1
"""The thing asked about is not so: a load failed, a check of doctor is not ok."""
BAD_INPUT = 2
"""Bad usage or a bad manifest."""
UNREACHABLE = 3
"""No running server could be reached."""


class CommandFailed(Exception):
    """Ends the command. `remedy` says what to do; both are printed on one line."""

    def __init__(self, code: int, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class BadUsage(CommandFailed):
    """Ends a command that was called wrongly; what is printed also leads to its help."""

    def __init__(self, message: str) -> None:
        super().__init__(BAD_INPUT, message)
