"""Ends of starts, and plans that can end in every way, for tests of what is done about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from framework.runtime.rungs import Trial, next_trial
from framework.runtime.start_end import Outcome, StartEnd
from framework.values.engine import Capabilities, EngineBinary, FileId
from framework.values.plan import FitPlan, LaunchPlan, Placement, Section, SpecDecision
from tests.support.launch_plans import a_plan

ENTRY = Path("/opt/llama/llama-server")
ENGINE = EngineBinary(ENTRY, ENTRY.parent, FileId(ENTRY, 1, 1), "manifest")
FLAGS = frozenset({"--model", "--fit", "--spec-type", "--spec-default", "--metrics", "--mmproj"})
CAPS = Capabilities(conclusive=True, version="b1", flags=FLAGS)
WHOLE_ON_GPU = Placement(devices=("CUDA0",), is_delegated=False)
FITS_ON_GPU = FitPlan(fits=True)
PLACED = "--device CUDA0 --gpu-layers 31 --fit off"
DIVIDED = "--device CUDA0,CUDA1 --gpu-layers 31 --fit off --split-mode tensor"
HEAD = "--spec-type draft-mtp --spec-draft-n-max 2"
PROJECTOR = "projector: --mmproj /models/p.gguf"
# An engine that fits by itself, so that neither A nor B is asked, with nothing left to change but this.
OF_THE_USER = {"placed": "--device CUDA0 --fit off", "user": "-ngl 3"}
SIGILL, SIGABRT, SIGKILL, SIGSEGV, SIGTERM = -4, -6, -9, -11, -15

# Lines that build b10068 prints in these situations (15 §3, §7).
NO_HEAD = (
    "0.01.5 W llama_init_from_model: context type MTP requested but model doesn't contain MTP layers",
    "0.01.5 E srv    load_model: failed to create MTP context",
    "0.01.5 E srv  llama_server: exiting due to model loading error",
)
NO_DRAFTER = ("0.00.9 E srv    load_model: failed to load draft model, '/models/d.gguf'",)
NO_PROJECTOR = (
    "0.00.4 E mtmd_init_from_file: error: Failed to load CLIP model from /models/p.gguf",
    "0.00.4 E srv    load_model: failed to load multimodal model, '/models/p.gguf'",
)
V_NEEDS_FLASH = ("0.00.2 E llama_init_from_model: V cache quantization requires flash_attn",)
CANNOT_DIVIDE = (
    "/src/ggml/src/ggml-backend-meta.cpp:577: GGML_ASSERT(axis != GGML_BACKEND_SPLIT_AXIS_NONE) failed",
    "[New LWP 7]",
    "#3  0x00007f in ggml_abort () from libggml-base.so",
)
UNKNOWN = ("0.00.1 E llama_model_load: error loading model: unknown model architecture: 'womba'",)
TOO_LITTLE = ("0.00.3 E ggml_cuda: CUDA error: out of memory",)
TOO_LARGE = (
    "/src/ggml/src/ggml-backend.cpp:898: pre-allocated tensor (cache_k_l0) in a buffer (Vulkan0) that cannot"
    " run the operation (NONE)",
)


def the_plan(
    *lines: str,
    spec: str = "",
    placed: str = PLACED,
    flash: str = "on",
    user: str = "",
    wrapper: bool = False,
    **fields: Any,
) -> LaunchPlan:
    """A plan with everything on one GPU. `lines` are sections `name: tokens`, `user` the extra arguments."""
    named = [line.partition(": ") for line in lines]
    sections = [
        Section("flash", ("--flash-attn", flash)),
        Section("placement", tuple(placed.split())),
        Section("metrics", ("--metrics",), "optional"),
        *(Section(name, tuple(tokens.split())) for name, _, tokens in named),
        Section("spec", tuple(spec.split()), "optional"),
        Section("user", tuple(user.split()), "user"),
    ]
    values: dict[str, Any] = {"caps": CAPS, "placement": WHOLE_ON_GPU, **fields}
    engine = replace(ENGINE, via_wrapper=wrapper)
    plan = a_plan(engine, *(section for section in sections if section.tokens), **values)
    request = replace(plan.request, extra_args=tuple(user.split()))
    decision = SpecDecision("mtp", "draft-mtp" if "draft-mtp" in spec else "none", tuple(spec.split()))
    return replace(plan, request=request, spec=decision)


def end_of(
    plan: LaunchPlan, exit_code: int | None = 1, *lines: str, outcome: Outcome = "exited", **fields: Any
) -> StartEnd:
    """A start that ended with these lines."""
    return StartEnd(outcome, exit_code, lines, plan, "/state/logs/demo.log", 3.0, **fields)


def after(plan: LaunchPlan, code: int | None, *lines: str, healthy: bool = False) -> Trial:
    """The next attempt after this end."""
    following = next_trial(Trial(plan), end_of(plan, code, *lines, was_healthy=healthy))
    assert following is not None
    return following


def climbed(plan: LaunchPlan, *ends: tuple[int | None, tuple[str, ...]]) -> list[str]:
    """The rungs that these ends lead to, one after the other, and `R6` where none is left."""
    trial, rungs = Trial(plan), []
    for code, lines in ends:
        following = next_trial(trial, end_of(trial.plan, code, *lines))
        rungs.append(following.rung if following else "R6")
        if following is None:
            break
        trial = following
    return rungs


def line(trial: Trial) -> str:
    """The line of the next attempt."""
    return " ".join(trial.plan.argv)


def codes(trial: Trial) -> list[str]:
    """What was given up so far."""
    return [reason.code for reason in trial.given_up]
