"""Functions and filters of chat templates, as Hugging Face's tokenizers offer them, made safe for strangers.

Used by chat.template_sandbox. A filter that isn't here does not exist: the others have no use in a prompt, or
make large texts out of small ones.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import filters
from jinja2.runtime import Undefined
from jinja2.sandbox import safe_range
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import escape

from framework.chat.template_limits import TemplateError, allow_chars, budget, weighed

_PLAIN_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "groupby", "int"),
    *("items", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse"),
    *("select", "selectattr", "sort", "title", "trim", "truncate", "unique", "upper", "urlencode"),
    "wordcount",
)
MAX_INDENT = 64
MAX_ROUND = 20
_WIDTHS = re.compile(r"\d{4,}|\*|\{[^{}]*\{")


def raise_exception(message: Any = "") -> None:
    """How a template refuses a conversation."""
    raise TemplateError(str(message)[:2000] or "the chat template refuses this conversation")


def strftime_now(form: str) -> str:
    """The date and time of here, as the template wants it written."""
    if len(form) > 200:
        raise TemplateError("strftime_now was given a format of more than 200 characters")
    return datetime.datetime.now(datetime.UTC).astimezone().strftime(form)


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without the escapes that HTML would need."""
    if isinstance(value, Undefined):
        raise TemplateError("tojson was given a value that is not defined")
    if indent is not None and not 0 <= int(indent) <= MAX_INDENT:
        raise TemplateError(f"tojson indents by 0 to {MAX_INDENT} characters")
    if separators is not None and sum(len(str(part)) for part in separators) > 16:
        raise TemplateError("tojson was given separators of more than 16 characters")
    try:
        text = json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )
    except (TypeError, ValueError) as error:
        raise TemplateError(f"tojson can't write a value: {error}") from error
    return text


def join(values: Any, d: str = "", attribute: Any = None) -> str:
    """The texts of values with another between them."""
    parts = [text_of(value[attribute] if attribute is not None else value) for value in values]
    allow_chars(sum(map(len, parts)) + len(str(d)) * len(parts))
    return str(d).join(parts)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """`str.replace`, unless the result were too large."""
    text, old, new = text_of(text), text_of(old), text_of(new)
    allow_chars(
        len(text) + max(0, len(new) - len(old)) * min(text.count(old), count if count >= 0 else 1 << 62)
    )
    return text.replace(old, new, count)


def indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Lines moved to the right."""
    text = text_of(text)
    wide = len(width) if isinstance(width, str) else width
    allow_chars(len(text) + (text.count("\n") + 1) * wide)
    return filters.do_indent(text, width, first, blank)


def rounded(value: float, precision: int = 0, method: Any = "common") -> float:
    """Rounding to so many digits."""
    if abs(precision) > MAX_ROUND:
        raise TemplateError(f"round takes up to {MAX_ROUND} digits")
    return filters.do_round(value, precision, method)


def total(values: Any, start: int | float = 0) -> Any:
    """The sum of numbers."""
    if not isinstance(start, int | float):
        raise TemplateError("sum adds numbers")
    return sum(values, start)


def formatted(form: str, *values: Any) -> str:
    """`%` of a text, without widths that make it large."""
    check_format(form)
    return form % tuple(weighed(value) for value in values)


def check_format(form: str) -> None:
    """Refuses widths of four and more digits, and those that come from values."""
    if _WIDTHS.search(form):
        raise TemplateError("a format of the chat template has a width that is too large")


def text_of(value: Any) -> str:
    """A value as it is written into the prompt."""
    if isinstance(value, Namespace | Cycler | Joiner):
        raise TemplateError("the chat template writes a namespace as text")
    return value if type(value) is str else str(weighed(value))


def html_escaped(value: Any) -> str:
    """Only for templates that ask for it."""
    return str(escape(text_of(value)))


def _bounded(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """The filter as one step whose result is weighed."""

    @functools.wraps(filter_)
    def step(*arguments: Any, **options: Any) -> Any:
        budget().step()
        return weighed(filter_(*arguments, **options))

    return step


FILTERS: Mapping[str, Callable[..., Any]] = {
    name: _bounded(filter_)
    for name, filter_ in {
        **{name: filters.FILTERS[name] for name in _PLAIN_FILTERS},
        "tojson": to_json,
        "join": join,
        "replace": replace,
        "indent": indent,
        "round": rounded,
        "sum": total,
        "format": formatted,
        "string": text_of,
        "safe": text_of,
        "e": html_escaped,
        "escape": html_escaped,
    }.items()
}
GLOBALS: Mapping[str, Any] = {
    "raise_exception": raise_exception,
    "strftime_now": strftime_now,
    "range": safe_range,
    "namespace": Namespace,
    "dict": dict,
    "cycler": Cycler,
    "joiner": Joiner,
}
