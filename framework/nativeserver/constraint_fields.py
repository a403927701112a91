"""Request fields that limit what may be generated: grammars, stop strings, reasoning budgets (12 §5.1, §5.3).

Called by nativeserver.fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from framework.chat.gbnf import GrammarError
from framework.chat.gbnf_check import check_grammar
from framework.chat.json_schema import SchemaError, schema_to_gbnf
from framework.nativeserver.errors import ApiError
from framework.nativeserver.field_table import INT32_MAX, Field, fault, lookup, read_field, wrong_type
from framework.nativeserver.task_shapes import TRIGGER_TYPES

MAX_STOP_BYTES = 2**20
"""Of all stop strings together; every token is compared with each of them."""
MAX_STOP_STRINGS = 16_384
MAX_TRIGGERS = 256
MAX_PRESERVED = 1024
MAX_TAGS = 64
MAX_TOKEN_TEXT_BYTES = 4096
"""Of a text that stands for a token, or for a few."""
MAX_TOKEN_TEXTS = 2**20
"""Characters of all such texts of a field. Some texts take seconds to tokenise for a million."""
MAX_REASONING_BYTES = 65_536
"""Of message and tags together; every token is compared with the tags."""
_TRIGGER_KINDS = tuple(TRIGGER_TYPES)

REASONING_FIELDS: tuple[Field, ...] = (
    Field(("reasoning_budget_tokens",), "integer", "budget_tokens", -1, INT32_MAX),
    Field(("reasoning_budget_message",), "string", "message"),
    Field(("reasoning_budget_start_tag",), "string", "start_tag"),
    Field(("reasoning_control",), "boolean", "controllable"),
    Field(("reasoning_format",), "string"),
)
Tokenize = Callable[[str], list[int]]


def read_constraints(
    sampling: Any, body: Mapping[str, Any], defaults: Mapping[str, Any], module: Any, tokenize: Tokenize
) -> None:
    """Sets grammar, triggers, preserved tokens and reasoning budget of SamplingParams. Raises ApiError.

    `tokenize` reads the texts of special tokens as those tokens.
    """
    if (grammar := read_grammar(body, defaults)) is not None:
        sampling.grammar = grammar
    lazy = read_field(Field(("grammar_lazy",), "boolean"), body, defaults)
    if lazy is not None:
        sampling.grammar_lazy = lazy
    if (found := lookup(body, ("preserved_tokens",))) is not None:
        sampling.preserved_tokens = preserved_tokens(found[1], tokenize)
    if (found := lookup(body, ("grammar_triggers",))) is not None:
        preserved = frozenset(sampling.preserved_tokens)
        sampling.grammar_triggers = triggers(found[1], module.GrammarTrigger, preserved, tokenize)
    if lazy and not sampling.grammar_triggers:
        raise fault("grammar_lazy", "needs grammar_triggers that say when the grammar begins")
    _read_reasoning(sampling.reasoning, body, defaults)


def read_grammar(body: Mapping[str, Any], defaults: Mapping[str, Any]) -> str | None:
    """The grammar of the body, of its JSON schema, or the server's; None: none of them."""
    for source in (body, defaults):
        grammar = read_field(Field(("grammar",), "string"), source, {})
        schema = source.get("json_schema")
        if grammar and schema is not None:
            raise ApiError("invalid_request", "Either 'grammar' or 'json_schema' can be used, not both")
        if schema is not None:
            try:
                return schema_to_gbnf(schema)
            except SchemaError as error:
                raise fault("json_schema", str(error)) from error
        if grammar:
            try:
                # Some texts hang the parser of the engine instead of failing in it.
                check_grammar(str(grammar))
            except GrammarError as error:
                raise ApiError("invalid_request", f"Failed to initialize samplers: {error}") from error
            return str(grammar)
    return None


def stop_strings(value: Any) -> list[str]:
    """One text or a list of them; empty ones say nothing and are left out."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, Sequence):
        raise wrong_type("stop", "string or array", value)
    if len(words) > MAX_STOP_STRINGS:
        raise fault("stop", f"{len(words)} strings; at most {MAX_STOP_STRINGS} are allowed")
    for word in words:
        if not isinstance(word, str):
            raise wrong_type("stop", "array of strings", word)
    n_bytes = sum(len(word.encode()) for word in words)
    if n_bytes > MAX_STOP_BYTES:
        raise fault("stop", f"{n_bytes} bytes; all strings together may have at most {MAX_STOP_BYTES}")
    return [word for word in words if word]


def preserved_tokens(value: Any, tokenize: Tokenize) -> list[int]:
    """Ids of the texts that are one token; others can't be shown specially and are left out."""
    if not isinstance(value, list | tuple):
        raise fault("preserved_tokens", "must be an array of strings")
    if len(value) > MAX_PRESERVED:
        raise fault("preserved_tokens", f"{len(value)} strings; at most {MAX_PRESERVED} are allowed")
    if not all(isinstance(text, str) for text in value):
        raise fault("preserved_tokens", "must be an array of strings")
    refuse_many_texts("preserved_tokens", value)
    found = [tokenize(short_text("preserved_tokens", text)) for text in value]
    return [tokens[0] for tokens in found if len(tokens) == 1]


