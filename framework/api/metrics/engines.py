"""The engines' own metrics under `model` and `replica`, and how old they are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from framework.api.metrics.labels import gauge
from framework.runtime.engine_metrics import EngineSample
from framework.telemetry.exposition import Family, Kind, Sample


def engines(said: Iterable[EngineSample]) -> Iterator[Family]:
    """Metrics of one name stand together, whichever engine they are of."""
    said = tuple(said)
    yield gauge(
        "engine_metrics_age_seconds",
        "How long ago the engine said what stands here of it.",
        (Sample(_who(one), one.age_s) for one in said if one.age_s is not None),
    )
    yield gauge(
        "engine_metrics_stale",
        "1 where the engine did not answer lately, as in a long batch.",
        (Sample(_who(one), int(one.is_stale)) for one in said),
    )
    yield gauge(
        "engine_metrics_refused",
        "Lines of the engine's answer that were left out, by reason.",
        (
            Sample({**_who(one), "reason": reason}, count)
            for one in said
            for reason, count in one.metrics.refused.items()
        ),
    )
    samples: dict[str, list[Sample]] = {}
    kinds: dict[str, Kind] = {}
    meanings: dict[str, str] = {}
    for one in said:
        for name, family in one.metrics.families.items():
            meanings.setdefault(name, family.meaning)
            if kinds.setdefault(name, family.kind) != family.kind:
                # Two builds that disagree; a family has one type.
                kinds[name] = "untyped"
            samples.setdefault(name, []).extend(
                Sample({**_who(one), **dict(labels)}, value) for labels, value in family.samples.items()
            )
    for name, found in samples.items():
        yield Family(name, kinds[name], meanings[name], tuple(found))


def _who(one: EngineSample) -> dict[str, str]:
    return {"model": one.model, "replica": str(one.replica)}
