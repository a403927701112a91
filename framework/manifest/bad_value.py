"""The exception of every value parser: what a value must be, in the second half of a sentence."""

from __future__ import annotations

from pydantic_core import PydanticCustomError


class BadValue(ValueError):
    """A value that a key cannot have.

    `must_be` ends the sentence "KEY must be …, but is …". `suggestion` is what was probably meant, as TOML
    writes it. `repeat` False leaves out the second half: the value is a secret, or `must_be` says it already.
    `found` says what is wrong in a value that is more than one, such as a table.
    """

    def __init__(
        self, code: str, must_be: str, *, suggestion: str = "", repeat: bool = True, found: str = ""
    ) -> None:
        super().__init__(f"must be {must_be}")
        self.code = code
        self.must_be = must_be
        self.suggestion = suggestion
        self.repeat = repeat
        self.found = found

    def as_pydantic(self) -> PydanticCustomError:
        """The same for pydantic, which notes the place; `translate.py` takes it apart again."""
        facts = {
            "must_be": self.must_be,
            "suggestion": self.suggestion,
            "repeat": self.repeat,
            "found": self.found,
        }
        return PydanticCustomError(self.code, "{must_be}", facts)
