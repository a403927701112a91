"""What an engine says of remote devices, and of memory refused on them, as failure classes (MN-01, 06 §14).

The lines are those that build b10068 printed in these situations.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.runtime.failures import Outcome, StartEnd, classify, rejected_flag
from framework.runtime.remote_devices import Missing, connection_broke, endpoints, missing_servers
from framework.values.plan import LaunchPlan, Section
from framework.values.reason import Failure
from tests.dashboard import samples

SERVER, OTHER = "127.0.0.1:11501", "10.0.0.2:50052"
NOT_THERE = "0.00.058.752 E Failed to connect to 127.0.0.1:11501"
NO_SUCH_DEVICE = 'error while handling argument "--device": invalid device: RPC0'
OLD_SERVER = ("0.00.057.206 E RPC server version mismatch: 3.6.0", NOT_THERE)
LISTED = "0.00.087.850 I cmn  common_param:   - RPC0    : 127.0.0.1:11501 (24105 MiB, 24105 MiB free)"
BROKEN = (
    LISTED,
    "0.00.445.112 E send failed (bytes_sent=2095456, size_to_send=27985872)",
    "/tmp/llama-cpp-src/ggml/src/ggml-rpc/ggml-rpc.cpp:488:"
    " Remote RPC server crashed or returned malformed response",
    "[New LWP 10248]",
)
WEIGHTS_REFUSED = (
    LISTED,
    "0.00.322.068 E alloc_tensor_range: failed to allocate RPC0[127.0.0.1:11501] buffer of size 96576768",
    "0.00.348.342 E llama_model_load: error loading model: unable to allocate RPC0[127.0.0.1:11501] buffer",
)
CACHE_REFUSED = (
    LISTED,
    "0.00.583.011 E alloc_tensor_range: failed to allocate RPC0[127.0.0.1:11501] buffer of size 188743680",
    "0.00.583.364 E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv"
    " cache",
)
COMPUTE_REFUSED = (
    LISTED,
    "0.00.821.978 E ggml_gallocr_reserve_n_impl: failed to allocate RPC0[127.0.0.1:11501] buffer of size"
    " 17180704",
    "0.00.822.053 E graph_reserve: failed to allocate compute buffers",
)


def remote_plan(*servers: str, env: dict[str, str] | None = None) -> LaunchPlan:
    line = Section("device", ("--rpc", ",".join(servers), "--device", "RPC0"), "optional")
    plan = samples.plan(samples.request(), env=env or {})
    return samples.plan(samples.request(), sections=(*plan.sections, line), env=env or {})


def ended(lines: tuple[str, ...], *, exit_code: int | None = 1, outcome: Outcome = "exited") -> StartEnd:
    return StartEnd(outcome, exit_code, lines, remote_plan(SERVER), "/state/logs/m.log", 30.0)


def told(lines: tuple[str, ...], **how: object) -> Failure:
    return classify(ended(lines, **how))  # type: ignore[arg-type]


def test_servers_come_from_the_line_and_the_environment() -> None:
    plan = remote_plan(SERVER, OTHER, env={"LLAMA_ARG_RPC": f"{OTHER}, [::1]:7"})
    assert endpoints(plan) == (SERVER, OTHER, "[::1]:7")


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        pytest.param((NOT_THERE, NO_SUCH_DEVICE), "exited", id="named as a device"),
        pytest.param((NOT_THERE,), "incomplete", id="got ready without it"),
    ],
)
def test_a_server_that_is_not_there_is_lost_and_tried_again(lines: tuple[str, ...], outcome: Outcome) -> None:
    failure = told(lines, outcome=outcome)
    assert failure.reason.code == "rpc_lost"
    assert SERVER in failure.reason.message
    assert failure.retryable


def test_a_server_of_another_version_is_told_with_both_versions() -> None:
    """MN-01."""
    failure = told(OLD_SERVER, outcome="incomplete", exit_code=None)
    assert failure.reason.code == "rpc_version_mismatch"
    assert "3.6.0" in failure.reason.message
    assert samples.plan(samples.request()).caps.version in failure.reason.message
    assert "Ended by Paddock" in failure.detail


def test_a_device_whose_server_is_gone_is_no_refused_flag() -> None:
    assert rejected_flag(ended((NOT_THERE, NO_SUCH_DEVICE))) is None


def test_a_device_that_never_was_is_a_refused_flag() -> None:
    assert rejected_flag(ended((LISTED, NO_SUCH_DEVICE))) == "--device"


def test_a_server_that_answers_nobody_is_told_to_be_in_use() -> None:
    failure = told((), outcome="timeout", exit_code=None)
    assert failure.reason.code == "rpc_busy"
    assert "one program at a time" in failure.reason.message


def test_a_slow_load_on_a_server_that_answered_is_a_time_out() -> None:
    assert told((LISTED,), outcome="timeout", exit_code=None).reason.code == "health_timeout"


def test_a_server_that_breaks_off_while_the_model_loads_is_lost() -> None:
    failure = told(BROKEN, exit_code=-6)
    assert failure.reason.code == "rpc_lost"
    assert "broke while the model was loaded" in failure.reason.message


@pytest.mark.parametrize("begun", ["", "0.00.445.113 ", "0.00.445.113 E "])
def test_an_abort_is_seen_in_a_line_that_the_log_had_begun(begun: str) -> None:
    lines = [line if line.startswith("0.") else begun + line for line in BROKEN]
    assert connection_broke(lines)


@pytest.mark.parametrize(
    ("lines", "exit_code", "said"),
    [
        pytest.param(WEIGHTS_REFUSED, 1, f"92 MiB for weights were refused on {SERVER}.", id="weights"),
        pytest.param(CACHE_REFUSED, -11, f"180 MiB for the KV cache were refused on {SERVER}.", id="cache"),
        pytest.param(
            COMPUTE_REFUSED, -11, f"16 MiB for compute buffers were refused on {SERVER}.", id="compute"
        ),
    ],
)
def test_memory_that_a_server_refuses_is_told_by_its_address(
    lines: tuple[str, ...], exit_code: int, said: str
) -> None:
    failure = told(lines, exit_code=exit_code)
    assert failure.reason.code == "out_of_memory"
    assert said in failure.reason.message
    assert failure.retryable


@pytest.mark.parametrize(
    "line",
    [
        "llama_model_loader: - kv 5: general.name str = Failed to connect to 127.0.0.1:11501",
        "0.00.1 E Failed to connect to 127.0.0.1:11501 at last",
        "0.00.1 E Failed to connect to 127.0.0.1:99",
    ],
)
def test_words_from_elsewhere_are_not_believed(line: str) -> None:
    assert missing_servers(remote_plan(SERVER), (line,)) == ()


def test_a_version_belongs_to_the_server_named_next() -> None:
    lines = (*OLD_SERVER, f"E Failed to connect to {OTHER}", f"0.1 E Failed to connect to {OTHER}")
    found = missing_servers(remote_plan(SERVER, OTHER), lines)
    assert found == (Missing(SERVER, "3.6.0"), Missing(OTHER))


@given(st.lists(st.text(max_size=80), max_size=8))
def test_no_text_makes_a_server_missing_that_is_not_used(lines: list[str]) -> None:
    assert missing_servers(samples.plan(samples.request()), [*lines, NOT_THERE]) == ()
    assert not connection_broke(lines)
