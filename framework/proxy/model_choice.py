"""Which model a request means: path prefix before query before body, compared exactly (08 §2.1). Pure."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from framework.proxy.access import may_use
from framework.proxy.errors import ProxyError
from framework.proxy.fleet import Fleet
from framework.values.manifest import AccessKey, Manifest
from framework.values.plain_text import visible
from framework.values.request import ModelRequest

# Longer names are wrong anyway; comparing and repeating them would only cost time and space.
LONGEST_COMPARED = 200
LONGEST_SHOWN = 80
SUGGESTIONS = 3
# difflib's measure of likeness: below this, names have little in common but letters.
LIKENESS = 0.6


@dataclass(frozen=True)
class ModelChoice:
    """A model that the caller may use. `asked` is the name in the request; answers carry it as `model`."""

    id: str
    asked: str
    request: ModelRequest


def choose_model(
    name: object, *, manifest: Manifest, fleet: Fleet, key: AccessKey | None, param: str = "model"
) -> ModelChoice:
    """The model with this id or alias; with no name the only one there is.

    Raises ProxyError: `invalid_body` for what cannot be a name, `model_required`, `model_not_found` with
    the nearest names that the key may use, `model_not_allowed`.
    """
    if name is None or name == "":
        name = _only_model(manifest)
    if not isinstance(name, str):
        raise ProxyError("invalid_body", f"`model` must be text, not {_json_type(name)}.", param=param)
    if any(unicodedata.category(character) == "Cc" for character in name[: LONGEST_COMPARED + 1]):
        raise ProxyError("invalid_body", "`model` contains control characters.", param=param)
    model_id = fleet.resolve(name) if len(name) <= LONGEST_COMPARED else None
    request = manifest.models.get(model_id) if model_id is not None else None
    if model_id is None or request is None:
        raise _unknown(name, _usable_names(manifest, key), param)
    if not may_use(key, request):
        message = f"This access key may not use model {shown(name)}."
        raise ProxyError("model_not_allowed", message, param=param)
    return ModelChoice(model_id, name, request)


def shown(name: str) -> str:
    """A name of a client, quoted, cut, and with nothing hidden in it."""
    cut = name if len(name) <= LONGEST_SHOWN else name[:LONGEST_SHOWN] + "..."
    escaped = cut.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{visible(escaped)}"'


def nearest_names(name: str, names: Iterable[str]) -> list[str]:
    """Up to three of `names` that look like `name`, the likest first; case and blanks around do not count."""
    if len(name) > LONGEST_COMPARED:
        return []
    by_folded: dict[str, str] = {}
    for candidate in names:
        by_folded.setdefault(candidate.strip().casefold(), candidate)
    wanted = name.strip().casefold()
    return [by_folded[hit] for hit in difflib.get_close_matches(wanted, by_folded, SUGGESTIONS, LIKENESS)]


def _only_model(manifest: Manifest) -> str:
    if len(manifest.models) == 1:
        return next(iter(manifest.models))
    raise ProxyError(
        "model_required",
        "The request names no model. Give one that GET /v1/models lists, as `model` of the body, as "
        "`?model=` or by the path /m/NAME/.",
        param="model",
    )


def _usable_names(manifest: Manifest, key: AccessKey | None) -> list[str]:
    usable = [request for request in manifest.models.values() if may_use(key, request)]
    return [name for request in usable for name in (request.id, *request.live.aliases)]


def _unknown(name: str, names: list[str], param: str) -> ProxyError:
    near = ", ".join(shown(hit) for hit in nearest_names(name, names))
    advice = f"Nearest names: {near}." if near else "GET /v1/models lists the names."
    return ProxyError("model_not_found", f"There is no model {shown(name)}. {advice}", param=param)


def _json_type(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "this")
