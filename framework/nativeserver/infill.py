"""`/infill`: text between a prefix and a suffix, for models that were trained for it (12 §11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from framework.nativeserver.bridge import EngineBridge
from framework.nativeserver.errors import ApiError
from framework.nativeserver.field_table import fault, wrong_type
from framework.nativeserver.fields import read_generation_off_loop
from framework.nativeserver.native_completion import run_native
from framework.nativeserver.services import services_of
from framework.nativeserver.transport import read_json

MAX_EXTRA = 1024
"""Pieces of further context."""
# The training data of these models names repositories and files; a request has a name for neither.
REPOSITORY_NAME = "myproject\n"
CURRENT_FILE = "filename\n"
UNNAMED_FILE = "tmp"
PLAIN_SEPARATOR = "\n\n--- snippet ---\n\n"
"""Stands between pieces of context where the vocabulary has no token for that."""
RESERVED = 2
"""Tokens that mark prefix and suffix."""


@dataclass(frozen=True)
class Extra:
    """A piece of another file."""

    text: str
    filename: str


@dataclass(frozen=True)
class InfillBody:
    """What is around the gap, and how the filling begins."""

    prefix: str
    suffix: str
    prompt: str
    extra: tuple[Extra, ...]


@dataclass(frozen=True)
class Parts:
    """The same as tokens."""

    prefix: list[int]
    suffix: list[int]
    prompt: list[int]
    extra: list[int]


def refuse_without_tokens(meta: Any) -> None:
    """Raises ApiError naming each token that the vocabulary lacks (12 §11.1)."""
    needed = (("prefix", meta.fim_prefix), ("suffix", meta.fim_suffix), ("middle", meta.fim_middle))
    missing = [f"{name} token is missing." for name, token in needed if token < 0]
    if missing:
        raise ApiError("not_supported", "Infill is not supported by this model: " + " ".join(missing))


def read_infill(body: Mapping[str, Any]) -> InfillBody:
    """The texts of a body. Raises ApiError (12 §11.2)."""
    for name in ("input_prefix", "input_suffix"):
        if body.get(name) is None:
            raise ApiError("invalid_request", f'"{name}" is required')
    return InfillBody(
        _text(body, "input_prefix"), _text(body, "input_suffix"), _text(body, "prompt"), _read_extra(body)
    )


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong_type(name, "string", value)
    return value


def _read_extra(body: Mapping[str, Any]) -> tuple[Extra, ...]:
    entries = body.get("input_extra")
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise wrong_type("input_extra", "array", entries)
    if len(entries) > MAX_EXTRA:
        raise fault("input_extra", f"{len(entries)} entries; at most {MAX_EXTRA} are allowed")
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("text"), str):
            raise fault("input_extra", "every entry must be an object with a string 'text'")
        if not isinstance(entry.get("filename", ""), str | None):
            raise fault("input_extra", "'filename' must be a string")
    return tuple(Extra(entry["text"], entry.get("filename") or UNNAMED_FILE) for entry in entries)


async def tokenize_parts(receive: Receive, body: InfillBody, bridge: EngineBridge) -> Parts:
    """Everything as tokens; texts of the client make no special tokens."""
    n_chars = sum(len(piece.filename) + len(piece.text) for piece in body.extra)
    n_chars += len(body.prefix) + len(body.suffix) + len(body.prompt)
    return await bridge.text_work.run(receive, n_chars, _parts, body, bridge)


def _parts(body: InfillBody, bridge: EngineBridge) -> Parts:
    return Parts(
        prefix=_tokens(body.prefix, bridge),
        suffix=_tokens(body.suffix, bridge),
        prompt=_tokens(body.prompt, bridge),
        extra=_extra_tokens(body.extra, bridge),
    )


def _tokens(text: str, bridge: EngineBridge) -> list[int]:
    return bridge.tokenize(text, add_special=False, parse_special=False)


def _extra_tokens(extra: Sequence[Extra], bridge: EngineBridge) -> list[int]:
    """Further context: as files of a repository where the vocabulary knows those, else as plain text."""
    meta = bridge.meta
    tokens: list[int] = []
    if meta.fim_repository >= 0:
        tokens += [meta.fim_repository, *_tokens(REPOSITORY_NAME, bridge)]
    for piece in extra:
        if meta.fim_separator >= 0:
            tokens += [meta.fim_separator, *_tokens(piece.filename + "\n", bridge)]
        else:
            tokens += _tokens(PLAIN_SEPARATOR, bridge)
        tokens += _tokens(piece.text, bridge)
    if meta.fim_separator >= 0:
        tokens += [meta.fim_separator, *_tokens(CURRENT_FILE, bridge)]
    return tokens


def infill_prompt(parts: Parts, meta: Any, facts: Any, *, n_predict: int, suffix_first: bool) -> list[int]:
    """The prompt in llama-server's order, each part cut to its share of the context.

    The client's prompt goes on with the prefix; other files stand before everything else.
    """
    quarter = facts.n_batch // 4
    n_suffix = max(0, quarter - RESERVED - len(parts.prompt))
    n_extra = max(0, facts.n_ctx_slot - facts.n_batch - 2 * max(0, n_predict))
    prefix = [meta.fim_prefix, *_last(parts.prefix, 3 * quarter), *parts.prompt]
    suffix = [meta.fim_suffix, *parts.suffix[:n_suffix]]
    around = [*suffix, *prefix] if suffix_first else [*prefix, *suffix]
    begin = [meta.bos] if meta.adds_bos and meta.bos >= 0 else []
    return [*_last(parts.extra, n_extra), *begin, *around, meta.fim_middle]


def _last(tokens: list[int], count: int) -> list[int]:
    return tokens[max(0, len(tokens) - count) :]


async def endpoint(request: Request) -> Response:
    """POST `/infill`."""
    services = services_of(request)
    body = await read_json(request)
    bridge = services.bridge
    await bridge.ready_or_wake()
    refuse_without_tokens(bridge.meta)
    infill = read_infill(body)
    params = await read_generation_off_loop(body, services)
    parts = await tokenize_parts(request.receive, infill, bridge)
    prompt = infill_prompt(
        parts,
        bridge.meta,
        bridge.facts,
        n_predict=params.n_predict,
        suffix_first=services.options.spm_infill,
    )
    return await run_native(request, services, body, [prompt], params=params, kind="infill")
