"""Why drafting is not what was wanted, and what is worth knowing about it, in words (05 §9). Pure.

The set of codes is closed; docs/reasons.md explains each.
"""

from __future__ import annotations

from collections.abc import Iterable

from framework.values.engine import Capabilities
from framework.values.reason import Reason
from framework.values.request import SpecPolicy
from framework.values.speculation import SpecFacts

NEWER = "Install a newer llama.cpp build"


# Fallbacks


def binary_no_mtp(caps: Capabilities) -> Reason:
    """The build lists no type for heads."""
    return Reason(
        "binary_no_mtp",
        f"This llama-server ({caps.version}) cannot draft with a prediction head (MTP): its --spec-type lists"
        f" {_listed(caps.spec_types)}. The model runs without its head.",
        f"{NEWER}.",
        "warning",
        {"version": caps.version, "spec_types": list(caps.spec_types)},
    )


def binary_no_draft_type(word: str, caps: Capabilities) -> Reason:
    """The build lists no type for this kind of drafter."""
    return Reason(
        "binary_no_draft_type",
        f"This llama-server ({caps.version}) cannot run such a drafter: its --spec-type lists"
        f" {_listed(caps.spec_types)}, not {word}. The model runs without drafting.",
        f"{NEWER}, or use another mode.",
        "warning",
        {"version": caps.version, "wanted": word, "spec_types": list(caps.spec_types)},
    )


def drafter_not_found(facts: SpecFacts, mode: str) -> Reason:
    """The mode, or the model's family, needs a file that is not here."""
    named = facts.model_id or facts.file_name or "the model"
    why = f": {facts.drafter_reasons[-1].message}" if facts.drafter_reasons else "."
    return Reason(
        "drafter_not_found",
        f"There is no drafter for {named}, so that the mode {mode} cannot use one{why}",
        "Name one with `draft` in the speculation table, or check network and repository; then `paddock"
        " reload MODEL`.",
        "warning",
        {"model": named, "mode": mode, "because": [reason.code for reason in facts.drafter_reasons]},
    )


def mla_mtp_disabled(facts: SpecFacts) -> Reason:
    """Latent attention: the head would need the model's whole cache a second time."""
    return Reason(
        "mla_mtp_disabled",
        "The model has latent attention (MLA), where drafting with its head is slower than not drafting, so"
        " mode auto leaves the head alone.",
        "Set the mode to mtp, or allow_mla = true, to use it all the same.",
        "warning",
        {"kv_lora_rank": facts.kv_lora_rank},
    )


# Notes


def probe_inconclusive(caps: Capabilities) -> Reason:
    """Nobody knows whether the build could use the head."""
    return Reason(
        "probe_inconclusive",
        f"Whether this engine can use a prediction head is not known: it {caps.fault or 'did not say'}. It is"
        " not risked.",
        "Check that the binary runs: `paddock engines`.",
    )


def model_not_mtp(facts: SpecFacts, mode: str) -> Reason:
    """A forced mode without anything to use."""
    return Reason(
        "model_not_mtp",
        f"The mode {mode} asks for a prediction head, and the model has none: its header names no prediction"
        " layers, and there is no drafter made for it.",
        "Use a file with its head, name an MTP drafter with `draft`, or use mode auto.",
        evidence={"nextn_layers": facts.nextn_layers, "drafter_kind": facts.drafter_kind},
    )


def name_without_head(facts: SpecFacts) -> Reason:
    """The name says that there is a head, and the header says that there is none."""
    return Reason(
        "name_without_head",
        f"The name {facts.file_name or facts.model_id} promises a prediction head (MTP), but the header has"
        " none: likely a conversion that lost it.",
        "Use a file that kept its head.",
        evidence={"file": facts.file_name},
    )


def head_too_small(facts: SpecFacts, policy: SpecPolicy) -> Reason:
    """`auto` leaves the head of a small model alone."""
    return Reason(
        "head_too_small",
        f"The model has {facts.params_b:g} billion parameters; below {policy.min_head_params_b:g} drafting"
        " with its head is slower, so mode auto leaves it alone.",
        "Set the mode to mtp, or a lower min_head, to use it all the same.",
        evidence={"params_b": facts.params_b, "min_head": policy.min_head_params_b},
    )


def head_too_small_forced(facts: SpecFacts, policy: SpecPolicy) -> Reason:
    """A forced mode uses it all the same."""
    return Reason(
        "head_too_small_forced",
        f"The model has {facts.params_b:g} billion parameters; below {policy.min_head_params_b:g} expect 0.6"
        " to 0.9 of the plain speed.",
        "Mode auto would not use the head.",
        evidence={"params_b": facts.params_b, "min_head": policy.min_head_params_b},
    )


def ngram_unsupported(mode: str, caps: Capabilities) -> Reason:
    """The build lists no such n-gram type."""
    return Reason(
        "ngram_unsupported",
        f"This llama-server ({caps.version}) cannot do the speculation mode {mode}: its --spec-type lists"
        f" {_listed(caps.spec_types)}. The model runs without speculation.",
        f"{NEWER}, or set the mode to off.",
        evidence={"mode": mode, "version": caps.version, "spec_types": list(caps.spec_types)},
    )


def ngram_knobs_missing(*, is_chain: bool) -> Reason:
    """The build's flags for lengths are not known."""
    effect = "n-gram drafts in front of the head are left out" if is_chain else "its own lengths apply"
    return Reason(
        "ngram_knobs_missing",
        f"The n-gram tuning flags are unknown to this llama-server; {effect}.",
        f"{NEWER} to use the ngram settings of the policy.",
        evidence={"chain_dropped": is_chain},
    )


def ngram_shared_flag() -> Reason:
    """One flag for two lengths."""
    return Reason(
        "ngram_shared_flag",
        "This llama-server has one flag, --draft-max, for the depth of the head and for the length of n-gram"
        " drafts; the n-gram half is left out.",
        f"{NEWER}, where they are two.",
    )


def depth_flag_missing() -> Reason:
    """No flag for how much is drafted."""
    return Reason(
        "depth_flag_missing",
        "This llama-server offers no flag for the depth of drafts; its own default applies.",
        f"{NEWER} to set it.",
    )


def spec_default_unsupported(caps: Capabilities) -> Reason:
    """No default speculation."""
    return Reason(
        "spec_default_unsupported",
        f"This llama-server ({caps.version}) has no --spec-default; the model runs without speculation.",
        f"{NEWER}, or choose the mode ngram.",
        evidence={"version": caps.version},
    )


def native_only(settings: Iterable[str]) -> Reason:
    """Settings that only the native engine knows."""
    names = list(settings)
    has = "has" if len(names) == 1 else "have"
    return Reason(
        "native_only",
        f"{' and '.join(names)} {has} no effect here: only an engine of kind native adapts depths and guards"
        " against loops.",
        'Use engines.NAME.kind = "native", or a number for depth.',
        evidence={"settings": names},
    )


def _listed(types: Iterable[str]) -> str:
    return ", ".join(types) or "no types"
