"""What a client may ask that breaks an engine, or makes it eat all memory, instead of being refused. Pure.

Seen with llama-server b10068: a range whose end is before its start, in a schema or in a pattern of one,
never ends and takes gigabytes; a deep grammar ends the process, and so do triggers of an unknown type; a
window of 2^31 tokens is set aside at once. Called for each body by `request_body`. Raises ProxyError
`invalid_body`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from framework.proxy.errors import ProxyError
from framework.proxy.fields import wrong

SCHEMA_FIELDS = ("response_format", "json_schema", "text", "tools", "output_config")
RANGES = (("minLength", "maxLength"), ("minItems", "maxItems"))
# Engines refuse more repetitions than a few thousand themselves, once they have written them all out.
MOST_REPETITIONS = 100_000
REPETITION = re.compile(r"\{(\d{1,20})(?:,(\d{1,20}))?\}")
WINDOW_FIELDS = ("repeat_last_n", "dry_penalty_last_n")
# More than any context; each takes four bytes in each request.
LONGEST_WINDOW = 2**24
# Grammars that people write are a tenth of this deep; the engine reads them by calling itself.
DEEPEST_GRAMMAR = 200
LONGEST_GRAMMAR = 2**18
# Word, token and the two kinds of patterns of llama-server's lazy grammars.
TRIGGER_TYPES = range(4)


def refuse_hazards(fields: Mapping[str, Any]) -> None:
    """Look at the fields of a body that an engine would not survive, or not in bounds."""
    for name in SCHEMA_FIELDS:
        for node in _objects(fields.get(name)):
            _check_ranges(name, node)
    for name in WINDOW_FIELDS:
        value = fields.get(name)
        if isinstance(value, int | float) and value > LONGEST_WINDOW:
            raise wrong(name, f"a number of tokens up to {LONGEST_WINDOW:,}")
    _check_grammar(fields.get("grammar"))
    _check_triggers(fields.get("grammar_triggers"))


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """All objects in a value, however deep; without recursion, since depth is the client's choice."""
    open_values = [value]
    while open_values:
        found = open_values.pop()
        if isinstance(found, dict):
            yield found
            open_values += found.values()
        elif isinstance(found, list):
            open_values += found


def _check_ranges(field: str, node: Mapping[str, Any]) -> None:
    for least_name, most_name in RANGES:
        least, most = _number(node.get(least_name)), _number(node.get(most_name))
        for name, number in ((least_name, least), (most_name, most)):
            if number is not None and number > MOST_REPETITIONS:
                raise wrong(f"{field}: {name}", f"a number up to {MOST_REPETITIONS:,}")
        if least is not None and most is not None and least > most:
            raise _turned_round(field, f"{least_name} {least} is more than {most_name} {most}")
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        for found in REPETITION.finditer(pattern):
            least, most = int(found[1]), int(found[2] or found[1])
            if max(least, most) > MOST_REPETITIONS:
                raise wrong(f"{field}: pattern", f"a pattern with repetitions up to {MOST_REPETITIONS:,}")
            if least > most:
                raise _turned_round(field, f"the pattern repeats {found[0]}")


def _turned_round(field: str, what: str) -> ProxyError:
    return ProxyError("invalid_body", f"{field}: {what}. A range begins with its smaller number.")


def _check_grammar(grammar: Any) -> None:
    if not isinstance(grammar, str):
        return
    if len(grammar) > LONGEST_GRAMMAR:
        raise wrong("grammar", f"a grammar of up to {LONGEST_GRAMMAR:,} characters")
    if grammar.lstrip().startswith("%llguidance"):
        raise wrong("grammar", "a grammar in GBNF; this engine has no llguidance")
    if grammar.count("(") > DEEPEST_GRAMMAR and _depth(grammar) > DEEPEST_GRAMMAR:
        raise wrong("grammar", f"a grammar with groups up to {DEEPEST_GRAMMAR} deep")


def _depth(grammar: str) -> int:
    """How deep its groups are; brackets in texts, sets and comments are none."""
    depth = deepest = 0
    closing = ""
    is_escaped = False
    for letter in grammar:
        if is_escaped:
            is_escaped = False
        elif closing:
            is_escaped = letter == "\\" and closing != "\n"
            closing = "" if letter == closing else closing
        elif letter in CLOSED_BY:
            closing = CLOSED_BY[letter]
        elif letter == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif letter == ")":
            depth -= 1
    return deepest


CLOSED_BY: Mapping[str, str] = {'"': '"', "[": "]", "#": "\n"}


def _check_triggers(triggers: Any) -> None:
    if triggers is None:
        return
    is_list = isinstance(triggers, list)
    if not is_list or not all(isinstance(one, dict) and _is_trigger(one) for one in triggers):
        known = f"{TRIGGER_TYPES.start} to {TRIGGER_TYPES.stop - 1}"
        raise wrong("grammar_triggers", f"a list of objects with a text `value` and a `type` from {known}")


def _is_trigger(trigger: Mapping[str, Any]) -> bool:
    kind = trigger.get("type")
    is_known = isinstance(kind, int) and not isinstance(kind, bool) and kind in TRIGGER_TYPES
    return is_known and isinstance(trigger.get("value"), str)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
