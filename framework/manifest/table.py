"""Base of all manifest tables: strict types, no unknown keys, docstrings as descriptions, inheritance.

The classes of `schema_*.py` build on it. Defaults are real values; `written` is how a manifest spells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

T = TypeVar("T", bound="Table")


class Table(BaseModel):
    """One table of the manifest."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )

    required: ClassVar[tuple[str, ...]] = ()
    """Keys that must be written. They have a default all the same, so that a table can be checked further."""
    inherits: ClassVar[bool] = True
    """Whether keys that are not written come from the same table in `[defaults]`; else it replaces that."""
    short_form: ClassVar[Mapping[str, Any] | None] = None
    """JSON Schema of the plain value that may stand for the table."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core))
        if cls.required:
            schema["required"] = list(cls.required)
        return {"anyOf": [dict(cls.short_form), schema]} if cls.short_form else schema

    def below(self, own: T) -> T:
        """These defaults with everything that `own` writes over them; tables are merged key by key."""
        update: dict[str, Any] = {}
        for name in self.model_fields_set:
            default = getattr(self, name)
            update[name] = _merged(default, getattr(own, name)) if name in own.model_fields_set else default
        return own.model_copy(update=update) if update else own


def _merged(default: Any, own: Any) -> Any:
    if isinstance(default, Table) and isinstance(own, Table) and own.inherits:
        return default.below(own)
    if isinstance(default, dict) and isinstance(own, dict):
        return {**default, **own}
    return own


def option(default: Any = None, *, written: Any = None, effect: str | None = None) -> Any:
    """Declare a key. `written` is the default in TOML's spelling where it differs from `default`.

    `effect` is what a change does, for keys that `values/request.py` does not declare it for.
    """
    extra: dict[str, Any] = {"default": default if written is None else written}
    if effect is not None:
        extra["x-effect"] = effect
    if isinstance(default, list | dict):
        return Field(default_factory=default.copy, json_schema_extra=extra)
    return Field(default=default, json_schema_extra=extra)


def sub_table(table: type[Table]) -> Any:
    """Declare a key that holds a table, empty when it is not written."""
    empty = table()
    return Field(default_factory=lambda: empty)
