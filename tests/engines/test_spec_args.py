"""What a user's own arguments say about speculation (05 §4, §13.2-13.5, as 15 §3 mends it)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines import spec_args

ENV_DRAFTER, ENV_REPO = "LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_SPEC_DRAFT_HF_REPO"


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("", ()),
        ("--spec-type mtp --spec-default", ("mtp", "ngram-mod")),
        ("--spec-type ngram-mod --spec-type none", ("ngram-mod",)),
        ("--spec-type none,ngram-mod", ()),
        ("--spec-type ngram-mod,draft-mtp", ("ngram-mod", "draft-mtp")),
        ("--spec-type mtp:n_max=1,p_min=0.0", ("mtp",)),
        ("--spec-type", ()),
        ("--spec-type --metrics", ()),
        ("--spec-draft-n-max 4", ()),
    ],
)
def test_types_add_up(text: str, types: tuple[str, ...]) -> None:
    assert spec_args.spec_types(text.split()) == types


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("--draft-max 4 --spec-draft-n-max 7 --draft-max z", 7),
        ("--spec-draft-n-max 2 --spec-draft-n-max 5", 5),
        ("--spec-draft-n-max --5", None),
        ("--spec-draft-n-max 99999999999999999999", None),
        ("", None),
    ],
)
def test_the_last_depth_that_is_a_number_counts(text: str, depth: int | None) -> None:
    assert spec_args.depth(text.split()) == depth


def test_a_variable_names_the_depth_where_no_flag_does() -> None:
    env = {"LLAMA_ARG_SPEC_DRAFT_N_MAX": "9"}
    assert spec_args.depth((), env) == 9
    assert spec_args.depth(("--draft-max", "4"), env) == 4


@pytest.mark.parametrize(
    ("text", "env", "drafter", "is_file"),
    [
        ("-md a -hfd b", {}, "b", False),
        ("-hfd b --model-draft a", {}, "a", True),
        ("-md -x", {ENV_REPO: "r"}, "r", False),
        ("", {ENV_DRAFTER: "v", ENV_REPO: "r"}, "v", True),
        ("", {}, None, False),
    ],
)
def test_the_drafter_of_a_line(text: str, env: dict[str, str], drafter: str | None, is_file: bool) -> None:
    assert spec_args.drafter(text.split(), env) == drafter
    assert spec_args.is_drafter_file(text.split(), env) is is_file


@pytest.mark.parametrize(
    ("text", "env", "on_cpu"),
    [
        ("-ngld 0", {}, True),
        ("-ngld 0 --spec-draft-ngl 9", {}, False),
        ("-devd cpu,none", {}, True),
        ("-devd cpu,CUDA0", {}, False),
        ("", {"LLAMA_ARG_N_GPU_LAYERS_DRAFT": "0"}, True),
        ("-devd", {}, False),
        ("", {}, False),
    ],
)
def test_a_drafter_that_is_kept_off_the_gpus(text: str, env: dict[str, str], on_cpu: bool) -> None:
    assert spec_args.is_drafter_on_cpu(text.split(), env) is on_cpu


def test_the_caches_of_a_drafter_have_types_of_their_own() -> None:
    """SP-09."""
    args = ["-ctk", "q8_0", "-ctv", "q8_0", "-ctkd", "f32", "--spec-draft-type-v", "q4_0", "-ctkd", "q5_0"]
    assert spec_args.draft_cache_types(args) == ("q5_0", "q4_0")
    variable = {"LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V": "q8_0"}
    assert spec_args.draft_cache_types(("-ctk", "q8_0"), variable) == (None, "q8_0")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("-c 4096 --spec-type draft-mtp --metrics", "-c 4096 --metrics"),
        ("--spec-default --spec-type ngram-mod --spec-type mtp", ""),
        ("-md a.gguf --spec-type draft-simple -ngld 0", "-ngld 0"),
        ("-hfd o/r -t 4", "-t 4"),
        ("-t 4 --spec-type", "-t 4"),
        ("-ctk q8_0", "-ctk q8_0"),
    ],
)
def test_arguments_without_speculation(text: str, left: str) -> None:
    assert spec_args.without_speculation(text.split()) == tuple(left.split())


TOKENS = st.sampled_from(
    [
        "--spec-type",
        "--spec-default",
        "-md",
        "-hfd",
        "mtp",
        "none,ngram-mod",
        "-c",
        "4096",
        "",
        "-ngld",
        "0",
        "-5",
    ]
)


@given(st.lists(TOKENS))
def test_nothing_of_speculation_is_left(args: list[str]) -> None:
    left = spec_args.without_speculation(args)
    assert not spec_args.owns_speculation(left)
    assert spec_args.spec_types(left) == ()
    assert spec_args.drafter(left) is None


@given(
    st.lists(TOKENS | st.text(max_size=8)),
    st.dictionaries(st.sampled_from([ENV_DRAFTER, ENV_REPO]), st.text()),
)
def test_readers_never_fail(args: list[str], env: dict[str, str]) -> None:
    spec_args.spec_types(args)
    spec_args.depth(args, env)
    spec_args.draft_cache_types(args, env)
    spec_args.is_drafter_on_cpu(args, env)
    assert (spec_args.drafter(args, env) is None) <= (not spec_args.is_drafter_file(args, env))
