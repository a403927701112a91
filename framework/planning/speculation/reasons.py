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
INSTEAD = {
    "default": "The engine's own default (--spec-default) drafts instead",
    "ngram-mod": "N-grams draft instead",
    "none": "Nothing drafts",
}


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


def drafter_not_found(facts: SpecFacts, mode: str, *, is_named: bool) -> Reason:
    """The mode, or the model's family, needs a file that is not here; its cause is told with it."""
    named = facts.model_id or facts.file_name or "the model"
    cause = facts.drafter_reasons[-1] if facts.drafter_reasons else None
    why = "." if cause is None else f": {cause.message}"
    usual = "Name one with `draft` in the speculation table, or check network and repository; then `paddock"
    if cause is None and not is_named:
        why = ": its [speculation.NAME] table names no `draft`."
        usual = "Name one with `draft` in the speculation table, or use another mode; then `paddock"
    return Reason(
        "drafter_not_found",
        f"There is no drafter for {named}, so that the mode {mode} cannot use one{why}",
        (cause.remedy if cause is not None else "") or f"{usual} reload MODEL`.",
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


def model_not_mtp(facts: SpecFacts, mode: str, instead: str) -> Reason:
    """A forced mode without anything to use; `instead` is what the decision comes to."""
    return Reason(
        "model_not_mtp",
        f"The mode {mode} asks for a prediction head, and the model has none: its header names no prediction"
        f" layers, and there is no drafter made for it. {INSTEAD.get(instead, instead)}.",
        "Use a file with its head, name an MTP drafter with `draft`, or use mode auto.",
        evidence={
            "nextn_layers": facts.nextn_layers,
            "drafter_kind": facts.drafter_kind,
            "instead": instead,
        },
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


def ngram_settings_unused(policy: SpecPolicy, resolved: str) -> Reason:
    """Lengths that no process gets."""
    lengths = {"match": policy.ngram_match, "min": policy.ngram_min, "max": policy.ngram_max}
    told = ", ".join(f"{name} {length}" for name, length in lengths.items())
    return Reason(
        "ngram_settings_unused",
        f"The lengths in `ngram` of the policy ({told}) have no effect: speculation comes to {resolved},"
        " which does not use them.",
        "Set the mode to ngram or mtp+ngram to use them, or remove them.",
        evidence={**lengths, "resolved": resolved},
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


def drafter_unused(drafter: str, resolved: str) -> Reason:
    """A drafter on the line, and no type that would use it."""
    return Reason(
        "drafter_unused",
        f"engine_args name the drafter {drafter}, and nothing is to draft with it: speculation comes to"
        f" {resolved}. Some builds do not read it, others load it for nothing or draft with it all the same.",
        "Name it with `draft` in the speculation table, or add the --spec-type that uses it to engine_args,"
        " or take it out.",
        "warning",
        {"drafter": drafter, "resolved": resolved},
    )


def native_only(settings: Iterable[str], *, is_native: bool = False) -> Reason:
    """Settings that only the native engine knows; `is_native`: it is one, of a build without them."""
    names = list(settings)
    has = "has" if len(names) == 1 else "have"
    who = "this build of the native engine does not adapt depths or guard against loops."
    remedy = "Take them out, or use a number for depth."
    if not is_native:
        who = "only an engine of kind native adapts depths and guards against loops."
        remedy = 'Use engines.NAME.kind = "native", or a number for depth.'
    return Reason(
        "native_only",
        f"{' and '.join(names)} {has} no effect here: {who}",
        remedy,
        evidence={"settings": names},
    )


def _listed(types: Iterable[str]) -> str:
    return ", ".join(types) or "no types"
