"""What the names of types say (14 §2)."""

from __future__ import annotations

import pytest

from framework.values.speculation import drafts_by_model, needs_drafter


@pytest.mark.parametrize(
    "running",
    [
        *("draft-mtp", "draft-simple", "draft-eagle3", "draft-dflash", "draft-newest"),
        *("mtp", "draft", "eagle3", "dflash", "ngram-mod, draft-mtp", "ngram-mod,mtp"),
    ],
)
def test_a_head_or_another_model_drafts(running: str) -> None:
    assert drafts_by_model(running)


@pytest.mark.parametrize(
    "running", [None, "", "none", "default", "user", "ngram-mod", "ngram-simple,ngram-cache", "drafty"]
)
def test_no_model_drafts(running: str | None) -> None:
    assert not drafts_by_model(running)


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("draft-simple", True),
        ("draft-dspark", True),
        ("eagle3", True),
        ("draft-mtp", False),
        ("ngram-mod", False),
    ],
)
def test_types_that_need_a_drafter(name: str, needed: bool) -> None:
    assert needs_drafter((name,)) is needed
