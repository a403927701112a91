"""What happens to a record and its process, case by case (07 §8.2, vectors 15.5)."""

from __future__ import annotations

import os

import pytest

from framework.runtime.process_identity import is_same, start_identity
from framework.runtime.sweep import Sight, Verdict, judge

ORPHAN = Sight(is_self=False, owner="gone", process="same", is_engine=True, is_ours=True)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        pytest.param({}, "end", id="a-true-orphan"),
        pytest.param({"is_self": True}, "leave", id="own-number"),
        pytest.param({"owner": "same"}, "leave", id="its-manager-lives"),
        pytest.param({"owner": "unknown"}, "leave", id="its-manager-may-live"),
        pytest.param({"owner": "other"}, "end", id="another-has-the-managers-number"),
        pytest.param({"process": "gone"}, "forget", id="gone"),
        pytest.param({"process": "other"}, "forget", id="another-process-has-its-number"),
        pytest.param({"process": "unknown"}, "leave", id="it-cannot-be-told"),
        pytest.param({"is_engine": False, "is_ours": False}, "forget", id="another-program"),
        pytest.param({"is_engine": False}, "end", id="no-engine-and-ours"),
        pytest.param({"is_ours": None}, "end", id="an-engine-whose-environment-is-hidden"),
        pytest.param({"is_ours": None, "is_engine": False}, "forget", id="hidden-and-no-engine"),
        pytest.param({"is_ours": False}, "forget", id="an-engine-without-our-mark"),
        pytest.param({"owner": "unknown", "process": "other"}, "forget", id="a-number-of-somebody-else"),
    ],
)
def test_the_verdict(changes: dict[str, object], verdict: Verdict) -> None:
    assert judge(Sight(**{**vars(ORPHAN), **changes})) == verdict


def test_this_process_is_itself() -> None:
    assert is_same(os.getpid(), start_identity(os.getpid())) == "same"


@pytest.mark.parametrize(
    ("pid", "identity", "found"),
    [
        pytest.param(os.getpid(), "proc:1", "other", id="another-start"),
        pytest.param(os.getpid(), "ps:1700000000.5", "unknown", id="another-method"),
        pytest.param(os.getpid(), "none:", "unknown", id="never-known"),
        pytest.param(os.getpid(), "", "unknown", id="nothing"),
        pytest.param(2**22 + 1, "proc:1", "gone", id="no-such-process"),
        pytest.param(2**70, "proc:1", "gone", id="no-such-number"),
        pytest.param(-1, "proc:1", "gone", id="negative"),
    ],
)
def test_who_has_a_number(pid: int, identity: str, found: str) -> None:
    assert is_same(pid, identity) == found
