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
from framework.values.instance import InstanceView, ModelView
from framework.values.reason import Reason
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
    text = metrics_text(services.fleet.views())
    return Response(text.encode(errors="replace"), media_type=MEDIA_TYPE, headers=PRIVATE)


def metrics_text(models: Iterable[ModelView]) -> str:
    """The text that a scraper reads; a family without samples is left out."""
    views = tuple(models)
    return "".join(_family_text(family) for family in (*_of_instances(views), *_of_models(views)))


def _of_instances(views: tuple[ModelView, ...]) -> Iterator[Family]:
    instances = [instance for view in views for instance in view.instances]
    yield Family(
        "fallback",
        "gauge",
        "1 for each reason why a model does not run as it was asked to.",
        tuple(
            Sample({**_who(instance), "reason": code}, 1)
            for instance in instances
            for code in dict.fromkeys(reason.code for reason in fallbacks(instance))
        ),
    )
    yield Family(
        "speculation_info",
        "gauge",
        "1 with what was asked, resolved and runs as labels.",
        tuple(Sample({**_who(instance), **_words(instance)}, 1) for instance in instances),
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


def fallbacks(view: InstanceView) -> Iterator[Reason]:
    """Why an instance is not what was asked: of its speculation, its start, its failure."""
    if view.granted is not None and view.granted.spec.reason is not None:
        yield view.granted.spec.reason
    if view.running is not None:
        if view.running.speculation_reason is not None:
            yield view.running.speculation_reason
        yield from view.running.degradations
    if view.last_error is not None:
        yield view.last_error


def _who(view: InstanceView) -> dict[str, str]:
    return {"model": view.model, "replica": str(view.replica)}


def _words(view: InstanceView) -> dict[str, str]:
    plan, running = view.granted, view.running
    asked = view.request.spec.mode if plan is None else asked_speculation(plan)
    return {
        "asked": asked or "engine_args",
        "resolved": UNKNOWN if plan is None else plan.spec.resolved,
        "running": UNKNOWN if running is None else running.speculation or UNKNOWN,
    }


def _where(model: str, speed: SpeedAt) -> dict[str, str]:
    return {"model": model, "running": speed.running, "busy_slots": str(speed.busy_slots)}


def _family_text(family: Family) -> str:
    if not family.samples:
        return ""
    name = f"paddock_{family.name}"
    lines = [f"# HELP {name} {family.meaning}", f"# TYPE {name} {family.kind}"]
    for sample in family.samples:
        labels = ",".join(f'{key}="{text.translate(ESCAPES)}"' for key, text in sample.labels.items())
        lines.append(f"{name}{{{labels}}} {_number(sample.value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """All digits of a count; of a measured value no more than mean something."""
    return str(value) if isinstance(value, int) else str(round(value, MEASURED_DIGITS))
