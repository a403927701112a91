"""Scrape a running manager as Prometheus does."""

from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.paddock import RunningPaddock

Samples = dict[str, list[tuple[dict[str, str], float]]]
"""Labels and values by the name of their metric."""


def scrape(paddock: RunningPaddock) -> str:
    """The text of one scrape."""
    headers = {"Authorization": f"Bearer {paddock.token}"}
    answer = httpx.get(f"{paddock.base_url}/metrics", headers=headers, timeout=30, trust_env=False)
    assert answer.status_code == 200
    return answer.text


def samples(text: str) -> Samples:
    """Samples by name; the parser refuses what Prometheus refuses."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found
