"""What help and version texts say (06 §4, §16.3, 14 §3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.help_text import parse_help, parse_version
from framework.values.engine import Capabilities

REAL_HELP = Path(__file__).parents[1] / "data/llama-server-help-b10068.txt"


@pytest.fixture(scope="module")
def real() -> Capabilities:
    return parse_help(REAL_HELP.read_text("utf-8"), exit_code=0)


def caps(*lines: str, exit_code: int | None = 0) -> Capabilities:
    return parse_help("\n".join(lines), exit_code=exit_code)


def test_the_list_may_stand_on_a_continuation_line() -> None:
    found = caps("--spec-type TYPE    types to use,", "         one of none,draft-simple,draft-mtp,ngram-mod")
    assert found.spec_types == ("none", "draft-simple", "draft-mtp", "ngram-mod")
    assert (found.mtp_token, found.conclusive) == ("draft-mtp", True)


def test_the_list_may_stand_in_brackets() -> None:
    assert caps("--spec-type [none|ngram-simple|mtp]  type").spec_types == ("none", "ngram-simple", "mtp")


def test_a_list_outside_of_a_block_is_found_on_the_lines_that_name_the_flag() -> None:
    found = caps("usage: llama-server --spec-type none,mtp", "other: a,b")
    assert (found.spec_types, found.mtp_token) == (("none", "mtp"), "mtp")


@pytest.mark.parametrize(
    ("words", "token"),
    [
        pytest.param("none,draft-mtp,mtp", "draft-mtp", id="long word wins"),
        pytest.param("none|mtp", "mtp", id="bare"),
        pytest.param("none,mtp-like,smtp,mtp_x", None, id="part of another word"),
    ],
)
def test_mtp_token(words: str, token: str | None) -> None:
    assert caps(f"--spec-type {words}  types").mtp_token == token


def test_a_stub_beside_three_new_flags_is_the_new_flavour() -> None:
    found = caps(
        "--draft-max N   the argument has been removed. use --spec-draft-n-max or",
        "                --spec-ngram-mod-n-max",
        "                (env: LLAMA_ARG_DRAFT_MAX)",
        "--spec-ngram-mod-n-match N  match",
        "--spec-ngram-mod-n-min N  min",
        "--spec-ngram-mod-n-max N  max",
    )
    assert (found.ngram_flavour, found.depth_flag) == ("new", None)
    assert found.removed == {"--draft-max": "use --spec-draft-n-max or --spec-ngram-mod-n-max"}


def test_old_flags_are_the_legacy_flavour() -> None:
    found = caps("--spec-ngram-size-n N  n", "--draft, --draft-n, --draft-max N  max", "--draft-min N  min")
    assert (found.ngram_flavour, found.depth_flag) == ("legacy", "--draft-max")


def test_a_removal_sentence_may_be_wrapped() -> None:
    found = caps("--old N     the argument has", "            been removed. use --new")
    assert (found.has("--old"), found.removed) == (False, {"--old": "use --new"})


def test_a_failed_help_keeps_its_flags_but_decides_nothing() -> None:
    found = caps("--spec-type none,draft-mtp  types", "--metrics  metrics", exit_code=1)
    assert (found.mtp_token, found.conclusive, found.has("--metrics")) == ("draft-mtp", False, True)


def test_help_without_speculation_is_conclusive() -> None:
    found = caps("--metrics   metrics")
    assert (found.conclusive, found.mtp_token, found.spec_types) == (True, None, ())


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_an_empty_help_is_inconclusive(text: str) -> None:
    assert parse_help(text, exit_code=0).conclusive is False


def test_an_indented_flag_starts_no_block() -> None:
    assert caps("--real N   text", "  --indented N  more").flags == {"--real"}


def test_a_help_whose_entries_are_all_indented_is_read_and_may_be_incomplete() -> None:
    found = caps(
        "usage: x [options]",
        "  -m,    --model FNAME",
        "                                  the path, see --not-this",
        "         --jinja                  template",
    )
    assert (found.flags, found.short_flags, found.switches) == ({"--model", "--jinja"}, {"-m"}, {"--jinja"})
    assert found.is_partial


def test_a_list_may_be_spoken() -> None:
    found = caps("--spec-type SPEC[:k=v,...]  types: none, draft, mtp,", "      ngram-mod", "    keys: a,b,c")
    assert found.spec_types == ("none", "draft", "mtp", "ngram-mod")


@pytest.mark.parametrize(
    ("line", "switches"),
    [
        pytest.param(
            "-kvu,  --kv-unified, -no-kvu       text", {"-kvu", "--kv-unified", "-no-kvu"}, id="text"
        ),
        pytest.param("--kv-unified", {"--kv-unified"}, id="text on the next line"),
        pytest.param("-c,    --ctx-size N                size", set(), id="value"),
        pytest.param("-fa, --flash-attn (auto|on|off|0|1)", set(), id="words"),
    ],
)
def test_switches_take_no_value(line: str, switches: set[str]) -> None:
    found = caps(line)
    assert found.switches == switches
    assert all(found.takes_value(flag) == (flag not in switches) for flag in found.flags)


def test_all_aliases_of_a_line_are_flags_and_values_are_not() -> None:
    found = caps("-m,   --model, --file <--not-this>, --nor-this   path --nor-that")
    assert found.flags == {"--model", "--file"}


def test_the_drafter_flag_prefers_the_older_name() -> None:
    assert caps("--spec-draft-model, -md, --model-draft F  drafter").drafter_flag == "--model-draft"
    assert caps("--spec-draft-model F  drafter").drafter_flag == "--spec-draft-model"


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("--lora-scaled FNAME:SCALE,...   adapter", "colon"),
        ("--lora-scaled FNAME SCALE   adapter", "pair"),
        ("--lora FNAME   adapter", None),
    ],
)
def test_adapter_form(line: str, form: str | None) -> None:
    assert caps(line).adapter_form == form


def test_builds_that_print_their_memory_by_default_name_no_trace_level() -> None:
    assert caps("-lv, --verbosity N  threshold", "    - 3: info", "    - 4: debug").trace_level is None


def test_the_real_help(real: Capabilities) -> None:
    assert (real.conclusive, real.mtp_token, real.ngram_flavour) == (True, "draft-mtp", "new")
    assert (real.depth_flag, real.drafter_flag) == ("--spec-draft-n-max", "--model-draft")
    assert (real.adapter_form, real.trace_level) == ("colon", 4)
    assert real.spec_types[:3] == ("none", "draft-simple", "draft-eagle3")
    assert len(real.spec_types) == 10


@pytest.mark.parametrize(
    "flag",
    [
        *("--spec-default", "--kv-unified", "--fit", "--fit-ctx", "--fit-target", "--cache-ram"),
        *(
            "--ctx-checkpoints",
            "--no-cache-prompt",
            "--metrics",
            "--slot-save-path",
            "--rpc",
            "--lora-scaled",
        ),
    ],
)
def test_the_real_help_lists(real: Capabilities, flag: str) -> None:
    assert real.has(flag)


@pytest.mark.parametrize("flag", ["--draft", "--draft-max", "--draft-min", "--spec-ngram-size-n"])
def test_the_real_help_has_stubs(real: Capabilities, flag: str) -> None:
    assert not real.has(flag)
    assert real.removed[flag].startswith("use ")


@pytest.mark.parametrize(
    ("text", "version", "build"),
    [
        pytest.param("version: 10360 (90e6a9131)\nbuilt with", "b10360", "b10360-90e6a9131", id="numbered"),
        pytest.param(
            "version: 0.1.1-dev (build 10470, commit abc123)", "0.1.1-dev", "b10470-abc123", id="named"
        ),
        pytest.param("b9000-1a2b3c4d", "b9000", "b9000-1a2b3c4d", id="tagged"),
        pytest.param("ggml: loading\nversion: 0 (unknown)", "b0", "b0-unknown", id="home-made"),
        pytest.param("unknown", "unknown", "unknown", id="unknown"),
        pytest.param("", "unknown", "unknown", id="empty"),
    ],
)
def test_version(text: str, version: str, build: str) -> None:
    assert parse_version(text) == (version, build)


@given(st.text(), st.integers(-15, 255) | st.none())
def test_any_text_is_read(text: str, exit_code: int | None) -> None:
    found = parse_help(text, exit_code=exit_code, version_text=text)
    assert found.flags.isdisjoint(found.removed)


@given(
    st.lists(
        st.sampled_from(["--a", "-b,", "  --c", "argument has been removed", "--spec-type", "none,mtp", "\n"])
    )
)
def test_any_order_of_parts_is_read(parts: list[str]) -> None:
    found = parse_help(" ".join(parts), exit_code=0)
    assert found.flags | set(found.removed) <= {"--a", "--c", "--spec-type"}
