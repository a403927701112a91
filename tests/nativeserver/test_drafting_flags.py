"""Flags of drafting, of its depth and of the loop guard (11 §18, §19.2, 12 §19)."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from framework.nativeserver.command_line import read
from framework.nativeserver.engine_params import engine_params
from framework.nativeserver.flags import depth, drafters, loop_guard, speculation
from framework.nativeserver.usage_error import UsageError
from framework.planning.speculation import native
from framework.values.engine import Capabilities
from framework.values.request import SpecPolicy
from tests.nativeserver import drafting

MODEL = ("-m", "/m.gguf")
GROUPS = (*speculation.FLAGS, *drafters.MODEL, *drafters.NGRAMS, *depth.FLAGS)
ON_WORDS = {"on": True, "disabled": False, "allow": False}


def drafted(*argv: str, **environ: str) -> dict[str, Any]:
    return dict(read((*MODEL, *argv), environ).options.engine.get("speculation", {}))


def types(*argv: str, **environ: str) -> tuple[str, ...]:
    return read((*MODEL, *argv), environ).options.speculation_types


def fault(*argv: str) -> str:
    with pytest.raises(UsageError) as caught:
        read((*MODEL, *argv), {})
    return str(caught.value)


def test_nothing_is_drafted_unless_asked_for() -> None:
    settings = read(MODEL, {})
    assert "speculation" not in settings.options.engine
    assert (settings.options.speculation_types, settings.warnings) == ((), ())


def test_types_add_up_and_what_is_not_built_is_left_to_the_engine() -> None:
    argv = ("--spec-type", "draft-mtp,ngram-mod", "--spec-type", "none,ngram-cache", "--spec-default")
    assert types(*argv) == ("draft-mtp", "ngram-mod")
    assert drafted(*argv)["types"] == ["draft-mtp", "ngram-mod"]
    assert types("--spec-default", LLAMA_ARG_SPEC_TYPE="draft-simple") == ("draft-simple", "ngram-mod")


@pytest.mark.parametrize("name", speculation.OTHER_TYPES)
def test_types_of_other_builds_are_accepted(name: str) -> None:
    assert types("--spec-type", name) == (name,)


@pytest.mark.parametrize(
    "name", ["mtp", "", "default", "ngram-mod, none", "NONE", "draft-simple,", "\n", "x" * 999]
)
def test_unknown_types_are_refused_with_those_of_this_build(name: str) -> None:
    text = fault("--spec-type", name)
    assert "unknown speculative type: '" in text
    assert "ngram-map-k4v" in text
    assert max(map(len, text.splitlines())) < 300


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("-md", "/d.gguf"), ("draft-simple",)),
        (("--spec-draft-hf", "a/b"), ("draft-simple",)),
        (("-md", "/d.gguf", "--spec-type", "none"), ()),
        (("-md", "/d.gguf", "--spec-type", "ngram-mod"), ("ngram-mod",)),
        (("-md", "/d.gguf", "--spec-default"), ("ngram-mod",)),
    ],
)
def test_a_draft_model_is_used_unless_types_are_named(
    argv: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert types(*argv) == expected


def test_a_draft_repository_is_not_fetched_and_says_so() -> None:
    settings = read((*MODEL, "-hfd", "a/b"), {})
    assert [warning for warning in settings.warnings if "-hfd" in warning and "--spec-draft-model" in warning]
    assert settings.options.engine["speculation"] == {"types": ["draft-simple"]}


@pytest.mark.parametrize("flag", ["--embeddings", "--reranking"])
def test_embeddings_are_not_drafted(flag: str) -> None:
    settings = read((*MODEL, flag, "--spec-type", "ngram-mod"), {})
    assert settings.options.speculation_types == settings.options.undrafted_types == ("ngram-mod",)
    assert "speculation" not in settings.options.engine
    assert any("--spec-type ngram-mod is off" in warning for warning in settings.warnings)


@pytest.mark.parametrize("flag", ["--embeddings", "--reranking"])
def test_a_strict_server_of_embeddings_is_not_asked_to_draft(flag: str) -> None:
    text = fault(flag, "--spec-type", "ngram-mod", "--spec-strict")
    assert "embeddings are not drafted; leave out one of the two" in text
    assert read((*MODEL, flag, "--spec-strict"), {}).warnings == ()


@pytest.mark.parametrize(("name", "meant"), [("ngram", "ngram-mod"), ("mtp", "draft-mtp"), ("x", "")])
def test_an_unknown_type_says_what_is_meant_and_what_would_be_dropped(name: str, meant: str) -> None:
    text = fault("--spec-type", name)
    assert (f"; did you mean {meant}?" in text) is bool(meant)
    dropped = next(line for line in text.splitlines() if line.startswith("accepted and dropped"))
    assert all(kind in dropped for kind in speculation.OTHER_TYPES)


def test_every_flag_reaches_the_core() -> None:
    argv = (
        *("--spec-type", "draft-simple", "-md", "/d.gguf", "-ngld", "7", "-devd", "Vulkan0", "-ctkd", "q8_0"),
        *("-ctvd", "q4_0", "-td", "2", "-tbd", "3", "--spec-draft-n-max", "8", "--spec-draft-n-min", "2"),
        *(
            "--draft-p-min",
            "0.5",
            "--spec-draft-temp",
            "0",
            "--spec-verify",
            "exact",
            "--spec-grammar",
            "block",
        ),
        *("--spec-reduced", "device", "--spec-reduced-drafters", "block"),
        *("--spec-branch-budget", "8", "--spec-draft-topk", "3", "--spec-branch-seqs", "4"),
        *("--draft-p-split", "0.2"),
        *("--spec-strict", "--spec-ngram-mod-n-match", "20", "--spec-ngram-mod-n-min", "5"),
        *("--spec-ngram-simple-size-n", "3", "--spec-ngram-map-k-size-m", "4"),
        *("--spec-ngram-map-k4v-min-hits", "5", "-lcs", "/s", "-lcd", "/d", "--spec-dm-adaptive", "off"),
        *("--spec-dm-controller", "fringe", "--spec-dm-profit-raise", "0.1", "--spec-dm-fringe-min", "0.2"),
    )
    module = SimpleNamespace(EngineParams=drafting.engine_params)
    params = engine_params(module, {"speculation": drafted(*argv)}).speculation
    wanted = drafting.speculation_params()
    wanted.types, wanted.n_max, wanted.n_min, wanted.p_min = ["draft-simple"], 8, 2, 0.5
    wanted.branch_budget, wanted.topk, wanted.branch_seqs, wanted.p_split = 8, 3, 4, 0.2
    wanted.draft_temperature, wanted.verify, wanted.grammar_blocks, wanted.strict = 0.0, "exact", True, True
    wanted.reduced, wanted.reduced_drafters = "device", "block"
    wanted.model = SimpleNamespace(
        path="/d.gguf",
        n_gpu_layers=7,
        devices=["Vulkan0"],
        cache_type_k="q8_0",
        cache_type_v="q4_0",
        n_threads=2,
        n_threads_batch=3,
    )
    wanted.mod.match, wanted.mod.min, wanted.simple.n = 20, 5, 3
    wanted.map_k.m, wanted.map_k4v.min_hits = 4, 5
    wanted.lookup_static, wanted.lookup_dynamic = "/s", "/d"
    wanted.depth.adaptive, wanted.depth.controller, wanted.depth.fringe_min = False, "fringe", 0.2
    wanted.depth.raise_ = 0.1
    assert params == wanted


def shown_defaults(params: Any) -> list[tuple[str, Any, Any]]:
    """Name, what help says and what the core has, of every flag whose default is a value of the core."""
    found = []
    for flag in GROUPS:
        if not flag.default or flag.default.startswith("as --") or flag.default in ("auto", "none"):
            continue
        value: Any = params
        for part in flag.target.split(".")[1:]:
            value = getattr(value, part)
        found.append((flag.names[0], type(value)(ON_WORDS.get(flag.default, flag.default)), value))
    return found


def test_the_defaults_that_help_tells_are_those_of_the_written_core() -> None:
    assert not [row for row in shown_defaults(drafting.speculation_params()) if row[1] != row[2]]
    assert vars(drafting.loop_guard_params()) == loop_guard.DEFAULTS


@pytest.mark.engine
def test_the_defaults_that_help_tells_are_those_of_the_core() -> None:
    core = importlib.import_module("paddock_native")
    shown = shown_defaults(core.EngineParams().speculation)
    assert len(shown) > 30
    assert not [row for row in shown if row[1] != pytest.approx(row[2])]
    guard = core.GenerationParams().loop_guard
    assert {name: getattr(guard, name) for name in loop_guard.DEFAULTS} == loop_guard.DEFAULTS


def test_a_variable_is_the_flag_in_upper_case() -> None:
    found = drafted(
        LLAMA_ARG_SPEC_DM_PROFIT_MIN="0.2", LLAMA_ARG_SPEC_STRICT="on", LLAMA_ARG_SPEC_DM_ADAPTIVE="0"
    )
    assert found == {"depth": {"profit_min": 0.2, "adaptive": False}, "strict": True}


def test_the_usual_lengths_replace_those_before_them() -> None:
    argv = ("--spec-ngram-mod-n-match", "30", "--spec-default", "--spec-ngram-mod-n-max", "80")
    assert drafted(*argv)["mod"] == {"max": 80}


def test_layers_of_a_drafter_are_all_of_them_unless_a_number_is_named() -> None:
    for text, layers in (("auto", -1), ("all", -1), ("-5", -1), ("0", 0)):
        assert drafted("-ngld", text)["model"]["n_gpu_layers"] == layers


def test_a_short_look_up_is_warned_of() -> None:
    argv = (*MODEL, "--spec-ngram-mod-n-match", "8")
    (warning,) = read((*argv, "--spec-default", "--spec-ngram-mod-n-match", "8"), {}).warnings
    assert warning.startswith("--spec-ngram-mod-n-match 8 is small")
    assert read((*argv, "--spec-type", "ngram-simple"), {}).warnings == ()


@pytest.mark.parametrize(
    "argv",
    [
        ("-otd", "a=CPU"),
        ("-cmoed",),
        ("-ncmoed", "3"),
        ("--no-spec-draft-backend-sampling",),
        ("--cpu-mask-draft", "ff"),
    ],
)
def test_flags_without_effect_warn_once(argv: tuple[str, ...]) -> None:
    (warning,) = read((*MODEL, *argv, *argv), {}).warnings
    assert warning.startswith(f"{argv[0]} has no effect here: ")
    assert drafted(*argv) == {}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--spec-draft-n-max", "0"), ("0", "1 to 64")),
        (("--spec-draft-n-max", "65"), ("65", "1 to 64")),
        (("--spec-draft-n-min", "-1"), ("-1", "0 to 64")),
        (("--spec-draft-p-min", "1.1"), ("1.1", "0 to 1")),
        (("--spec-draft-p-split", "2"), ("2", "0 to 1")),
        (("--spec-branch-budget", "65"), ("65", "0 to 64")),
        (("--spec-draft-topk", "0"), ("0", "1 to 10")),
        (("--spec-branch-seqs", "33"), ("33", "1 to 32")),
        (("--spec-draft-temp", "-1"), ("-1", "0 and above", "'auto'")),
        (("--spec-draft-temp", "nan"), ("'nan'", "'auto'")),
        (("--spec-draft-temp", "1e39"), ("'auto'",)),
        (("--spec-verify", "Exact"), ("'Exact'", "match-first")),
        (("--spec-reduced", "gpu"), ("'gpu'", "auto, off, host, device")),
        (("--spec-reduced-drafters", ""), ("''", "all, block")),
        (("--spec-grammar", "on"), ("'on'", "allow, block")),
        (("--spec-dm-adaptive", "maybe"), ("'maybe'", "on, ")),
        (("--spec-dm-controller", "pid"), ("'pid'", "profit, fringe")),
        (("--spec-dm-fringe-window", "65"), ("65", "1 to 64")),
        (("--spec-dm-min-reach", "0"), ("0", "1 to 64")),
        (("--spec-dm-off-dwell", "0"), ("0", "1 and above")),
        (("--spec-dm-probe-fraction", "0"), ("0", "0.01 to 1")),
        (("--spec-dm-profit-min", "0.6"), ("0.6", "0 to 0.5")),
        (("--spec-dm-profit-ewma", "inf"), ("'inf'",)),
        (("--spec-dm-profit-warmup", "65"), ("65", "0 to 64")),
        (("--spec-dm-profit-baseline-interval", "4097"), ("4097", "0 to 4096")),
        (("--spec-dm-probe-interval", "9" * 30), ("whole number",)),
        (("--spec-ngram-mod-n-match", "0"), ("0", "1 to 1024")),
        (("--spec-ngram-map-k-size-n", "1025"), ("1025", "1 to 1024")),
        (("-devd", "none,Vulkan0"), ("'none' stands alone",)),
        (("-ctkd", "q9"), ("'q9'", "q8_0")),
        (("-lcs", ""), ("empty",)),
        (("--reasoning-loop-guard", "on"), ("'on'", "force-close")),
        (("--reasoning-loop-window", "0"), ("0", "1 and above")),
        (("--reasoning-loop-check-interval", "0"), ("0", "1 and above")),
    ],
)
def test_a_value_out_of_range_names_flag_value_and_range(
    argv: tuple[str, ...], words: tuple[str, ...]
) -> None:
    text = fault(*argv)
    assert text.startswith(f'error while handling argument "{argv[0]}": ')
    assert not [word for word in words if word not in text], text


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (
            ("--spec-dm-fringe-min", "0.8"),
            "--spec-dm-fringe-min 0.8 must be less than --spec-dm-fringe-max 0.75",
        ),
        (
            ("--spec-dm-fringe-min", "0.5", "--spec-dm-fringe-max", "0.5"),
            "less than --spec-dm-fringe-max 0.5",
        ),
        (("--spec-draft-n-min", "4"), "--spec-draft-n-min 4 must be at most --spec-draft-n-max 3"),
        (
            ("--spec-ngram-mod-n-max", "40"),
            "--spec-ngram-mod-n-min 48 must be at most --spec-ngram-mod-n-max 40",
        ),
        (
            ("--reasoning-loop-window", "100"),
            "--reasoning-loop-window 100 must be at least --reasoning-loop-min-coverage 192; set both",
        ),
        (
            ("--reasoning-loop-max-period", "129"),
            "--reasoning-loop-max-period 129 must be at most a third of --reasoning-loop-window 384",
        ),
        (
            ("--reasoning-loop-min-tokens", "191"),
            "--reasoning-loop-min-tokens 191 must be at least --reasoning-loop-min-coverage 192",
        ),
    ],
)
def test_two_values_that_do_not_fit_are_both_named(argv: tuple[str, ...], text: str) -> None:
    assert text in fault(*argv)


@pytest.mark.parametrize(
    ("least", "window", "period", "coverage", "is_right"),
    [
        (512, 100, 33, 60, True),
        (512, 100, 34, 60, False),
        (512, 100, 33, 101, False),
        (50, 100, 33, 60, False),
    ],
)
def test_the_numbers_of_the_guard_fit_each_other(
    least: int, window: int, period: int, coverage: int, is_right: bool
) -> None:
    names = ("min-tokens", "window", "max-period", "min-coverage")
    values = (least, window, period, coverage)
    pairs = zip(names, values, strict=True)
    argv = [token for name, value in pairs for token in (f"--reasoning-loop-{name}", str(value))]
    if is_right:
        guard = read((*MODEL, *argv), {}).options.request_defaults["reasoning_loop_guard"]
        assert (guard["window_tokens"], guard["max_period"]) == (window, period)
    else:
        assert fault(*argv).startswith("error: --reasoning-loop-")


def test_the_line_that_the_manager_writes_is_read() -> None:
    flags = (native.ADAPTIVE_FLAG, native.CONTROLLER_FLAG, native.GUARD_FLAG, *native.GUARD_FLAGS.values())
    caps = Capabilities(conclusive=True, version="", build="", flags=frozenset(flags))
    guard = {"mode": "force-close", **{name: loop_guard.DEFAULTS[name] for name in native.GUARD_FLAGS}}
    policy = SpecPolicy(is_adaptive=True, controller="fringe", loop_guard=guard)
    line = (*native.controller_flags(policy, caps), *native.guard_flags(policy, caps))
    settings = read((*MODEL, *line), {})
    assert settings.options.engine["speculation"] == {"depth": {"adaptive": True, "controller": "fringe"}}
    assert settings.options.request_defaults["reasoning_loop_guard"] == guard
    assert settings.warnings == ()
