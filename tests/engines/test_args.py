"""What extra arguments say (06 §5.3, 03 §2.11, 05 §4.1)."""

from __future__ import annotations

import pytest

from framework.engines import args
from framework.engines.spec_args import owns_speculation


@pytest.mark.parametrize(
    ("extra", "expected"),
    [([], 512), (["-c", "1024"], 1024), (["-c", "1", "--ctx-size", "2"], 2), (["-c", "many"], 512)],
)
def test_context(extra: list[str], expected: int) -> None:
    assert args.context(extra, 512) == expected


@pytest.mark.parametrize(
    ("reader", "owner", "other"),
    [
        pytest.param(owns_speculation, ["--spec-default"], ["--spec-draft-n-max", "2"], id="spec"),
        pytest.param(args.names_hub_repo, ["-hfd", "a/b"], ["-md", "x.gguf"], id="hub"),
    ],
)
def test_ownership(reader: object, owner: list[str], other: list[str]) -> None:
    assert callable(reader)
    assert (reader(owner), reader(other), reader([])) == (True, False, False)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        pytest.param([], "auto", id="default"),
        pytest.param(["-fa"], "on", id="bare"),
        pytest.param(["-fa", "off"], "off", id="off"),
        pytest.param(["--flash-attn", "bogus"], "auto", id="unknown word"),
        pytest.param(["--flash-attn", "OFF"], "auto", id="case counts"),
        pytest.param(["-fa", "0", "-fa", "enabled"], "on", id="last wins"),
        pytest.param(["-fa", "off", "-fa", "-1"], "auto", id="auto as a number"),
        pytest.param(["-fa", "--metrics"], "on", id="a flag is no value"),
    ],
)
def test_flash_attention(extra: list[str], expected: str) -> None:
    assert args.flash_attention(extra, "auto") == expected


def test_cache_types_are_read_per_axis_and_lower_cased() -> None:
    extra = ["-ctk", "q4_0", "--cache-type-k", " Q8_0", "-ctv"]
    assert args.cache_type(extra, args.K_TYPE_FLAGS) == "q8_0"
    assert args.cache_type(extra, args.V_TYPE_FLAGS) is None
