"""Whether a launch can save its slots at all, by engine, files and settings (07 §11.5, 06 §6.2). Pure.

Called by planning.launch, so that `paddock plan` says beforehand what will not be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from framework.engines.args import TRUE_WORDS, caches_prompts
from framework.engines.command_line import SLOT_SAVE_FLAG, SLOT_SAVING
from framework.planning.memory.shape import ModelShape
from framework.values.engine import Capabilities
from framework.values.plan import LaunchPlan
from framework.values.reason import Reason
from framework.values.request import ModelRequest

WHOLE_WINDOW_FLAG, WHOLE_WINDOW_VARIABLE = "--swa-full", "LLAMA_ARG_SWA_FULL"
READ_AGAIN = "Its conversations are read again after each start"
LEAVE_OUT = 'slot_state = "off" takes this note away.'


@dataclass(frozen=True)
class CacheKind:
    """What a model's header says of its cache."""

    sliding_window: int = 0
    """Tokens; 0 for none."""
    has_lengths: bool = False
    """Key and value lengths are known. Some architectures declare a window without them, and get an ordinary
    cache."""

    @property
    def is_windowed(self) -> bool:
        """Whether the engine keeps a window only, unless it is told to keep everything."""
        return self.sliding_window > 0 and self.has_lengths


WHOLE_CACHE = CacheKind()


def cache_kind(shape: ModelShape) -> CacheKind:
    """The part of a shape that counts here."""
    has_lengths = shape.key_length is not None and shape.value_length is not None
    return CacheKind(shape.sliding_window or 0, has_lengths)


def saves_slots(plan: LaunchPlan) -> bool:
    """Whether a line has a folder for saved slots."""
    return any(section.name == SLOT_SAVING for section in plan.sections)


def why_unsaved(
    request: ModelRequest,
    caps: Capabilities,
    env: Mapping[str, str],
    *,
    projector: Path | None,
    kind: CacheKind,
) -> Reason | None:
    """Why no slot of a launch that asks for it will be saved; None where they will, or nobody asks.

    `env` is the child's declared environment. Order: (1) the build, (2) the prompt cache, (3) the projector,
    (4) the window.
    """
    if not request.slot_save:
        return None
    if not caps.has(SLOT_SAVE_FLAG):
        why = f"this llama-server ({caps.version}) has no {SLOT_SAVE_FLAG}"
        if not caps.conclusive:
            why = "this llama-server does not say whether it can save slots"
        return _unavailable(why, "no_flag", f"A newer llama-server can. {LEAVE_OUT}")
    if not caches_prompts(request.extra_args, env):
        return _unavailable("its prompt cache is off", "prompt_cache_off", f"Switch it on. {LEAVE_OUT}")
    if projector is not None:
        return _unavailable("engines save no slots of a model with a projector", "projector", LEAVE_OUT)
    # The native engine goes on with a restored window, as far as a conversation only grows.
    is_lost = kind.is_windowed and request.engine.kind != "native"
    if is_lost and not _keeps_whole_window(request, caps, env):
        why = (
            f"it keeps a sliding window of {kind.sliding_window} tokens, with which no other process goes on"
        )
        remedy = f"full_window_cache = true keeps everything, and takes more memory. {LEAVE_OUT}"
        return _unavailable(why, "window", remedy)
    return None


def _keeps_whole_window(request: ModelRequest, caps: Capabilities, env: Mapping[str, str]) -> bool:
    asked = request.swa_full and caps.has(WHOLE_WINDOW_FLAG)
    return asked or WHOLE_WINDOW_FLAG in request.extra_args or env.get(WHOLE_WINDOW_VARIABLE) in TRUE_WORDS


def _unavailable(why: str, cause: str, remedy: str) -> Reason:
    return Reason(
        "slot_state_unavailable",
        f"{READ_AGAIN}: {why}.",
        remedy,
        "info",
        {"cause": cause},
    )
