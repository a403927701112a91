"""What the bodies of public routes hold, by route. Pure data.

Only as far as every engine takes it, since further fields are for the engine to judge. A route without an
entry takes an object that may name a model.
"""

from __future__ import annotations

from collections.abc import Mapping

from framework.api.openapi.schemas import Schema, many

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"anyOf": [TEXT, many(TEXT)]}
MODEL: Schema = {
    "type": "string",
    "description": "Id or alias of a model; may be left out where there is one.",
}
STREAM: Schema = {"type": "boolean", "description": "Answer as server-sent events."}
TOKENS: Schema = {"type": "integer", "minimum": 1, "description": "Most tokens to generate."}
MESSAGE: Schema = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"enum": ["user", "assistant"]}, "content": TEXT},
}
MESSAGES: Schema = {**many(MESSAGE), "minItems": 1}
RECORDING: Schema = {"type": "string", "format": "binary", "description": "WAV, FLAC or MP3."}


def _body(*required: str, **fields: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {"model": MODEL, **fields}}


ANY_BODY = _body()
BODIES: Mapping[str, Schema] = {
    "/v1/chat/completions": _body("messages", messages=MESSAGES, stream=STREAM, max_tokens=TOKENS),
    "/v1/completions": _body("prompt", prompt=TEXT, stream=STREAM, max_tokens=TOKENS),
    "/v1/responses": _body("input", input=TEXT, stream=STREAM, max_output_tokens=TOKENS),
    "/v1/messages": _body("messages", messages=MESSAGES, stream=STREAM, max_tokens=TOKENS),
    "/v1/embeddings": _body("input", input=TEXTS),
    "/v1/rerank": _body("query", "documents", query=TEXT, documents=many(TEXT)),
    "/completion": _body("prompt", prompt=TEXT, stream=STREAM, n_predict=TOKENS),
    "/infill": _body("input_prefix", "input_suffix", input_prefix=TEXT, input_suffix=TEXT, stream=STREAM),
    "/embeddings": _body("content", content=TEXTS),
    "/tokenize": _body("content", content=TEXT),
    "/detokenize": _body("tokens", tokens=many({"type": "integer", "minimum": 0})),
    "/apply-template": _body("messages", messages=MESSAGES),
    "/v1/messages/count_tokens": _body("messages", messages=MESSAGES),
    "/v1/responses/input_tokens": _body("input", input=TEXT),
    "/v1/chat/completions/input_tokens": _body("messages", messages=MESSAGES),
}
FORMS: Mapping[str, Schema] = {
    "/v1/audio/transcriptions": _body("file", file=RECORDING, stream=STREAM),
}
"""Bodies that are forms with a file."""
