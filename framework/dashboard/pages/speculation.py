"""The Speculation page: of each model asked, resolved and running, why, and what it brings (01 §3). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from framework.dashboard.formats import share
from framework.dashboard.pages.figures import Figures, figures_fragment
from framework.dashboard.pages.history import draft_section
from framework.dashboard.pages.ids import element_id
from framework.dashboard.pages.instance_facts import serving_instance
from framework.dashboard.pages.shell import Shell
from framework.dashboard.pages.slots import SlotCell, slot_grid
from framework.dashboard.pages.spec_speeds import (
    SpeedSection,
    speed_section,
    speedup_look,
    speedup_text,
)
from framework.dashboard.pages.spec_words import (
    asked_depth,
    asked_drafter,
    fallback_reasons,
    running_value,
    spec_words,
)
from framework.dashboard.states import Look, Tone, look_of, look_of_model
from framework.dashboard.updates import Fragment
from framework.dashboard.urls import model_url
from framework.planning.speculation.emit import uses_lengths
from framework.values.history import ModelHistory, nothing_known
from framework.values.instance import InstanceView, ModelView
from framework.values.reason import Reason
from framework.values.request import ModelRequest, SpecPolicy
from framework.values.spec_yield import SpecTotals, best_known
from framework.values.units_text import UNKNOWN, count, counted, percent, tokens

SPECULATION = "/speculation"
HEAD_MODES = frozenset({"auto", "mtp", "mtp+ngram"})
# More positions than any engine drafts at once; a longer list is cut.
MAX_POSITIONS = 64


@dataclass(frozen=True)
class SpecRow:
    """One model at a glance; `detail` leads to its card, and is empty where there is none."""

    id: str
    model: str
    url: str
    detail: str
    look: Look
    asked: str
    resolved: str
    running: str
    differs: bool
    depth: str
    acceptance: str
    speedup: str
    tone: Tone
    icon: str


@dataclass(frozen=True)
class Position:
    """How the first, second ... token of a draft fared."""

    number: int
    accepted_share: float
    label: str


@dataclass(frozen=True)
class SpecInstance:
    """One process: facts with their names, reasons, acceptance by position, and its slots."""

    id: str
    heading: str
    look: Look
    facts: tuple[tuple[str, str], ...]
    reasons: tuple[Reason, ...]
    positions: tuple[Position, ...]
    slots: tuple[SlotCell, ...]
    """Those that tell of their drafts."""


@dataclass(frozen=True)
class SpecCard:
    """One model in detail. `policy` are its settings in words."""

    id: str
    model: str
    url: str
    policy: tuple[str, ...]
    instances: tuple[SpecInstance, ...]
    speeds: SpeedSection
    hour: Figures | None
    """Its drafts over time; None where it drafted nothing."""


@dataclass(frozen=True)
class SpecSections:
    """All models, and the details of those that were planned or measured."""

    rows: tuple[SpecRow, ...]
    cards: tuple[SpecCard, ...]


@dataclass(frozen=True)
class SpeculationPage:
    """Everything on `/speculation`."""

    shell: Shell
    speculation: SpecSections


def card_id(model: str) -> str:
    """The element that holds the details of a model."""
    return element_id("spec", model)


def card_url(model: str) -> str:
    """Where the details of a model stand."""
    return f"{SPECULATION}#{card_id(model)}"


def spec_sections(
    models: Iterable[ModelView], history: Callable[[str], ModelHistory] = nothing_known
) -> SpecSections:
    """The models in declared order; `history` is the last hour of each."""
    views = tuple(models)
    told = tuple(view for view in views if _has_details(view))
    return SpecSections(
        tuple(_row(view) for view in views), tuple(_card(view, history(view.request.id)) for view in told)
    )


def speculation_fragments(sections: SpecSections) -> tuple[Fragment, ...]:
    """The page as parts that change on their own."""
    rows = tuple(Fragment(row.id, "_spec_row.html", "row", row) for row in sections.rows)
    cards = tuple(_card_fragment(card) for card in sections.cards)
    outline = (tuple(row.id for row in sections.rows), tuple(card.id for card in sections.cards))
    return (
        Fragment(
            "speculation",
            "_speculation.html",
            "speculation",
            sections,
            outline=outline,
            parts=(*rows, *cards),
        ),
    )


def _card_fragment(card: SpecCard) -> Fragment:
    parts = (
        *(Fragment(one.id, "_spec_instance.html", "instance", one) for one in card.instances),
        Fragment(card.speeds.id, "_spec_speeds.html", "speeds", card.speeds),
        *(() if card.hour is None else (figures_fragment(card.hour),)),
    )
    outline = (card.policy, tuple(one.id for one in card.instances), card.hour is None)
    return Fragment(card.id, "_spec_card.html", "card", card, outline=outline, parts=parts)


def _has_details(view: ModelView) -> bool:
    return bool(view.speeds) or any(one.granted is not None for one in view.instances)


def _row(view: ModelView) -> SpecRow:
    request, serving = view.request, serving_instance(view)
    words = spec_words(request, serving)
    # Of a process that is gone the counts are over; its speeds are kept.
    totals = _sum(one.speculation for one in view.instances if one.running is not None)
    best = best_known(view.speeds, running_value(serving))
    tone, icon = speedup_look(best)
    return SpecRow(
        id=element_id("spec-row", request.id),
        model=request.id,
        url=model_url(request.id),
        detail=f"#{card_id(request.id)}" if _has_details(view) else "",
        look=look_of_model(view),
        asked=words.asked,
        resolved=words.resolved,
        running=words.running,
        differs=words.differs,
        depth=words.running_depth.partition(",")[0],
        acceptance=percent(totals.acceptance),
        speedup=speedup_text(best),
        tone=tone,
        icon=icon,
    )


def _card(view: ModelView, history: ModelHistory) -> SpecCard:
    element = card_id(view.request.id)
    planned = [one for one in view.instances if one.granted is not None]
    several = len(planned) > 1
    return SpecCard(
        id=element,
        model=view.request.id,
        url=model_url(view.request.id),
        policy=_policy_of(view.request.spec, planned),
        instances=tuple(_instance(one, view.request, several=several) for one in planned),
        speeds=speed_section(f"{element}-speeds", view),
        hour=draft_section(history),
    )


def _policy_of(policy: SpecPolicy, planned: Sequence[InstanceView]) -> tuple[str, ...]:
    if _by_arguments(planned):
        return ("engine_args decide",)
    return tuple(_policy(policy, has_lengths=not planned or any(map(_uses_lengths, planned))))


def _uses_lengths(instance: InstanceView) -> bool:
    """Whether lengths of n-grams are on the line of a process, and what they are for runs."""
    spec = instance.granted.spec if instance.granted is not None else None
    if spec is None or not uses_lengths(spec):
        return False
    return instance.running is None or instance.running.speculation in (None, spec.resolved)


def _by_arguments(planned: Sequence[InstanceView]) -> bool:
    """Whether the policy has no say, since the model's own arguments name what drafts."""
    plans = [one.granted for one in planned]
    return any(plan is not None and plan.spec.requested is None for plan in plans)


