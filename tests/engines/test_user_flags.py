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
    assert reason is None or reason.code == "user_flag_rejected"


@pytest.mark.parametrize(
    ("era", "args", "shown", "remedy"),
    [
        pytest.param(
            "new", ["--spec-type none"], "--spec-type …", "Make --spec-type and its value two", id="one token"
        ),
        pytest.param("new", [" --spec-type", "none"], "--spec-type", "as --spec-type.", id="a blank before"),
        pytest.param("new", ["\u2013-spec-type", "x"], "\u2013-spec-type", "as --spec-type.", id="en dash"),
        pytest.param("new", ["\u2014metrics"], "\u2014metrics", "as --metrics.", id="em dash"),
        pytest.param("new", ["--metrics", "1"], "1", "Take it out", id="a value of a switch"),
        pytest.param("new", ["-c", "512", "1024"], "1024", "Take it out", id="a second value"),
        pytest.param("new", ["--metrics", ""], "", "Take it out", id="nothing"),
        pytest.param("new", ["x" * 100], "x" * 60 + "...", "Take it out", id="long"),
        pytest.param("new", ["a\u202eb"], r"a\u202eb", "Take it out", id="what turns text around"),
        pytest.param("plain", ["-fa", "on"], "on", "Take it out", id="a switch in its time"),
    ],
)
def test_what_belongs_to_no_flag_is_named(era: Name, args: list[str], shown: str, remedy: str) -> None:
    reason = refused_flag(args, caps_of(era))
    assert reason is not None
    assert (reason.code, reason.evidence["flag"]) == ("user_flag_rejected", shown)
    assert f'holds "{shown}", which is neither a flag of this engine' in reason.message
    assert remedy in reason.remedy


@pytest.mark.parametrize("args", [["--api-key-file SECRET"], ["--hf-tokenn SECRET"]])
def test_what_stands_behind_a_flag_in_one_token_is_not_repeated(args: list[str]) -> None:
    reason = refused_flag(args, caps_of("new"))
    assert reason is not None
    assert "SECRET" not in f"{reason.message} {reason.remedy} {reason.evidence}"


@pytest.mark.parametrize(
    ("era", "args"),
    [
        pytest.param("new", "--control-vector-layer-range 1 5 --metrics", id="two values"),
        pytest.param("new", "--lora-scaled a.gguf:0.5", id="one value where there may be two"),
        pytest.param("new", "--fim-qwen-1.5b-default", id="a dot in the name"),
        pytest.param("fork", "--flash-attn-what on", id="a help that leaves flags out"),
        pytest.param("new", "--spec-type ngram-mod,ngram-cache", id="types"),
        pytest.param("fork", "--spec-type mtp:n_max=1,p_min=0.0", id="a type with settings"),
    ],
)
def test_what_may_be_a_value_passes(era: Name, args: str) -> None:
    assert refused_flag(args.split(), caps_of(era)) is None


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        pytest.param("ngram-modd", "Did you mean ngram-mod?", id="misspelt"),
        pytest.param("none,mtp", "It has none, draft-simple,", id="of another build"),
        pytest.param("NGRAM-MOD", "Did you mean ngram-mod?", id="in capitals"),
    ],
)
def test_a_type_of_speculation_that_the_build_has_not_is_named(value: str, remedy: str) -> None:
    reason = refused_flag(["--spec-type", value], caps_of("new"))
    assert reason is not None
    assert (reason.code, reason.evidence["flag"]) == ("user_flag_rejected", "--spec-type")
    assert reason.remedy.startswith(remedy)


def test_types_are_not_judged_where_the_probe_is_not_certain() -> None:
    caps = Capabilities(flags=frozenset({"--spec-type"}), spec_types=("none", "ngram-mod"))
    assert refused_flag(["--spec-type", "other", "stray"], caps) is None
