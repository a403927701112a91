"""Models that draft, or do not, for every reason that looks different."""

from __future__ import annotations

from typing import Any

from framework.values.instance import ModelView, State
from framework.values.plan import SpecDecision
from framework.values.reason import Reason
from framework.values.request import ModelSource, SpecPolicy
from framework.values.spec_yield import SpecTotals, SpecYield, SpeedAt
from tests.dashboard import samples

NEEDED = 20
NO_DRAFTER = Reason(
    "drafter_not_found",
    "gemma-4-12b needs a separate drafter, and its repository has none.",
    "Name one with draft = ..., then reload the model.",
    "warning",
    {"repository": "owner/gemma-4-12b"},
)
INACTIVE = Reason(
    "speculation_inactive",
    "The engine runs without drafting: the vocabularies of model and drafter differ.",
    "Name a drafter of the same vocabulary.",
    "warning",
    {"line": "the target and draft vocabs are not compatible"},
)
UNPROFITABLE = Reason(
    "speculation_unprofitable",
    "Drafting is slower than plain decoding: 71 of 100 tokens/s, with 2 busy slots, for 10 min.",
    'Nothing; it is tried again after a day. yield_watch = "off" keeps it on.',
    "warning",
    {"speedup": 0.71, "busy_slots": 2},
)
BOTH = SpecPolicy("mtp+ngram", depth=3)
CHAINED = SpecDecision(
    "mtp+ngram", "draft-mtp", is_chained=True, depth=3, depth_source="default", drafter="/m/mtp-a.gguf"
)
TOTALS = SpecTotals(25, 5000, 4000, 2600, (1500, 1300, 1200), (1300, 900, 400))


def speed(busy: int = 1, **fields: Any) -> SpeedAt:
    """Drafting with a head that pays."""
    values: dict[str, Any] = {
        "running": "draft-mtp",
        "busy_slots": busy,
        "drafting_requests": 42,
        "drafting_tokens_per_s": 92.04,
        "acceptance": 0.652,
        "plain_requests": 31,
        "plain_tokens_per_s": 50.0,
    }
    return SpeedAt(**{**values, **fields})


def measured(*speeds: SpeedAt, verdict: Reason | None = None) -> SpecYield:
    """What the watch of a model knows."""
    return SpecYield(speeds, verdict, NEEDED)


def model(
    name: str = "large",
    policy: SpecPolicy = BOTH,
    spec: SpecDecision = CHAINED,
    *,
    state: State = State.READY,
    running: str | None = None,
    totals: SpecTotals = TOTALS,
    known: SpecYield | None = None,
    reason: Reason | None = None,
    **live: Any,
) -> ModelView:
    """A model with its process; `running` is what was resolved, unless said otherwise."""
    asked = samples.request(name, spec=policy, live=live)
    result = samples.result(speculation=running or spec.resolved, speculation_reason=reason)
    instance = samples.instance(
        asked, state, plan=samples.plan(asked, spec=spec), result=result, speculation=totals
    )
    pays = measured(speed(), speed(2, plain_tokens_per_s=None, plain_requests=0))
    return samples.model(name, state, asked=asked, instances=(instance,), spec_yield=known or pays)


def without_drafter() -> ModelView:
    """A model whose drafter was not found; it drafts with n-grams, and nothing was compared yet."""
    spec = SpecDecision("auto", "ngram-mod", reason=NO_DRAFTER, notes=(samples.KNOBS,))
    known = measured(speed(running="ngram-mod", drafting_requests=12, plain_requests=3))
    return model("gemma", SpecPolicy(allow_mla=True), spec, totals=SpecTotals(12, 900, 300, 0), known=known)


def inactive() -> ModelView:
    """A process that drafts nothing although it was told to."""
    spec = SpecDecision("draft", "draft-simple", depth=4, depth_source="policy", drafter="owner/small")
    policy = SpecPolicy("draft", depth=4, drafter=ModelSource(repo="owner/small", variant="Q4_K_M"))
    return model(
        "pair", policy, spec, running="none", totals=SpecTotals(3, 200), known=measured(), reason=INACTIVE
    )


def losing(name: str = "unlucky", **live: Any) -> ModelView:
    """A model that the watch is about to switch off."""
    slow = speed(2, running="ngram-mod", drafting_tokens_per_s=71.0, plain_tokens_per_s=100.0, losing_s=611.0)
    spec = SpecDecision("ngram", "ngram-mod")
    return model(
        name, SpecPolicy("ngram"), spec, known=measured(speed(1), slow, verdict=UNPROFITABLE), **live
    )


def switched_off() -> ModelView:
    """The same after that."""
    spec = SpecDecision("ngram", "none", reason=UNPROFITABLE)
    return model("spared", SpecPolicy("ngram"), spec, totals=SpecTotals(5, 100), known=measured(speed(2)))


def by_arguments() -> ModelView:
    """A model whose own arguments say what drafts."""
    return model(
        "own-flags", SpecPolicy(), SpecDecision(None, "user"), running="ngram-cache", known=measured()
    )


def replicated() -> ModelView:
    """Two replicas, one of which drafts."""
    asked = samples.request("twice", spec=SpecPolicy("ngram", is_adaptive=True), live={"replicas": 2})
    two = (
        samples.instance(asked),
        samples.instance(asked, replica=1, result=samples.result(speculation="none")),
    )
    return samples.model("twice", asked=asked, instances=two, spec_yield=measured())


def all_models() -> tuple[ModelView, ...]:
    """What a full page shows."""
    return (
        model(),
        without_drafter(),
        inactive(),
        losing(),
        switched_off(),
        by_arguments(),
        replicated(),
        samples.model("idle", State.STOPPED),
    )


def hostile(text: str) -> ModelView:
    """A model with this text wherever a text can come from outside."""
    reason = Reason("a_code", text, text, "error", {text: text})
    policy = SpecPolicy("draft", drafter=ModelSource(repo=text, file=text))
    spec = SpecDecision("draft", "draft-simple", reason=reason, notes=(reason,), drafter=text)
    known = measured(speed(running=text), verdict=reason)
    return model(text, policy, spec, running=text, known=known, reason=reason)