def _instance(instance: InstanceView, asked: ModelRequest, *, several: bool) -> SpecInstance:
    words, totals = spec_words(asked, instance), instance.speculation
    is_planned = instance.running is None
    element = element_id("spec-i", instance.instance)
    kept = f"{count(totals.accepted)}, {percent(totals.acceptance)}" if totals.drafted else UNKNOWN
    return SpecInstance(
        id=element,
        heading=f"Replica {instance.replica}, start {instance.generation}" if several else "",
        look=look_of(instance.state),
        facts=(
            ("Asked", words.asked),
            ("Resolved", words.resolved),
            ("Running", words.running),
            ("Depth", words.depth if is_planned else words.running_depth),
            ("Drafter", words.drafter if is_planned else words.running_drafter),
            ("Answers", count(totals.requests)),
            ("Drafted", tokens(totals.drafted) if totals.drafted else UNKNOWN),
            ("Accepted", kept),
        ),
        reasons=_reasons(instance),
        positions=_positions(totals),
        slots=tuple(cell for cell in slot_grid(f"{element}-slot", instance).cells if cell.depth is not None),
    )


def _reasons(instance: InstanceView) -> tuple[Reason, ...]:
    """The fallback first, then the notes, each once."""
    plan = instance.granted
    notes = plan.spec.notes if plan is not None else ()
    return tuple({(one.code, one.message): one for one in (*fallback_reasons(instance), *notes)}.values())


def _positions(totals: SpecTotals) -> tuple[Position, ...]:
    pairs = zip(totals.drafted_by_position, totals.accepted_by_position, strict=False)
    return tuple(
        Position(
            number,
            round(share(kept, drafted), 2),
            f"{percent(share(kept, drafted))} of {counted(drafted, 'draft')}",
        )
        for number, (drafted, kept) in enumerate(pairs, 1)
        if number <= MAX_POSITIONS
    )


def _sum(totals: Iterable[SpecTotals]) -> SpecTotals:
    known = tuple(totals)
    return SpecTotals(drafted=sum(one.drafted for one in known), accepted=sum(one.accepted for one in known))


def _policy(policy: SpecPolicy, *, has_lengths: bool) -> Iterable[str]:
    """The settings that the mode reads; those of n-grams where they are used."""
    yield f"mode {policy.mode}"
    if policy.drafter is not None:
        yield f"drafter {asked_drafter(policy)}"
    if policy.depth is not None or policy.is_adaptive:
        yield f"depth {asked_depth(policy)}"
    if has_lengths and policy.mode != "off":
        lengths = f"{policy.ngram_min:,} to {policy.ngram_max:,}"
        yield f"n-grams of {counted(policy.ngram_match, 'token')}, drafts of {lengths}"
    if policy.mode in HEAD_MODES and policy.allow_mla:
        yield "heads with latent attention too"
    if policy.mode == "auto":
        yield f"heads from {policy.min_head_params_b:g} billion parameters on"