def short_text(name: str, text: str) -> str:
    """The text, which names a token. Raises ApiError when it is too long for that."""
    n_bytes = len(text.encode())
    if n_bytes > MAX_TOKEN_TEXT_BYTES:
        raise fault(name, f"a text of {n_bytes} bytes; each may have at most {MAX_TOKEN_TEXT_BYTES}")
    return text


def refuse_many_texts(name: str, texts: Iterable[str]) -> None:
    """Raises ApiError when texts that name tokens are too long together, before they are tokenised."""
    n_chars = sum(map(len, texts))
    if n_chars > MAX_TOKEN_TEXTS:
        raise fault(name, f"texts of {n_chars} characters; together they may have at most {MAX_TOKEN_TEXTS}")


def triggers(value: Any, trigger: Any, preserved: frozenset[int], tokenize: Tokenize) -> list[Any]:
    """What starts a lazy grammar: objects {`type`, `value`, `token`}.

    `type` is 0 for a token, 1 for a word, 2 for a pattern, 3 for a pattern that fits the whole text. A word
    that is one token is watched for as that token, which has to be a preserved one: otherwise its text would
    never be seen.
    """
    if not isinstance(value, list | tuple):
        raise wrong_type("grammar_triggers", "array", value)
    if len(value) > MAX_TRIGGERS:
        raise fault("grammar_triggers", f"{len(value)} entries; at most {MAX_TRIGGERS} are allowed")
    return [_trigger(entry, trigger, preserved, tokenize) for entry in value]


def _trigger(entry: Any, trigger: Any, preserved: frozenset[int], tokenize: Tokenize) -> Any:
    name = "grammar_triggers"
    if not isinstance(entry, Mapping):
        raise wrong_type(name, "array of objects", entry)
    number, text, token = entry.get("type"), entry.get("value", ""), entry.get("token")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(_TRIGGER_KINDS):
        raise fault(name, "'type' must be 0 (token), 1 (word), 2 (pattern) or 3 (whole pattern)")
    if not isinstance(text, str):
        raise fault(name, "'value' must be a string")
    short_text(name, text)
    kind = _TRIGGER_KINDS[number]
    if kind == "token":
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token <= INT32_MAX:
            raise fault(name, "'token' must be a token id")
        return trigger(kind=kind, value=text, token=token)
    if kind == "word" and len(tokens := tokenize(text)) == 1:
        if tokens[0] not in preserved:
            raise fault(name, f"the word {text!r:.80} is one token and has to be one of preserved_tokens")
        return trigger(kind="token", value=text, token=tokens[0])
    return trigger(kind=kind, value=text)


def _read_reasoning(reasoning: Any, body: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    for field in REASONING_FIELDS:
        value = read_field(field, body, defaults)
        if value is not None and field.target is not None:
            setattr(reasoning, field.target, value)
    if (found := lookup(body, ("reasoning_budget_end_tags",))) is not None:
        tags = [found[1]] if isinstance(found[1], str) else found[1]
        form = "must be a string or an array of strings"
        if not isinstance(tags, list | tuple):
            raise fault("reasoning_budget_end_tags", form)
        if len(tags) > MAX_TAGS:
            raise fault("reasoning_budget_end_tags", f"{len(tags)} tags; at most {MAX_TAGS} are allowed")
        if not all(isinstance(tag, str) for tag in tags):
            raise fault("reasoning_budget_end_tags", form)
        reasoning.end_tags = [tag for tag in tags if tag]
    n_bytes = sum(len(text.encode()) for text in reasoning_texts(reasoning))
    if n_bytes > MAX_REASONING_BYTES:
        raise fault(
            "reasoning_budget_message",
            f"{n_bytes} bytes with the tags; together they may have at most {MAX_REASONING_BYTES}",
        )


def reasoning_texts(reasoning: Any) -> list[str]:
    """Everything of ReasoningParams that a client can make long."""
    return [reasoning.message, reasoning.start_tag, *reasoning.end_tags]
