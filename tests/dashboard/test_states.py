"""Words and buttons for states."""

from __future__ import annotations

import pytest

from framework.dashboard.states import LOOKS, actions_of
from framework.values.instance import State
from tests.dashboard.samples import model


def test_every_state_has_a_look() -> None:
    assert set(LOOKS) == set(State)


def test_no_two_states_read_the_same() -> None:
    assert len({look.label for look in LOOKS.values()}) == len(State)


@pytest.mark.parametrize(
    ("state", "verbs"),
    [
        (State.STOPPED, ["load"]),
        (State.STARTING, ["unload"]),
        (State.READY, ["unload", "reload"]),
        (State.BACKOFF, ["reload", "unload"]),
        (State.FAILED, ["reload"]),
        (State.STOPPING, []),
    ],
)
def test_only_fitting_buttons_are_offered(state: State, verbs: list[str]) -> None:
    assert [action.verb for action in actions_of(model(state=state))] == verbs


def test_a_model_that_left_the_manifest_has_no_buttons() -> None:
    assert actions_of(model(removed=True)) == ()
