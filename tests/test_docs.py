"""What the documentation shows can be pasted: every manifest in it is valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from framework.manifest.load import check_text

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Keys and files of the reader's machine.
NOT_HERE = {"secret_missing", "model_missing", "file_missing"}
BLOCKS = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, text in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1)
]


@pytest.mark.parametrize("text", BLOCKS)
def test_a_manifest_in_the_documentation_is_valid(text: str, tmp_path: Path) -> None:
    if "[models." not in text and "models = [" in text:
        text += '\n[models.chat]\nsource = "chat.gguf"\n'
    loaded = check_text(tmp_path / "serve.toml", text, {})
    assert [p.sentence for p in loaded.problems if p.code not in NOT_HERE] == []


def test_the_demo_manifest_is_valid_without_a_warning_about_itself() -> None:
    loaded = check_text(ROOT / "serve.toml", (ROOT / "serve.toml").read_text(encoding="utf-8"), {})
    assert [problem.sentence for problem in loaded.problems if problem.code not in NOT_HERE] == []
