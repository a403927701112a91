"""A user's own arguments are checked against the build before anything is started (05 §4.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.user_flags import refused_flag
from framework.values.engine import Capabilities
from tests.engines.eras import caps_of
from tests.engines.requests import caps_with
from tests.fake_engine.eras import Name


@pytest.mark.parametrize(
    ("era", "args", "flag", "remedy"),
    [
        pytest.param(
            "new",
            "--draft-max 4",
            "--draft-max",
            "The engine says: use --spec-draft-n-max or --spec-ngram-mod-n-max",
            id="stub",
        ),
        pytest.param("newest", "--no-mmap", "--no-mmap", "This engine calls it --load-mode none.", id="gone"),
        pytest.param("newest", "-ndio", "-ndio", "This engine calls it --load-mode mmap.", id="short, gone"),
        pytest.param(
            "new", "--load-mode none", "--load-mode", "This engine calls it --no-mmap.", id="not yet there"
        ),
        pytest.param(
            "old",
            "-c 512 --spec-draft-n-max 4",
            "--spec-draft-n-max",
            "This engine calls it --draft-max.",
            id="behind others",
        ),
        pytest.param("new", "--no-warmupp", "--no-warmupp", "Did you mean --no-warmup?", id="misspelt"),
        pytest.param(
            "new", "-xyz 3", "-xyz", "Remove it, or use an engine that knows it.", id="short, unknown"
        ),
        pytest.param(
            "plain",
            "--fit off",
            "--fit",
            "Remove it, or use an engine that knows it.",
            id="not yet thought of",
        ),
    ],
)
def test_a_flag_that_would_end_the_start_is_named(era: Name, args: str, flag: str, remedy: str) -> None:
    reason = refused_flag(args.split(), caps_of(era))
    assert reason is not None
    assert (reason.code, reason.severity, reason.evidence["flag"]) == ("user_flag_rejected", "error", flag)
    assert f"holds {flag}, which this engine ({caps_of(era).version})" in reason.message
    assert reason.remedy == remedy


@pytest.mark.parametrize(
    ("era", "args"),
    [
        pytest.param("new", "-ot exps=CPU -ngl 5 --no-mmap", id="known"),
        pytest.param("new", "-ngl -1 --temp -0.5", id="numbers"),
        pytest.param("new", "--reverse-prompt --stop-here -c 512", id="a value that looks like a flag"),
        pytest.param("old", "--draft-max 4 -cd 2048", id="of its own time"),
        pytest.param("newest", "--load-mode dio", id="of the newest time"),
        pytest.param("fork", "-fmoe --n-gpu-layers 3", id="a help that leaves flags out decides nothing"),
        pytest.param("new", "", id="none"),
    ],
)
def test_what_a_build_may_know_passes(era: Name, args: str) -> None:
    assert refused_flag(args.split(), caps_of(era)) is None


def test_an_inconclusive_probe_refuses_nothing_but_stubs() -> None:
    caps = Capabilities(flags=frozenset({"--model"}), removed={"--old": ""})
    assert refused_flag(["--nonsense"], caps) is None
    reason = refused_flag(["--old"], caps)
    assert reason is not None
    assert reason.remedy == "Remove it from engine_args."


def test_short_flags_pass_where_none_is_known() -> None:
    assert refused_flag(["-zz"], caps_with("--model")) is None


@given(st.lists(st.text(max_size=12) | st.sampled_from(["-ngl", "--spec-type", "--no-mmap", "-", "--"])))
def test_any_arguments_are_read(args: list[str]) -> None:
    reason = refused_flag(args, caps_of("new"))
    assert reason is None or reason.evidence["flag"] in args
