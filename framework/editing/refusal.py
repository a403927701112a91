"""Why an edit of the manifest is not written: a reason, and what is wrong with the text where it is that."""

from __future__ import annotations

from framework.values.problem import Problem
from framework.values.reason import Reason


class EditRefused(Exception):
    """Nothing was written."""

    def __init__(self, reason: Reason, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(reason.message)
        self.reason = reason
        self.problems = problems
