"""A model whose tensors could not be divided is planned by layers, on several cards all the same (04 §12)."""

from __future__ import annotations

from dataclasses import replace

from framework.planning.launch_site import Launch
from framework.values.plan import Withheld
from framework.values.reason import Reason
from tests.support.launches import a_card, a_launch, codes, placed

ABORTED = Reason("tensor_abort", "It broke.", "Use another build.", "warning")
TWO = (a_card(0, 20.0), a_card(1, 20.0))
ALL_LAYERS = 33


def withheld(launch: Launch) -> Launch:
    return replace(launch, facts=replace(launch.facts, withheld=Withheld(tensor=ABORTED)))


def test_layers_are_divided_and_it_is_said_why() -> None:
    launch = a_launch(n_ctx=16_384, tensor_parallel=True)
    assert placed(launch, *TWO).placement.split == "tensor"
    plan = placed(withheld(launch), *TWO)
    assert plan.placement.split == "layer"
    assert "--split-mode" not in plan.argv
    assert ABORTED in plan.reasons
    assert "tensor_dropped" not in codes(plan)


def test_manual_mode_obeys_as_well() -> None:
    launch = a_launch(n_ctx=8192, memory_mode="manual", gpu_layers=ALL_LAYERS, tensor_parallel=True)
    plan = placed(withheld(launch), *TWO)
    assert "--split-mode" not in plan.argv
    assert ABORTED in plan.reasons
    assert len(plan.placement.devices) == len(TWO)


def test_a_model_that_did_not_want_it_is_not_told() -> None:
    assert ABORTED not in placed(withheld(a_launch(n_ctx=8192)), *TWO).reasons
