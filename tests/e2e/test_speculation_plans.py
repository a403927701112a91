"""`paddock plan --json` for every mode against builds of all times: the flags and the reasons of 05 §6-§9.

One manifest holds a model for each case. Every build plans it once; what follows are its lines. All expected
values are written by hand from the rules that are named beside them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.models.gguf_bytes import STRING, U32, Tensor, gguf, pair
from tests.support.fakes import write_fake_engine
from tests.support.paddock import run_command

NEW_KNOBS = " --spec-ngram-mod-n-match 24 --spec-ngram-mod-n-min 48 --spec-ngram-mod-n-max 64"
OLD_KNOBS = " --spec-ngram-size-n 24 --draft-min 48 --draft-max 64"
NGRAM = "--spec-type ngram-mod"
# Builds that say what types they have, those that do not, and what is known of each.
HEADS = ("lists", "new", "newest")
NO_HEADS = ("plain", "old", "renamed")
NEW_FLAGS = ("renamed", *HEADS)
CONCLUSIVE = (*NO_HEADS, *HEADS, "fork")
SILENT = ("empty",)
FAILING = ("fails",)
BUILDS = (*CONCLUSIVE, *SILENT, *FAILING)


@dataclass(frozen=True)
class Case:
    """One model of the manifest."""

    file: str
    policy: str
    more: str = ""


CASES: Mapping[str, Case] = {
    "off": Case("plain", 'mode = "off"'),
    "auto": Case("plain", 'mode = "auto"'),
    "ngram": Case("plain", 'mode = "ngram"'),
    "ngram-simple": Case("plain", 'mode = "ngram-simple"'),
    "mtp": Case("head", 'mode = "mtp"'),
    "mtp-deeper": Case("head", 'mode = "mtp"\ndepth = 5'),
    "mtp-small": Case("small", 'mode = "mtp"'),
    "mtp-without": Case("plain", 'mode = "mtp"'),
    "mtp-drafter": Case("plain", 'mode = "mtp"\ndraft = "mtp-drafter.gguf"'),
    "both": Case("head", 'mode = "mtp+ngram"'),
    "both-without": Case("plain", 'mode = "mtp+ngram"'),
    "auto-head": Case("head", 'mode = "auto"'),
    "auto-small": Case("small", 'mode = "auto"'),
    "auto-latent": Case("latent", 'mode = "auto"'),
    "auto-latent-allowed": Case("latent", 'mode = "auto"\nallow_mla = true'),
    "auto-family": Case("gemma-4-E4B-it", 'mode = "auto"'),
    "auto-drafter": Case("plain", 'mode = "auto"\ndraft = "drafter.gguf"'),
    "draft": Case("plain", 'mode = "draft"\ndraft = "drafter.gguf"'),
    "draft-deeper": Case("plain", 'mode = "draft"\ndraft = "drafter.gguf"\ndepth = 4'),
    "draft-without": Case("plain", 'mode = "draft"'),
    "eagle3": Case("plain", 'mode = "eagle3"\ndraft = "eagle3.gguf"'),
    "dflash": Case("plain", 'mode = "dflash"\ndraft = "dflash.gguf"'),
    "own": Case("plain", 'mode = "off"', 'engine_args = ["--spec-type", "ngram-simple"]'),
    "own-mapping": Case("plain", 'mode = "off"', 'engine_args = ["--no-mmap"]'),
    "own-depth": Case("plain", 'mode = "off"', 'engine_args = ["--spec-draft-n-max", "3"]'),
}

# Case, builds, the block of the line (`DIR` is the folder of the files), the reason, the notes.
TABLE: tuple[tuple[str, tuple[str, ...], str, str, str], ...] = (
    ("off", BUILDS, "", "", ""),  # D3
    # D22: the engine's default where it has one.
    ("auto", (*NO_HEADS, "fork"), "", "", "spec_default_unsupported"),
    ("auto", (*HEADS, *SILENT, *FAILING), "--spec-default", "", ""),
    # D6, D7
    ("ngram", ("plain",), "", "", "ngram_unsupported"),
    ("ngram", ("old",), NGRAM + OLD_KNOBS, "", ""),
    ("ngram", (*NEW_FLAGS, *FAILING), NGRAM + NEW_KNOBS, "", ""),
    ("ngram", ("fork", *SILENT), NGRAM, "", "ngram_knobs_missing"),
    # D4, D5
    ("ngram-simple", ("plain",), "", "", "ngram_unsupported"),
    (
        "ngram-simple",
        tuple(build for build in BUILDS if build != "plain"),
        "--spec-type ngram-simple",
        "",
        "",
    ),
    # D11 by §7.2
    ("mtp", NO_HEADS, "", "binary_no_mtp", "spec_default_unsupported"),
    ("mtp", (*HEADS, *FAILING), "--spec-type draft-mtp --spec-draft-n-max 3", "", ""),
    ("mtp", ("fork",), "--spec-type mtp", "", "depth_flag_missing"),
    ("mtp", SILENT, "--spec-default", "", "probe_inconclusive"),
    ("mtp-deeper", HEADS, "--spec-type draft-mtp --spec-draft-n-max 5", "", ""),
    # D10
    ("mtp-small", HEADS, "--spec-type draft-mtp --spec-draft-n-max 3", "", "head_too_small_forced"),
    # D8, D12
    ("mtp-without", HEADS, "--spec-default", "", "model_not_mtp"),
    ("mtp-without", NO_HEADS, "", "", "model_not_mtp spec_default_unsupported"),
    ("both-without", NEW_FLAGS, NGRAM + NEW_KNOBS, "", "model_not_mtp"),
    ("both-without", ("plain",), "", "", "model_not_mtp ngram_unsupported"),
    # A drafter that works as a head.
    (
        "mtp-drafter",
        HEADS,
        "--model-draft DIR/mtp-drafter.gguf --spec-type draft-mtp --spec-draft-n-max 3",
        "",
        "",
    ),
    (
        "mtp-drafter",
        ("fork",),
        "--model-draft DIR/mtp-drafter.gguf --spec-type mtp",
        "",
        "depth_flag_missing",
    ),
    ("mtp-drafter", NO_HEADS, "", "binary_no_mtp", "spec_default_unsupported"),
    # D15, D18 without a GPU: n-grams in front.
    *(
        row
        for case in ("both", "auto-head", "auto-latent-allowed")
        for row in (
            (case, HEADS, "--spec-type ngram-mod,draft-mtp --spec-draft-n-max 3" + NEW_KNOBS, "", ""),
            (case, NO_HEADS, "", "binary_no_mtp", "spec_default_unsupported"),
            (case, ("fork",), "--spec-type mtp", "", "ngram_knobs_missing depth_flag_missing"),
            (case, SILENT, "--spec-default", "", "probe_inconclusive"),
        )
    ),
    # D20, D21
    ("auto-small", ("old",), NGRAM + OLD_KNOBS, "", "head_too_small"),
    ("auto-small", NEW_FLAGS, NGRAM + NEW_KNOBS, "", "head_too_small"),
    ("auto-small", ("plain", "fork"), "", "", "head_too_small"),
    # D16
    ("auto-latent", ("old",), NGRAM + OLD_KNOBS, "mla_mtp_disabled", ""),
    ("auto-latent", NEW_FLAGS, NGRAM + NEW_KNOBS, "mla_mtp_disabled", ""),
    ("auto-latent", ("plain", "fork"), "", "mla_mtp_disabled", ""),
    # D17, D23 by §7.6
    *(
        row
        for case in ("auto-family", "draft-without")
        for row in (
            (case, ("old",), NGRAM + OLD_KNOBS, "drafter_not_found", ""),
            (case, NEW_FLAGS, NGRAM + NEW_KNOBS, "drafter_not_found", ""),
            (case, ("plain", "fork"), "", "drafter_not_found", "spec_default_unsupported"),
            (case, SILENT, "--spec-default", "drafter_not_found", ""),
        )
    ),
    # D24, D25
    *(
        row
        for case in ("draft", "auto-drafter")
        for row in (
            (case, ("plain", "old"), "", "binary_no_draft_type", ""),
            (case, ("renamed", "fork"), "--model-draft DIR/drafter.gguf --spec-type draft", "", ""),
            (
                case,
                (*HEADS, *SILENT, *FAILING),
                "--model-draft DIR/drafter.gguf --spec-type draft-simple",
                "",
                "",
            ),
        )
    ),
    (
        "draft-deeper",
        ("renamed",),
        "--model-draft DIR/drafter.gguf --spec-type draft --spec-draft-n-max 4",
        "",
        "",
    ),
    (
        "draft-deeper",
        (*HEADS, *SILENT),
        "--model-draft DIR/drafter.gguf --spec-type draft-simple --spec-draft-n-max 4",
        "",
        "",
    ),
    (
        "draft-deeper",
        ("fork",),
        "--model-draft DIR/drafter.gguf --spec-type draft",
        "",
        "depth_flag_missing",
    ),
    ("eagle3", ("renamed",), "--model-draft DIR/eagle3.gguf --spec-type eagle3", "", ""),
    ("eagle3", (*HEADS, *SILENT), "--model-draft DIR/eagle3.gguf --spec-type draft-eagle3", "", ""),
    ("eagle3", ("plain", "old", "fork"), "", "binary_no_draft_type", ""),
    (
        "dflash",
        ("new", "newest", *SILENT),
        "--model-draft DIR/dflash.gguf --spec-type draft-dflash",
        "",
        "",
    ),
    ("dflash", (*NO_HEADS, "lists", "fork"), "", "binary_no_draft_type", ""),
    # D1
    (
        "own",
        tuple(build for build in BUILDS if build != "plain"),
        "--spec-type ngram-simple",
        "",
        "",
    ),
)
# What a GPU changes: depth 2, no n-grams in front (D18), and a drafter is told where it goes.
ACCELERATED: tuple[tuple[str, str], ...] = (
    ("mtp", "--spec-type draft-mtp --spec-draft-n-max 2"),
    ("mtp-deeper", "--spec-type draft-mtp --spec-draft-n-max 5"),
    ("auto-head", "--spec-type draft-mtp --spec-draft-n-max 2"),
    ("both", "--spec-type ngram-mod,draft-mtp --spec-draft-n-max 2" + NEW_KNOBS),
    ("draft", "--model-draft DIR/drafter.gguf --spec-type draft-simple --spec-draft-device Vulkan0"),
)
# Notes of the launch that are about something else.
OTHER_NOTES = frozenset({"memory_may_grow", "slot_context_small", "planning_fault", "slots_no_unified_kv"})

Plans = Callable[[str], dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plans]:
    """What a build plans for each case, by its name; each build is asked once."""
    known: dict[str, dict[str, dict[str, Any]]] = {}
    folder = tmp_path_factory.mktemp("plans")

    def of(build: str) -> dict[str, dict[str, Any]]:
        if build not in known:
            card = "Vulkan0: a card (24000 MiB, 24000 MiB free)"
            era, devices = ("new", [card]) if build == "gpu" else (build, [])
            engine = write_fake_engine(folder / build / "engine", help=era, devices=devices)
            known[build] = {}  # so that a manifest which is refused fails every test at once
            known[build] = plan_all(folder / build, engine.path)
        return known[build]

    yield of


@pytest.mark.parametrize(
    ("case", "build", "block", "reason", "notes"),
    [
        pytest.param(case, build, block, reason, notes, id=f"{case}-{build}")
        for case, builds, block, reason, notes in TABLE
        for build in builds
    ],
)
def test_a_policy_comes_to(plans: Plans, case: str, build: str, block: str, reason: str, notes: str) -> None:
    plan = plans(build)[case]
    assert speculation_of(plan) == block.replace("DIR", str(Path(plan["argv"][2]).parent))
    assert (plan["speculation"]["reason"] or {"code": ""})["code"] == reason
    expected = notes.split() + (["probe_inconclusive"] * (build in SILENT + FAILING))
    told = [one["code"] for one in plan["reasons"] if one["code"] not in OTHER_NOTES]
    assert sorted(set(told) - {reason}) == sorted(set(expected))


@pytest.mark.parametrize(("case", "block"), ACCELERATED)
def test_on_a_gpu_it_comes_to(plans: Plans, case: str, block: str) -> None:
    plan = plans("gpu")[case]
    assert speculation_of(plan) == block.replace("DIR", str(Path(plan["argv"][2]).parent))
    assert plan["speculation"]["reason"] is None


@pytest.mark.engine
@pytest.mark.parametrize(
    ("case", "block", "reason"),
    [
        pytest.param(case, block, reason, id=case)
        for case, builds, block, reason, _ in TABLE
        if "new" in builds
    ],
)
def test_the_real_build_plans_as_its_help_does(
    real_plans: dict[str, dict[str, Any]], case: str, block: str, reason: str
) -> None:
    plan = real_plans[case]
    # On host memory a drafter is kept there as well; by itself it goes to every GPU.
    where = " --spec-draft-device none" if "--model-draft" in block else ""
    assert speculation_of(plan) == block.replace("DIR", str(Path(plan["argv"][2]).parent)) + where
    assert (plan["speculation"]["reason"] or {"code": ""})["code"] == reason


@pytest.fixture(scope="module")
def real_plans(tmp_path_factory: pytest.TempPathFactory, engine_binary: Path) -> dict[str, dict[str, Any]]:
    """The cases on host memory, planned with the real engine."""
    return plan_all(tmp_path_factory.mktemp("real"), engine_binary, '[pools.default]\ndevices = ["cpu"]\n')


def test_asked_and_granted_are_two_fields(plans: Plans) -> None:
    plan = plans("old")["mtp"]
    assert (plan["asked"]["speculation"], plan["granted"]["speculation"]) == ("mtp", "none")
    assert (plan["speculation"]["asked"], plan["speculation"]["resolved"]) == ("mtp", "none")


def test_what_the_user_drives_himself_is_asked_by_nobody_else(plans: Plans) -> None:
    plan = plans("new")["own"]["speculation"]
    assert (plan["asked"], plan["resolved"]) == (None, "user")


def test_a_chain_and_its_depth_are_named(plans: Plans) -> None:
    chained = plans("new")["auto-head"]["speculation"]
    assert (chained["chained"], chained["depth"], chained["depth_source"]) == (True, 3, "default")
    deeper = plans("new")["mtp-deeper"]["speculation"]
    assert (deeper["chained"], deeper["depth"], deeper["depth_source"]) == (False, 5, "policy")


@pytest.mark.parametrize(
    ("build", "case", "remedy"),
    [
        pytest.param("plain", "own", "Remove it, or use an engine that knows it.", id="no types yet"),
        pytest.param("newest", "own-mapping", "This engine calls it --load-mode none.", id="no longer there"),
        pytest.param("old", "own-depth", "This engine calls it --draft-max.", id="not yet called so"),
    ],
)
def test_a_flag_of_another_time_is_named_with_what_this_build_calls_it(
    plans: Plans, build: str, case: str, remedy: str
) -> None:
    plan = plans(build)[case]
    assert plan["argv"] == []
    assert [(one["code"], one["remedy"]) for one in plan["reasons"]] == [("user_flag_rejected", remedy)]


def speculation_of(plan: Mapping[str, Any]) -> str:
    """The tokens of the line from the first that is about drafting; only the log level may follow them."""
    argv: list[str] = plan["argv"]
    starts = [argv.index(flag) for flag in ("--model-draft", "--spec-type", "--spec-default") if flag in argv]
    if not starts:
        return ""
    block = argv[min(starts) :]
    level = next((block.index(flag) for flag in ("--log-verbosity", "--verbosity") if flag in block), None)
    return " ".join(block if level is None else [*block[:level], *block[level + 2 :]])


def plan_all(folder: Path, engine: Path, tables: str = "") -> dict[str, dict[str, Any]]:
    """Plans of all cases by name; one that is refused has an empty line and the reason."""
    write_models(folder)
    manifest = folder / "serve.toml"
    text = [f'[engines.default]\nbinary = "{engine}"\n{tables}']
    for name, case in CASES.items():
        text.append(f"[speculation.{name}]\n{case.policy}\n")
        text.append(f'[models.{name}]\nsource = "{case.file}.gguf"\nspeculation = "{name}"\ncontext = 512\n')
        text.append(f'slots = 1\nslot_state = "off"\n{case.more}\n')
    manifest.write_text("".join(text), encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PADDOCK_STATE_DIR": str(folder / "state"),
    }
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    done = run_command("plan", "--json", "--manifest", str(manifest), environment=environment)
    assert done.stdout, done.stderr
    return {plan["model"]: plan for plan in json.loads(done.stdout)["instances"]}


def write_models(folder: Path) -> None:
    """Headers of models and drafters; nothing in them is ever loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    write_header(folder / "plain.gguf")
    write_header(folder / "head.gguf", nextn_predict_layers=1)
    write_header(folder / "small.gguf", label="1B", nextn_predict_layers=1)
    latent = {"attention.kv_lora_rank": 16, "nextn_predict_layers": 1}
    write_header(folder / "latent.gguf", **latent)
    write_header(folder / "gemma-4-E4B-it.gguf")
    write_header(folder / "drafter.gguf", label="0.5B")
    write_header(folder / "mtp-drafter.gguf", label="0.5B")
    write_header(folder / "eagle3.gguf", architecture="eagle3", label="0.5B")
    write_header(folder / "dflash.gguf", architecture="dflash", label="0.5B")


def write_header(path: Path, *, architecture: str = "llama", label: str = "8B", **more: int) -> None:
    """A dense model of two layers."""
    values = {
        "block_count": 2,
        "context_length": 4096,
        "embedding_length": 64,
        "feed_forward_length": 128,
        "attention.head_count": 4,
        "attention.head_count_kv": 4,
        "vocab_size": 512,
        **more,
    }
    header = [pair("general.architecture", STRING, architecture), pair("general.size_label", STRING, label)]
    header += [pair(f"{architecture}.{name}", U32, value) for name, value in values.items()]
    path.write_bytes(gguf(*header, tensors=(Tensor("token_embd.weight", (64, 8)),), data=2048))
