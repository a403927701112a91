"""What the Speculation page says of a model that is not loaded, and of one whose own arguments draft."""

from __future__ import annotations

from dataclasses import replace

from framework.values.instance import State
from framework.values.plan import SpecDecision
from framework.values.request import SpecPolicy
from framework.values.units_text import UNKNOWN
from tests.dashboard import samples
from tests.dashboard.spec_samples import model
from tests.dashboard.test_speculation import facts, row


def test_of_a_model_that_is_not_loaded_nothing_is_accepted() -> None:
    view = model()
    assert row(view).acceptance == "65 %"
    stopped = replace(view.instances[0], state=State.STOPPED)
    assert row(replace(view, instances=(stopped,))).acceptance == UNKNOWN


def test_ones_own_arguments_ask_before_anything_is_loaded_too() -> None:
    idle = samples.model("idle", State.STOPPED)
    view = replace(idle, request=replace(idle.request, extra_args=("--spec-type", "ngram-cache")))
    assert row(view).asked == "as engine_args say"


def test_a_drafter_of_ones_own_arguments_is_told_while_it_drafts() -> None:
    spec = SpecDecision(None, "user", drafter="/m/d.gguf")
    view = model(spec=spec, policy=SpecPolicy(), running="draft-simple")
    assert facts(view)["Drafter"] == "d.gguf"
