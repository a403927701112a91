"""One operation of the description: a method of a path. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from framework.api.described import EVENT_STREAM, JSON, Description
from framework.api.openapi.schemas import TEXT, Schema, ref

ERROR = {"description": "Refused or failed.", "content": {JSON: {"schema": ref("Error")}}}
PATH_PARAMETER = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True)
class Operation:
    """What a caller may do. `query` are parameters by name with schema and meaning; `is_open` needs no
    key."""

    path: str
    method: str
    tag: str
    told: Description
    query: Mapping[str, tuple[Schema, str]]
    body: Schema | None = None
    body_type: str = JSON
    needs_body: bool = False
    is_open: bool = False

    def as_json(self) -> dict[str, Any]:
        """The operation object."""
        found: dict[str, Any] = {
            "operationId": _operation_id(self.method, self.path),
            "tags": [self.tag],
            "summary": self.told.summary,
            "parameters": [*_path_parameters(self.path), *_query_parameters(self.query)],
            "responses": {str(self.told.status): _answer(self.told), "default": ERROR},
        }
        if self.is_open:
            found["security"] = []
        if self.body is not None:
            content = {self.body_type: {"schema": self.body}}
            found["requestBody"] = {"required": self.needs_body, "content": content}
        return found


def paths_object(operations: Iterable[Operation]) -> dict[str, Any]:
    """All operations by path and method."""
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = operation.as_json()
    return paths


def _answer(told: Description) -> dict[str, Any]:
    return {
        "description": "Done.",
        "content": {media: _content(media, told.answer) for media in told.media_types},
    }


def _content(media_type: str, answer: str | None) -> dict[str, Any]:
    """A media type object; OpenAPI 3.1 has no schema for the events of a stream."""
    if media_type == EVENT_STREAM:
        return {}
    if media_type != JSON:
        return {"schema": TEXT}
    return {"schema": {} if answer is None else ref(answer)}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in PATH_PARAMETER.findall(path)
    ]


def _query_parameters(query: Mapping[str, tuple[Schema, str]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "schema": schema, "description": meaning}
        for name, (schema, meaning) in query.items()
    ]


def _operation_id(method: str, path: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", path)
    return "_".join([method.lower(), *words])
