"""Types of manifest values that TOML does not have: sizes, durations, addresses, secrets, paths, names.

Each is an `Annotated` type for the tables of `schema_*.py`: it checks, converts, and says in JSON Schema what
it takes. Numbers with plain limits and fixed words are left to pydantic itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from framework.manifest.addresses import ADDRESS_FORM, parse_address, parse_device
from framework.manifest.bad_value import BadValue
from framework.manifest.kv_types import KV_TYPES, parse_kv_type
from framework.manifest.number_values import (
    DEEPEST_DRAFT,
    LARGEST_BODY_BYTES,
    LARGEST_CONTEXT,
    LARGEST_SIZE_BYTES,
    LONGEST_DURATION_S,
    MOST_THREADS,
    SHORTEST_DURATION_S,
    SMALLEST_BODY_BYTES,
    limited,
    parse_depth,
    parse_tensor_split,
    parse_unload_after,
    whole_or,
)
from framework.manifest.origins import ORIGIN_FORM, parse_origin
from framework.manifest.spec_modes import CANONICAL
from framework.manifest.texts import (
    LONGEST_NAME,
    SOURCE_FORM,
    SecretRef,
    WrittenSource,
    parse_environment_name,
    parse_environment_pattern,
    parse_environment_value,
    parse_file_secret,
    parse_key,
    parse_mode,
    parse_model_name,
    parse_name,
    parse_policy_name,
    parse_secret,
    parse_source,
    parse_state_dir,
    parse_template,
    parse_text,
)
from framework.manifest.units import (
    DURATION_FORM,
    RATE_FORM,
    SIZE_FORM,
    duration_text,
    parse_duration,
    parse_rate,
    parse_size,
    size_text,
)
from framework.manifest.values_in_json import parse_json_table, parse_request_fields
from framework.manifest.web_address import WEB_FORM, parse_web_address
from framework.values.manifest import Listener
from framework.values.rate import Rate


@dataclass(frozen=True, eq=False)
class Parsed:
    """`Annotated` metadata: values go through `parse`, which raises `BadValue`; `schema` is for editors."""

    parse: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.schema)

    def _validate(self, value: Any) -> Any:
        try:
            return self.parse(value)
        except BadValue as bad:
            raise bad.as_pydantic() from None


def _text_schema(form: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "x-form": form, **more}


def whole(low: int, high: int) -> Any:
    """Limits of a whole number, both included."""
    return Field(ge=low, le=high)


def _whole_or_schema(word: str, low: int, high: int) -> dict[str, Any]:
    return {"anyOf": [{"const": word}, {"type": "integer", "minimum": low, "maximum": high}]}


Text = Annotated[str, Parsed(parse_text, {"type": "string", "minLength": 1})]
Name = Annotated[str, Parsed(parse_name, {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME})]
PolicyName = Annotated[
    str, Parsed(parse_policy_name, {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME})
]
ModelName = Annotated[
    str,
    Parsed(
        parse_model_name,
        {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "pattern": "[^.]"},
    ),
]
Address = Annotated[Listener, Parsed(parse_address, _text_schema(ADDRESS_FORM))]
WebAddress = Annotated[str, Parsed(parse_web_address, _text_schema(WEB_FORM, pattern="^https?://"))]
DeviceName = Annotated[str, Parsed(parse_device, {"type": "string"})]
Secret = Annotated[
    SecretRef, Parsed(parse_secret, _text_schema("env:NAME or file:PATH", pattern="^(env|file):"))
]
Key = Annotated[
    SecretRef,
    Parsed(
        parse_key,
        _text_schema("env:NAME, file:PATH or sha256:DIGEST", pattern="^(env|file|sha256):"),
    ),
]
SecretFile = Annotated[SecretRef, Parsed(parse_file_secret, _text_schema("file:PATH", pattern="^file:"))]
Origin = Annotated[str, Parsed(parse_origin, _text_schema(ORIGIN_FORM))]
Source = Annotated[WrittenSource, Parsed(parse_source, _text_schema(SOURCE_FORM))]
Template = Annotated[str, Parsed(parse_template, _text_schema("file: and a path", pattern="^file:"))]
StateDir = Annotated[str | None, Parsed(parse_state_dir, _text_schema('"auto" or a path'))]
Mode = Annotated[str | bool, Parsed(parse_mode, {"anyOf": [{"enum": list(CANONICAL)}, {"type": "boolean"}]})]

SizeLimit = Annotated[
    int, Parsed(limited(parse_size, size_text, 0, LARGEST_SIZE_BYTES), _text_schema(SIZE_FORM))
]
BodyLimit = Annotated[
    int,
    Parsed(limited(parse_size, size_text, SMALLEST_BODY_BYTES, LARGEST_BODY_BYTES), _text_schema(SIZE_FORM)),
]
Duration = Annotated[
    float,
    Parsed(
        limited(parse_duration, duration_text, SHORTEST_DURATION_S, LONGEST_DURATION_S),
        _text_schema(DURATION_FORM),
    ),
]
DurationOrZero = Annotated[
    float,
    Parsed(limited(parse_duration, duration_text, 0.0, LONGEST_DURATION_S), _text_schema(DURATION_FORM)),
]
UnloadAfter = Annotated[float | None, Parsed(parse_unload_after, _text_schema(f'"never" or {DURATION_FORM}'))]
RateLimit = Annotated[Rate, Parsed(parse_rate, _text_schema(RATE_FORM))]
Context = Annotated[
    int | None,
    Parsed(whole_or("auto", 1, LARGEST_CONTEXT), _whole_or_schema("auto", 1, LARGEST_CONTEXT)),
]
Threads = Annotated[
    int | None,
    Parsed(whole_or("auto", -1, MOST_THREADS), _whole_or_schema("auto", -1, MOST_THREADS)),
]
Depth = Annotated[
    int | str,
    Parsed(
        parse_depth,
        {
            "anyOf": [
                {"enum": ["adaptive", "default"]},
                {"type": "integer", "minimum": 1, "maximum": DEEPEST_DRAFT},
            ]
        },
    ),
]

EnvironmentName = Annotated[str, Parsed(parse_environment_name, {"type": "string"})]
EnvironmentPattern = Annotated[str, Parsed(parse_environment_pattern, {"type": "string"})]
EnvironmentValue = Annotated[str, Parsed(parse_environment_value, {"type": "string"})]
Environment = dict[EnvironmentName, EnvironmentValue]
JsonTable = Annotated[dict[str, Any], Parsed(parse_json_table, {"type": "object"})]
RequestFields = Annotated[dict[str, Any], Parsed(parse_request_fields, {"type": "object"})]
KvType = Annotated[str | None, Parsed(parse_kv_type, {"enum": list(KV_TYPES)})]
TensorSplit = Annotated[
    list[float], Parsed(parse_tensor_split, {"type": "array", "items": {"type": "number", "minimum": 0}})
]
