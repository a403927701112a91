"""The text that a scraper gets of models and pools."""

from __future__ import annotations

from collections.abc import Iterable

from framework.api.metrics.page import fleet_families
from framework.telemetry.exposition import render
from framework.values.instance import ModelView
from framework.values.pool import PoolView


def metrics_text(views: Iterable[ModelView], pools: Iterable[PoolView] = ()) -> str:
    """As `/metrics` says it."""
    return render(fleet_families(views, pools))
