"""`GET /metrics`: states, fallback reasons and speculation in Prometheus' text format (13 §9).

Who may read `/api/v1` may read this. Values are those of the status; nothing is asked of an engine for it.
Names of models are text of others: label values are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from framework.api.auth import Caller
from framework.api.endpoint import PRIVATE
from framework.api.services import Services
from framework.api.shapes.plan import asked_speculation
from framework.api.told import told_of, verdict_on
from framework.values.instance import InstanceView, ModelView
from framework.values.plan import LaunchPlan
from framework.values.pool import PoolView
from framework.values.spec_yield import SpeedAt

PATH = "/metrics"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# The format escapes these three in label values, and nothing else.
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
UNKNOWN = "unknown"
MEASURED_DIGITS = 4


@dataclass(frozen=True)
class Sample:
    """One value of a family, with its labels."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Family:
    """One metric: its name without prefix, what it means, its samples."""

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    samples: tuple[Sample, ...]


async def read_metrics(_request: Request, services: Services, _caller: Caller) -> Response:
    """All metrics as they are now."""
    text = metrics_text(services.fleet.views(), services.fleet.pools())
    return Response(text.encode(errors="replace"), media_type=MEDIA_TYPE, headers=PRIVATE)


def metrics_text(models: Iterable[ModelView], pools: Iterable[PoolView] = ()) -> str:
    """The text that a scraper reads; a family without samples is left out."""
    views = tuple(models)
    families = (_of_reasons(views, pools), *_of_instances(views), *_of_models(views))
    return "".join(map(_family_text, families))


def _of_reasons(views: tuple[ModelView, ...], pools: Iterable[PoolView]) -> Family:
    told = [
        Sample({**_who(instance), "reason": reason.code}, 1)
        for view in views
        for instance in view.instances
        for reason in (*told_of(instance), *verdict_on(view, instance))
    ]
    waits = [
        Sample({"model": one.model, "replica": str(one.replica), "reason": one.reason.code}, 1)
        for pool in pools
        for one in pool.waiting
    ]
    return Family("fallback", "gauge", "1 for each reason that is told of a replica.", (*told, *waits))


def _of_instances(views: tuple[ModelView, ...]) -> Iterator[Family]:
    # During a replacement a replica has two; the one that serves stands first.
    each: dict[tuple[str, int], InstanceView] = {}
    for instance in (one for view in views for one in view.instances):
        each.setdefault((instance.model, instance.replica), instance)
    instances = tuple(each.values())
    yield Family(
        "speculation_info",
        "gauge",
        "1 with what was asked, resolved and runs as labels.",
        tuple(
            Sample({**_who(instance), **_words(instance, instance.granted)}, 1)
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
        samples = (Sample(_who(one), getattr(one.speculation, name)) for one in serving)
        yield Family(full_name, "counter", meaning, tuple(samples))


def _of_models(views: tuple[ModelView, ...]) -> Iterator[Family]:
    speeds = [(view.request.id, speed) for view in views for speed in view.speeds]
    yield Family(
        "speculation_tokens_per_second",
        "gauge",
        "Tokens per second of one request with drafting.",
        tuple(Sample(_where(model, speed), speed.drafting_tokens_per_s) for model, speed in speeds),
    )
    yield Family(
        "speculation_baseline_tokens_per_second",
        "gauge",
        "The same without drafting.",
        tuple(
            Sample(_where(model, speed), speed.plain_tokens_per_s)
            for model, speed in speeds
            if speed.plain_tokens_per_s is not None
        ),
    )
    yield Family(
        "speculation_speedup_ratio",
        "gauge",
        "Speed with drafting over speed without.",
        tuple(
            Sample(_where(model, speed), speed.speedup)
            for model, speed in speeds
            if speed.speedup is not None
        ),
    )


def _who(view: InstanceView) -> dict[str, str]:
    return {"model": view.model, "replica": str(view.replica)}


def _words(view: InstanceView, plan: LaunchPlan) -> dict[str, str]:
    running = view.running
    return {
        "asked": asked_speculation(plan) or "engine_args",
        "resolved": plan.spec.resolved,
        "running": UNKNOWN if running is None else running.speculation or UNKNOWN,
    }


def _where(model: str, speed: SpeedAt) -> dict[str, str]:
    return {"model": model, "running": speed.running, "busy_slots": str(speed.busy_slots)}


def _family_text(family: Family) -> str:
    if not family.samples:
        return ""
    name = f"paddock_{family.name}"
    lines = [f"# HELP {name} {family.meaning}", f"# TYPE {name} {family.kind}"]
    values: dict[str, float] = {}
    for sample in family.samples:
        labels = ",".join(f'{key}="{text.translate(ESCAPES)}"' for key, text in sample.labels.items())
        # A scraper refuses the whole text where two lines have the same labels.
        values.setdefault(labels, sample.value)
    lines += [f"{name}{{{labels}}} {_number(value)}" for labels, value in values.items()]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """All digits of a count; of a measured value no more than mean something."""
    return str(value) if isinstance(value, int) else str(round(value, MEASURED_DIGITS))
