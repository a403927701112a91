"""A start that ended for lack of memory says how much was planned where (06 §14, 03)."""

from __future__ import annotations

import pytest

from framework.runtime.failures import StartEnd, classify
from framework.values.plan import FitPlan
from framework.values.reason import Failure
from tests.dashboard import fits, samples
from tests.dashboard.samples import GIB

OUT_OF_MEMORY = "ggml_cuda: CUDA error: out of memory"


def ended(fit: FitPlan, *, exit_code: int = 1) -> Failure:
    plan = samples.plan(samples.request(), fit=fit)
    return classify(StartEnd("exited", exit_code, (OUT_OF_MEMORY,), plan, "/state/logs/m.log", 1.0))


@pytest.mark.parametrize(("exit_code", "code"), [(1, "out_of_memory"), (-9, "killed_by_os")])
def test_it_names_the_device_that_was_too_small(exit_code: int, code: str) -> None:
    fit = fits.fit_of(
        fits.line("CUDA0", "weights", 9 * GIB),
        fits.line("CUDA1", "weights", 2 * GIB),
        fits=False,
        CUDA0=6 * GIB,
        CUDA1=6 * GIB,
    )
    reason = ended(fit, exit_code=exit_code).reason
    assert reason.code == code
    assert "9 GiB of CUDA0, where 6 GiB could be used." in reason.message
    assert "CUDA1" not in reason.message
    assert reason.evidence["needed_bytes"] == {"CUDA0": 9 * GIB, "CUDA1": 2 * GIB}
    assert reason.evidence["budget_bytes"] == {"CUDA0": 6 * GIB, "CUDA1": 6 * GIB}


def test_a_plan_that_fitted_is_told_all_the_same() -> None:
    fit = fits.fit_of(fits.line("CPU", "weights", 2 * GIB), CPU=4 * GIB)
    assert "2 GiB of CPU, where 4 GiB could be used." in ended(fit).reason.message


def test_without_a_memory_plan_no_numbers_are_made_up() -> None:
    reason = ended(FitPlan()).reason
    assert reason.message == "The device had less memory than the model needs."
    assert "needed_bytes" not in reason.evidence
