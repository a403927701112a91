"""The manager itself: its version, its manifest, what it serves now, its keys, its process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import psutil

from framework.api.metrics.labels import gauge
from framework.api.services import Services
from framework.proxy.records import RequestView
from framework.telemetry.exposition import Family, Sample


def manager(services: Services) -> Iterator[Family]:
    """What holds for all models."""
    current = services.current
    broken = any(problem.severity == "error" for problem in current.problems)
    yield gauge("build_info", "1 with the version as label.", [Sample({"version": services.version}, 1)])
    yield gauge("manifest_valid", "0 while the file is refused.", [Sample({}, int(not broken))])
    yield gauge(
        "manifest_loaded_timestamp_seconds",
        "When the manifest in force was read, in seconds since 1970.",
        [Sample({}, current.loaded_at.timestamp())],
    )
    end = services.certificate_ends_at()
    yield gauge(
        "certificate_not_after_timestamp_seconds",
        "When the certificate of the listener ends, in seconds since 1970.",
        [] if end is None else [Sample({}, end.timestamp())],
    )
    yield gauge(
        "storage_fault",
        "1 while events cannot be written to disk.",
        [Sample({}, int(services.events.storage_fault is not None))],
    )


def requests_now(views: Iterable[RequestView]) -> Family:
    """Requests that are served at this moment."""
    counts = Counter((view.model, view.phase) for view in views)
    return gauge(
        "requests_in_flight",
        "Requests that are served now.",
        (Sample({"model": model, "phase": phase}, count) for (model, phase), count in counts.items()),
    )


def keys(services: Services, now: float) -> Iterator[Family]:
    """What keys with limits have left."""
    declared, allowances = services.current.manifest.access, services.allowances
    yield gauge(
        "key_requests",
        "Requests of a key that are served now.",
        (Sample({"key": name}, use.running) for name, use in allowances.uses.items()),
    )
    yield gauge(
        "key_tokens_left",
        "Tokens that a key with a limit may still use; below 0 after a request that took too many.",
        (Sample({"key": name}, left) for name, left in allowances.tokens_left(declared, now).items()),
    )


def process() -> Iterator[Family]:
    """The process of the manager, under the names that Prometheus' own clients use."""
    own = psutil.Process()
    with own.oneshot():
        times, files = own.cpu_times(), own.num_fds()
        values = (
            ("process_resident_memory_bytes", "Resident memory of the manager.", own.memory_info().rss),
            ("process_open_fds", "Open files of the manager.", files),
            (
                "process_start_time_seconds",
                "When the manager started, in seconds since 1970.",
                own.create_time(),
            ),
        )
    for name, meaning, value in values:
        yield Family(name, "gauge", meaning, (Sample({}, value),))
    spent_s = times.user + times.system
    yield Family("process_cpu_seconds_total", "counter", "CPU time of the manager.", (Sample({}, spent_s),))
