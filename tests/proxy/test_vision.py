"""Whether a model is said to take pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from framework.proxy.vision import sees
from framework.values.instance import InstanceView
from framework.values.plan import LaunchResult
from tests.api.samples import instance, model, plan

PROJECTOR = Path("/m/mmproj.gguf")
STARTING = instance(plan=plan(projector=PROJECTOR), result=None)
BLIND = instance(plan=plan(), result=None)


@pytest.mark.parametrize(
    ("asked", "instances", "seen"),
    [
        pytest.param(None, (), False, id="text was asked for"),
        pytest.param(PROJECTOR, (), True, id="a projector is named"),
        pytest.param("auto", (), None, id="it is yet to be looked for"),
        pytest.param("auto", (STARTING,), True, id="one was found"),
        pytest.param("auto", (BLIND,), False, id="none was found"),
        pytest.param(
            PROJECTOR, (replace(STARTING, result=LaunchResult("ready")),), False, id="the engine dropped it"
        ),
        pytest.param(
            "auto", (replace(BLIND, result=LaunchResult("ready", vision=True)),), True, id="the engine has it"
        ),
        pytest.param(
            PROJECTOR, (instance(plan=None, result=None), STARTING), True, id="the first that is planned"
        ),
    ],
)
def test_what_is_known_comes_from_the_latest_stage(
    asked: Path | Literal["auto"] | None, instances: tuple[InstanceView, ...], seen: bool | None
) -> None:
    view = model("chat", *instances)
    assert sees(replace(view, request=replace(view.request, projector=asked))) is seen
