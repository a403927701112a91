"""Which processes may be compared in speed: the same but for speculation (05 §11.7). Pure digests of plans.

What changes memory only, such as the size of the context, is left out: with a drafter there is less room for
it, and it changes no speed at the same fill.
"""

from __future__ import annotations

import hashlib
import json
import os

from framework.engines.redaction import is_secret_name
from framework.engines.spec_args import without_speculation
from framework.runtime.measurements import VARIABLES
from framework.values.plan import LaunchPlan, LaunchResult, Section
from framework.values.spec_yield import PLAIN, Drafting

WITHOUT_SPEED = frozenset(
    {"listen", "alias", "metrics", "shift", "context", "fit-ctx", "fit-target", "jinja", "template"}
    | {"template-kwargs", "projector", "verbosity", "spec", "prompt-cache", "slot-save"}
)
SPECULATION, USER = "spec", "user"
SPECULATION_VARIABLES = ("LLAMA_ARG_SPEC", "LLAMA_ARG_DRAFT")
DIGITS = 40


def drafting_of(plan: LaunchPlan, result: LaunchResult, ready_at_s: float) -> Drafting:
    """What a ready process is, as far as its speed goes."""
    running = result.speculation or PLAIN
    means = "" if running == PLAIN else _means(plan, running)
    return Drafting(launch_key(plan), running, means, ready_at_s)


def launch_key(plan: LaunchPlan) -> str:
    """Digest of program, model, environment and line, without anything about speculation."""
    file = plan.engine.file
    return _digest(
        {
            "model": [plan.request.id, os.fspath(plan.main_gguf), plan.file_bytes],
            "engine": [os.fspath(file.path), file.size, file.mtime_ns],
            "line": [tokens for section in plan.sections if (tokens := _settings(section))],
            "env": {
                name: value
                for name, value in plan.env.items()
                if _is_setting(name, plan) and not name.startswith(SPECULATION_VARIABLES)
            },
        }
    )


def _means(plan: LaunchPlan, running: str) -> str:
    sections = [[s.name, *s.tokens] for s in plan.sections if s.name in (SPECULATION, USER)]
    variables = {n: v for n, v in plan.env.items() if n.startswith(SPECULATION_VARIABLES)}
    return _digest({"running": running, "drafter": plan.spec.drafter, "line": sections, "env": variables})


def _is_setting(name: str, plan: LaunchPlan) -> bool:
    """Whether a variable is one of the engine's or the manifest's; those of a terminal change nothing."""
    own = name in plan.request.env or name in plan.request.engine.env
    return (own or name.startswith(VARIABLES)) and not is_secret_name(name)


def _settings(section: Section) -> tuple[str, ...]:
    """What of a section has a say in speed, apart from speculation."""
    if section.name in WITHOUT_SPEED:
        return ()
    return without_speculation(section.tokens) if section.name == USER else section.tokens


def _digest(facts: object) -> str:
    # As escapes: undecodable bytes in paths are no obstacle and stay distinct.
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:DIGITS]
