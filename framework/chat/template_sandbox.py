"""The Jinja2 environment of chat templates: nothing of Python is in reach, and what grows is counted.

Used by chat.template. Jinja2's own sandbox keeps a template from the machine but not from using it up, so
loop passes, calls, joined texts and new lists go through chat.template_limits.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from framework.chat import template_functions
from framework.chat.template_limits import MAX_CHARS, TemplateError, allow_chars, budget, weighed

_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        (
            *(
                "strip",
                "lstrip",
                "rstrip",
                "split",
                "rsplit",
                "splitlines",
                "startswith",
                "endswith",
                "upper",
            ),
            *("lower", "title", "capitalize", "replace", "find", "rfind", "index", "count", "join", "format"),
            *("isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower", "isnumeric", "isdecimal"),
            *("removeprefix", "removesuffix", "partition", "rpartition", "swapcase", "casefold"),
        )
    ),
    dict: frozenset(("keys", "values", "items", "get", "copy")),
    list: frozenset(("index", "count", "copy")),
    tuple: frozenset(("index", "count", "grouper", "list")),
}
_BOUNDED_METHODS: dict[str, Callable[..., Any]] = {
    "replace": template_functions.replace,
    "join": lambda text, values: template_functions.join(values, text),
}


class GenerationTag(Extension):
    """`{% generation %}` marks what the assistant said, for training; here only its inside counts."""

    tags = {"generation"}  # noqa: RUF012 - as the base class has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The inside without the tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """One for all templates; what a rendering has used up is kept by `template_limits.rendering`."""

    intercepted_binops = frozenset(("+", "*", "**", "%", "-", "/", "//"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[loopcontrols, GenerationTag],
            # Constants would be worked out while the template is read, when nothing is counted.
            optimized=False,
            finalize=_written,
            cache_size=0,
        )
        self.filters = dict(template_functions.FILTERS)
        self.globals = dict(template_functions.GLOBALS)

    def _generate(self, source: nodes.Template, *args: Any, **options: Any) -> str:
        _count_steps(source)
        return super()._generate(source, *args, **options)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Only methods of texts and containers that read, and what Jinja2's own objects offer."""
        for kind, allowed in _METHODS.items():
            if isinstance(obj, kind):
                return attr in allowed
        if isinstance(
            obj, int | float | bytes | set | type | FunctionType | MethodType | BuiltinFunctionType
        ):
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """One step; methods that make texts larger go through their bounded form."""
        budget().step()
        owner, name = getattr(obj, "__self__", None), getattr(obj, "__name__", "")
        if isinstance(owner, str) and (bounded := _BOUNDED_METHODS.get(name)) is not None:
            return weighed(bounded(owner, *args, **kwargs))
        return weighed(super().call(context, obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` with widths that are harmless."""
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            template_functions.check_format(value.__self__)
        return wrapped

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic whose result stays small."""
        if operator == "*":
            size, times = (left, right) if hasattr(left, "__len__") else (right, left)
            if hasattr(size, "__len__") and isinstance(times, int):
                allow_chars(len(size) * max(0, times))
        elif operator == "**" and (abs(right) > 512 or abs(left) > MAX_CHARS):
            raise TemplateError("the chat template makes a number that is too large")
        elif operator == "%" and isinstance(left, str):
            return template_functions.formatted(left, *(right if isinstance(right, tuple) else (right,)))
        return weighed(super().call_binop(context, operator, left, right))

    def count_pass(self, chars: int) -> str:
        """Called by every pass of a loop and at the start of every macro and block."""
        budget().step(chars)
        return ""

    def joined(self, *values: Any) -> str:
        """The operator `~`."""
        parts = [template_functions.text_of(value) for value in values]
        allow_chars(sum(map(len, parts)))
        return "".join(parts)

    def made(self, value: Any) -> Any:
        """A list, tuple or dictionary that the template writes down."""
        budget().step()
        return weighed(value)


@pass_context
def _written(context: Context, value: Any) -> Any:
    """Every value that goes into the output. Taking the context keeps it from running while all is read."""
    if isinstance(value, Undefined):
        return value
    text = template_functions.text_of(value)
    budget().step(len(text))
    return text


def _count_steps(template: nodes.Template) -> None:
    """Puts the counting into the tree of a template."""
    for node in template.find_all(nodes.Stmt):
        if not isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block):
            continue
        chars = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        node.body.insert(0, nodes.ExprStmt(_call("count_pass", [nodes.Const(chars)], node.lineno)))
    _replace(template)


def _replace(node: nodes.Node) -> nodes.Node:
    """Joins and new containers by calls of the environment, from the inside out."""
    for name, value in list(node.iter_fields()):
        if isinstance(value, list):
            setattr(node, name, [_replace(item) if isinstance(item, nodes.Node) else item for item in value])
        elif isinstance(value, nodes.Node):
            setattr(node, name, _replace(value))
    if isinstance(node, nodes.Concat):
        return _call("joined", node.nodes, node.lineno)
    if isinstance(node, nodes.List | nodes.Dict) or (isinstance(node, nodes.Tuple) and node.ctx == "load"):
        return _call("made", [node], node.lineno)
    return node


def _call(method: str, arguments: list[nodes.Expr], line: int) -> nodes.Call:
    call = nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None)
    call.set_lineno(line)
    return call
