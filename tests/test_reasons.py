"""Every reason that the code can give is explained in docs/reasons.md, and nothing else is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"[a-z][a-z0-9_]*_[a-z0-9_]+|terminated|unkillable")


def codes_in(path: Path) -> Iterator[str]:
    """First arguments of `Reason(...)`, and in the failure tables the first words of what is told."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        first: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Reason" and node.args:
            code = node.args[0]
            first = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
        elif (
            path.name.endswith("failures.py")
            and isinstance(node, ast.Return)
            and isinstance(node.value, ast.Tuple)
        ):
            first = [node.value.elts[0]]
        elif path.name.endswith("failures.py") and isinstance(node, ast.Assign):
            first = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else []
        for value in first:
            if isinstance(value, ast.Constant) and CODE.fullmatch(str(value.value)):
                yield str(value.value)


def test_the_page_explains_exactly_the_reasons_of_the_code() -> None:
    given = {code for path in (ROOT / "framework").rglob("*.py") for code in codes_in(path)}
    page = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([a-z0-9_]+)` \|", page, re.MULTILINE))
    assert explained == given
