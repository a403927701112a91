"""A memory plan as JSON: lines, sums and budgets by device, and what to change if it does not fit (13 §2)."""

from __future__ import annotations

from typing import Any

from framework.values.plan import FitPlan


def fit_json(fit: FitPlan) -> dict[str, Any]:
    """The plan. `context` and `slots` are what its lines are for, null and 0 where nothing was planned.

    A `mapped` line is pages of a file that the system can drop, a `grows` line is taken while the server
    runs: `needed_bytes` are the other lines, and `fits` compares them with the budget.
    """
    return {
        "budget_bytes": dict(fit.budget_bytes),
        "total_bytes": dict(fit.total_bytes),
        "needed_bytes": {device: fit.needed_bytes(device) for device in fit.total_bytes},
        "lines": [
            {
                "device": line.device,
                "label": line.label,
                "bytes": line.bytes,
                "basis": line.basis,
                "mapped": line.mapped,
                "grows": line.grows,
            }
            for line in fit.lines
        ],
        "fits": fit.fits,
        "context": fit.context,
        "slots": fit.slots,
        "remedies": [
            {
                "kind": remedy.kind,
                "to": remedy.to,
                "frees_bytes": remedy.frees_bytes,
                "fits": remedy.fits,
                "sentence": remedy.sentence,
            }
            for remedy in fit.remedies
        ],
    }
