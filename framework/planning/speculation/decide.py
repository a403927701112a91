"""Turn a speculation policy into flags, or into a reason why not (05 §2, §6, §7).

Called by planning.launch and by the comparison, which compares policies by what they resolve to. Touches
nothing. Modes that need a drafter or an embedded head are refused by the manifest before they get here.
"""

from __future__ import annotations

from framework.engines.args import owns_speculation
from framework.planning.speculation.facts import SpecInputs
from framework.values.engine import Capabilities
from framework.values.plan import SpecDecision
from framework.values.reason import Reason
from framework.values.request import SpecPolicy


def decide_speculation(inputs: SpecInputs) -> SpecDecision:
    """The section of the command line for a policy. Order is that of 05 §6.1 (D1, D3-D7, D22)."""
    policy, caps = inputs.policy, inputs.caps
    # D1: types only add up on the line, so ours must not stand beside the user's.
    if owns_speculation(inputs.args):
        return SpecDecision(None, "user")
    # D3
    if policy.mode == "off":
        return SpecDecision("off", "none")
    # D4, D5
    if policy.mode == "ngram-simple":
        if caps.conclusive and "ngram-simple" not in caps.spec_types:
            return SpecDecision(policy.mode, "none", notes=(_ngram_unsupported(policy.mode),))
        return SpecDecision(policy.mode, "ngram-simple", ("--spec-type", "ngram-simple"))
    # D6, D7
    if policy.mode == "ngram":
        if caps.conclusive and caps.ngram_flavour is None and "ngram-mod" not in caps.spec_types:
            return SpecDecision(policy.mode, "none", notes=(_ngram_unsupported(policy.mode),))
        return _ngram(policy, caps)
    # D22
    return _engine_default(policy, caps)


def _ngram(policy: SpecPolicy, caps: Capabilities) -> SpecDecision:
    block = ("--spec-type", "ngram-mod")
    knobs = _ngram_knobs(policy, caps)
    notes: tuple[Reason, ...] = ()
    if not knobs:
        notes = (
            Reason(
                "ngram_knobs_missing",
                "The n-gram tuning flags are unknown to this llama-server build; its own defaults apply.",
                "Install a newer llama.cpp build to use the ngram settings of the policy.",
            ),
        )
    return SpecDecision(policy.mode, "ngram-mod", block + knobs, notes=notes)


def _ngram_knobs(policy: SpecPolicy, caps: Capabilities) -> tuple[str, ...]:
    match, low, high = str(policy.ngram_match), str(policy.ngram_min), str(policy.ngram_max)
    if caps.ngram_flavour == "new":
        prefix = "--spec-ngram-mod-n-"
        return (f"{prefix}match", match, f"{prefix}min", low, f"{prefix}max", high)
    if caps.ngram_flavour == "legacy":
        return ("--spec-ngram-size-n", match, "--draft-min", low, "--draft-max", high)
    return ()


def _engine_default(policy: SpecPolicy, caps: Capabilities) -> SpecDecision:
    # 05 §7.5: builds from before the flag exit on it, so it is risked only when the probe could not tell.
    if caps.conclusive and not caps.has("--spec-default"):
        note = Reason(
            "spec_default_unsupported",
            "This llama-server build has no --spec-default; the model runs without speculation.",
            "Install a newer llama.cpp build, or choose the mode ngram.",
        )
        return SpecDecision(policy.mode, "none", notes=(note,))
    return SpecDecision(policy.mode, "default", ("--spec-default",))


def _ngram_unsupported(mode: str) -> Reason:
    return Reason(
        "ngram_unsupported",
        f"This llama-server build cannot do the speculation mode {mode}; the model runs without speculation.",
        "Install a newer llama.cpp build, or set the mode to off.",
        evidence={"mode": mode},
    )
