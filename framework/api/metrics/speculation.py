"""Fallback reasons and speculation, from the values of the status (05 §14, 13 §9). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from framework.api.metrics.labels import counter, gauge, who
from framework.api.shapes.plan import asked_speculation
from framework.api.told import told_of, verdict_on
from framework.telemetry.exposition import Family, Sample
from framework.values.instance import InstanceView, ModelView
from framework.values.plan import LaunchPlan
from framework.values.pool import PoolView
from framework.values.spec_yield import SpeedAt

UNKNOWN = "unknown"


def reasons(views: tuple[ModelView, ...], pools: Iterable[PoolView]) -> Family:
    """Every reason that is told of a replica now, or of one that waits."""
    told = [
        Sample({**who(instance), "reason": reason.code}, 1)
        for view in views
        for instance in view.instances
        for reason in (*told_of(instance), *verdict_on(view, instance))
    ]
    waits = [
        Sample({"model": one.model, "replica": str(one.replica), "reason": one.reason.code}, 1)
        for pool in pools
        for one in pool.waiting
    ]
    return gauge("fallback", "1 for each reason that is told of a replica.", (*told, *waits))


def speculation(views: tuple[ModelView, ...]) -> Iterator[Family]:
    """What drafts, and what it brought, of each replica."""
    # During a replacement a replica has two; the one that serves stands first.
    each: dict[tuple[str, int], InstanceView] = {}
    for instance in (one for view in views for one in view.instances):
        each.setdefault((instance.model, instance.replica), instance)
    instances = tuple(each.values())
    yield gauge(
        "speculation_info",
        "1 with what was asked, resolved and runs as labels.",
        (
            Sample({**who(instance), **_words(instance, instance.granted)}, 1)
            for instance in instances
            if instance.granted is not None
        ),
    )
    serving = [instance for instance in instances if instance.running is not None]
    for name, meaning in (
        ("requests", "Answers whose tokens were counted, since the instance is ready."),
        ("generated", "Tokens generated in these answers."),
        ("drafted", "Tokens drafted ahead."),
        ("accepted", "Drafted tokens that were right."),
    ):
        full_name = f"speculation_{name}_total" if name == "requests" else f"speculation_{name}_tokens_total"
        samples = (Sample(who(one), getattr(one.speculation, name)) for one in serving)
        yield counter(full_name, meaning, samples)


def speeds_of(views: tuple[ModelView, ...]) -> Iterator[Family]:
    """Speed with drafting and without, of each model."""
    speeds = [(view.request.id, speed) for view in views for speed in view.speeds]
    yield gauge(
        "speculation_tokens_per_second",
        "Tokens per second of one request with drafting.",
        (Sample(_where(model, speed), speed.drafting_tokens_per_s) for model, speed in speeds),
    )
    yield gauge(
        "speculation_baseline_tokens_per_second",
        "The same without drafting.",
        (
            Sample(_where(model, speed), speed.plain_tokens_per_s)
            for model, speed in speeds
            if speed.plain_tokens_per_s is not None
        ),
    )
    yield gauge(
        "speculation_speedup_ratio",
        "Speed with drafting over speed without.",
        (Sample(_where(model, speed), speed.speedup) for model, speed in speeds if speed.speedup is not None),
    )


def _words(view: InstanceView, plan: LaunchPlan) -> dict[str, str]:
    running = view.running
    return {
        "asked": asked_speculation(plan) or "engine_args",
        "resolved": plan.spec.resolved,
        "running": UNKNOWN if running is None else running.speculation or UNKNOWN,
    }


def _where(model: str, speed: SpeedAt) -> dict[str, str]:
    return {"model": model, "running": speed.running, "busy_slots": str(speed.busy_slots)}
