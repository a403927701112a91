"""Write python/paddock_native/_core.pyi from the built extension: `write_stub.py`, the package importable.

Run by hand after a change of src/binding, before ruff format; `--check` compares what the two say instead,
and exits 1 when they differ. nanobind's generator spends five lines on every attribute; here each takes one,
and Final says that it is read only.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import paddock_native
from nanobind.stubgen import StubGen  # type: ignore[import-untyped]
from paddock_native import _core

STUB = Path(__file__).parents[1] / "python" / "paddock_native" / "_core.pyi"
HEAD = '''"""Written by tools/write_stub.py. Not for editing."""
# ruff: noqa: A002  (parameters are named as in the core)

import os
from collections.abc import Sequence
from typing import Final

class LoadError(RuntimeError):
    """A stage of loading that failed; `code` names it."""

    code: str
'''


def main(argument: str | None) -> None:
    """Write the stub, or compare it with the one there."""
    text = compact(generated())
    if argument != "--check":
        STUB.write_text(text)
    elif ast.dump(ast.parse(STUB.read_text())) != ast.dump(ast.parse(text)):
        sys.exit(f"{STUB} is out of date: run tools/write_stub.py")


def generated() -> ast.Module:
    """What nanobind's generator says about the extension."""
    generator = StubGen(_core, include_private=True)
    generator.put(_core)
    text: str = generator.get()
    return ast.parse(text)


def compact(module: ast.Module) -> str:
    """The stub's text: one line for each attribute and function, with the docstrings."""
    parts = [HEAD]
    for node in module.body:
        if isinstance(node, ast.ClassDef) and hasattr(paddock_native, node.name):
            parts.append(class_text(node))
        elif isinstance(node, ast.FunctionDef):
            parts.append(function_text(node, ""))
    return "\n".join(parts)


def class_text(node: ast.ClassDef) -> str:
    """A class with its attributes first."""
    settable = {setter_name(item) for item in node.body if setter_name(item)}
    attributes: list[str] = []
    methods: list[str] = []
    for item in node.body:
        if not isinstance(item, ast.FunctionDef) or setter_name(item):
            continue
        if item.decorator_list:
            kind = ast.unparse(item.returns) if item.returns else "object"
            attributes.append(f"    {item.name}: {kind if item.name in settable else f'Final[{kind}]'}\n")
        else:
            methods.append(function_text(item, "    "))
    lines = [f"class {node.name}:\n", f'    """{ast.get_docstring(node)}"""\n', "\n", *methods, *attributes]
    return "".join(lines)


def setter_name(node: ast.stmt) -> str | None:
    """`x` of a function decorated with `x.setter`."""
    if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
        return None
    name = ast.unparse(node.decorator_list[0])
    return name.removesuffix(".setter") if name.endswith(".setter") else None


def function_text(node: ast.FunctionDef, indent: str) -> str:
    """A function or method; its docstring, when there is one, takes the place of the body."""
    returns = ast.unparse(node.returns or ast.Constant(None))
    head = f"{indent}def {node.name}({ast.unparse(node.args)}) -> {returns}:"
    text = ast.get_docstring(node)
    return f"{head} ...\n" if text is None else f'{head}\n{indent}    """{text}"""\n'


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
