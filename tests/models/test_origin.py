"""Where a file says that it comes from (02 §5.6)."""

from __future__ import annotations

from framework.models.gguf_fields import OriginHints
from framework.models.origin import repositories


def test_repositories_in_order() -> None:
    origin = OriginHints(
        source_url="https://huggingface.co/o/n/tree/main", base_organization="My Org", base_name="A b c"
    )
    assert repositories(origin) == ("o/n", "My-Org/A-b-c")


def test_each_repository_is_named_once() -> None:
    origin = OriginHints(hf_repository="a/b", organization="a", basename="b", base_organization="x")
    assert repositories(origin) == ("a/b",)
