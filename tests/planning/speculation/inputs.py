"""Builds, models and policies that decisions about speculation are tried on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from framework.planning.speculation.decide import decide_speculation
from framework.values.engine import Capabilities
from framework.values.plan import SpecDecision
from framework.values.reason import Reason
from framework.values.request import SpecPolicy
from framework.values.speculation import NO_FACTS, SpecFacts, SpecInputs

NEW = Capabilities(
    conclusive=True,
    version="b10068",
    flags=frozenset({"--spec-type", "--spec-default", "--spec-draft-n-max", "--model-draft"}),
    spec_types=(
        *("none", "draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash"),
        *("ngram-simple", "ngram-mod"),
    ),
    mtp_token="draft-mtp",
    ngram_flavour="new",
    depth_flag="--spec-draft-n-max",
    drafter_flag="--model-draft",
)
"""As build b10068."""
LEGACY = replace(
    NEW,
    flags=frozenset({"--spec-type", "--draft-max", "--model-draft"}),
    spec_types=("none", "draft", "eagle3", "draft-mtp", "ngram-mod"),
    ngram_flavour="legacy",
    depth_flag="--draft-max",
)
"""Before flags and types were renamed, with a head all the same."""
WITHOUT_MTP = replace(NEW, spec_types=("none", "ngram-mod"), mtp_token=None)
WITHOUT_NGRAM = replace(NEW, spec_types=("none", "draft-mtp"), ngram_flavour=None)
BARE = Capabilities(conclusive=True)
"""A build that knows nothing of speculation."""
UNKNOWN = Capabilities(fault="did not end within 10 s")
"""Nobody could ask it."""

HEAD = SpecFacts("org/Model-8B", "model.gguf", nextn_layers=1, params_b=8.0)
PLAIN = SpecFacts("org/Model-8B", "model.gguf", params_b=8.0)
GEMMA = SpecFacts("org/gemma-4-12b-it", "model.gguf", params_b=12.0)
LATENT = replace(HEAD, kv_lora_rank=512)
HEAD_DRAFTER = Path("/m/mtp-a.gguf")
DRAFTER = Path("/m/d.gguf")
WITHHELD = Reason("runtime_error", "It crashed twice while drafting.", "`paddock reload demo` tries again.")
DEPTH_2 = ("--spec-draft-n-max", "2")
KNOBS = (
    *("--spec-ngram-mod-n-match", "24", "--spec-ngram-mod-n-min", "48"),
    *("--spec-ngram-mod-n-max", "64"),
)
LEGACY_KNOBS = ("--spec-ngram-size-n", "24", "--draft-min", "48", "--draft-max", "64")


def decided(
    mode: str = "auto",
    facts: SpecFacts = NO_FACTS,
    caps: Capabilities = NEW,
    *,
    args: tuple[str, ...] = (),
    accelerated: bool = True,
    withheld: Reason | None = None,
    is_native: bool = False,
    **policy: Any,
) -> SpecDecision:
    """The decision; `policy` are further fields of the policy."""
    wish = SpecPolicy(mode=mode, **policy)
    return decide_speculation(
        SpecInputs(wish, facts, caps, args, accelerated, is_native=is_native, withheld=withheld)
    )


def told(decision: SpecDecision) -> tuple[str | None, list[str]]:
    """Codes of its reason and of its notes."""
    return decision.reason.code if decision.reason else None, [note.code for note in decision.notes]
