"""Reading an engine's memory plan from its log; the lines are those of b10068 at verbosity 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.fit_log import MOST_ERRORS, FitLog
from framework.values.measurement import EngineChoice, MeasuredRow, Measurement

TABLE = "0.00.495.775 I common_memory_breakdown_print: "
FIT = "0.00.536.446 I common_params_fit_impl: "
HEAD = (
    TABLE + "| memory breakdown [MiB] | total    free     self   model   context   compute    unaccounted |"
)
GPU = (
    TABLE
    + "|   - RPC0 (127.0.0.1:44617) | 24105 = 24105 + (37535 =  4403 +   32768 +     364) +      -37535 |"
)
HOST = TABLE + "|   - Host       |                    553 =   281 +       0 +     272                |"
REPACK = TABLE + "|   - CPU_REPACK |                   1284 =  1284 +       0 +       0                |"
GPU_LESS = (
    TABLE
    + "|   - RPC0 (127.0.0.1:44617) | 24105 = 24105 + (22585 =  2773 +   19456 +     356) +      -22585 |"
)
HOST_MORE = TABLE + "|   - Host       |                  14310 =   626 +   13312 +     372                |"
START = FIT + "getting device memory data for initial parameters:"
PROJECTED = FIT + "projected to use 37535 MiB of device memory vs. 24105 MiB of free device memory"
FINE = FIT + "will leave 3081 >= 1024 MiB of free device memory, no changes needed"
SUCCESS = "0.02.408.216 I common_fit_params: successfully fit params to free device memory"

GPU_ROW = MeasuredRow("RPC0", "RPC0", 4403, 32768, 364, 24105)
HOST_ROW = MeasuredRow("CPU", "Host", 281, 0, 272)


def read(*lines: str, whole: bool = True) -> tuple[FitLog, int | None]:
    """The log, and after how many lines it had enough."""
    log = FitLog(whole=whole)
    for number, line in enumerate(lines, start=1):
        if log.feed(line):
            return log, number
    return log, None


def test_the_first_table_of_the_fit_step_is_the_answer() -> None:
    log, enough = read(START, HEAD, GPU, HOST, PROJECTED, FINE)
    assert log.measurement == Measurement((GPU_ROW, HOST_ROW))
    assert enough == 6


def test_a_launch_that_is_not_fitted_needs_the_first_table_alone() -> None:
    log, enough = read(START, HEAD, GPU, HOST, PROJECTED, FINE, whole=False)
    assert (log.measurement, enough) == (Measurement((GPU_ROW, HOST_ROW)), 5)


def test_lines_may_come_without_time_and_level() -> None:
    lines = [line.split(" I ", 1)[1] for line in (START, HEAD, HOST, FINE)]
    assert read(*lines)[0].measurement == Measurement((HOST_ROW,))


def test_a_shorter_context_is_read_and_has_no_table() -> None:
    reduced = FIT + "context size reduced from 524288 to 147200 -> need 47504 MiB less memory in total"
    log, enough = read(START, HEAD, GPU, HOST, PROJECTED, HEAD, GPU_LESS, HOST_MORE, reduced, SUCCESS)
    assert log.measurement == Measurement((GPU_ROW, HOST_ROW), choice=EngineChoice((), 147200))
    assert enough == 10


def test_layers_that_were_taken_away_come_with_the_table_of_that_try() -> None:
    decided = FIT + "  - RPC0 (127.0.0.1:44617): 20 layers,  22585 MiB used,   1519 MiB free"
    tried = [START, HEAD, GPU, HOST, PROJECTED, HEAD, GPU_LESS, HOST_MORE, REPACK, PROJECTED, HEAD, GPU, HOST]
    log, _ = read(*tried, PROJECTED, decided, SUCCESS)
    table = (
        MeasuredRow("RPC0", "RPC0", 2773, 19456, 356, 24105),
        MeasuredRow("CPU", "Host", 626, 13312, 372),
        MeasuredRow("CPU", "CPU_REPACK", 1284, 0, 0),
    )
    assert log.measurement is not None
    assert log.measurement.choice == EngineChoice(table, None, gpu_layers=20)


def test_layers_without_their_experts_are_counted() -> None:
    decided = FIT + "  - RPC0 (127.0.0.1:44617): 49 layers (21 overflowing),  37535 MiB used,   1105 MiB free"
    log, _ = read(START, HEAD, GPU, HOST, PROJECTED, decided, SUCCESS)
    assert log.measurement is not None
    assert log.measurement.choice == EngineChoice((GPU_ROW, HOST_ROW), None, 49, 21)


def test_a_drafter_is_measured_before_the_fit_step() -> None:
    log, _ = read(HEAD, HOST, "0.00.373.557 I srv    load_model: [spec] estimated", START, HEAD, GPU, FINE)
    assert log.measurement == Measurement((GPU_ROW,), draft=(HOST_ROW,))


def test_a_projector_is_measured_before_the_fit_step() -> None:
    line = (
        "0.00.1 I srv    load_model: [mtmd] estimated worst-case memory usage of mmproj is 851.42 MiB"
        " (took 3.00 ms)"
    )
    assert read(line, START, HEAD, HOST, FINE)[0].measurement == Measurement((HOST_ROW,), projector_mib=851)


def test_without_a_table_the_first_errors_are_kept() -> None:
    error = "0.00.170.542 E llama_model_load: error loading model: unknown model architecture: 'lxama'"
    failed = "0.00.170.775 E common_fit_params: encountered an error while trying to fit params to free"
    log, enough = read(START, error, failed)
    assert (log.measurement, enough) == (None, 3)
    assert log.errors[0] == "error loading model: unknown model architecture: 'lxama'"


def test_a_fit_step_that_gives_up_after_its_table_leaves_the_launch_as_asked() -> None:
    gave_up = "0.1 W common_fit_params: failed to fit params to free device memory: n_gpu_layers already set"
    assert read(START, HEAD, GPU, HOST, PROJECTED, gave_up)[0].measurement == Measurement((GPU_ROW, HOST_ROW))


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([], id="cut off"),
        pytest.param(
            ["0.1 W common_fit_params: failed to fit params to free device memory: no"], id="failed"
        ),
    ],
)
def test_what_was_tried_on_the_way_is_no_decision(end: list[str]) -> None:
    tried = FIT + "  - RPC0 (127.0.0.1:44617): 20 layers,  22585 MiB used,   1519 MiB free"
    log, _ = read(START, HEAD, GPU, HOST, PROJECTED, HEAD, GPU_LESS, HOST_MORE, tried, *end)
    assert log.measurement == Measurement((GPU_ROW, HOST_ROW))


@pytest.mark.parametrize(
    ("lines", "has_begun"),
    [
        pytest.param(["0.1 I srv: loading model"], False, id="something else"),
        pytest.param([START], True, id="the fit step"),
        pytest.param([HEAD, HOST, "0.1 I srv: x"], True, id="the table of a drafter"),
    ],
)
def test_whether_a_measurement_has_begun(lines: list[str], has_begun: bool) -> None:
    assert read(*lines)[0].has_begun is has_begun


def test_a_real_load_is_seen_when_no_table_comes() -> None:
    load = "0.00.585 I load_tensors: loading model tensors, this can take a while... (mmap = true)"
    log, enough = read("0.00.5 I print_info: no_alloc              = 0", load)
    assert (log.loading, enough, log.measurement) == (True, 2, None)


def test_a_load_without_memory_behind_it_is_no_real_one() -> None:
    load = "0.00.585 I load_tensors: loading model tensors, this can take a while... (mmap = false)"
    assert read("0.00.5 I print_info: no_alloc              = 1", load)[1] is None


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([HEAD.replace("[MiB]", "[GiB]"), GPU], id="another unit"),
        pytest.param([HEAD, GPU.replace("37535 =", "99999 =")], id="parts that are not the sum"),
        pytest.param([HEAD, HOST.replace("281", "2.8e2")], id="numbers of another form"),
        pytest.param([HEAD, HOST.replace("281", "9" * 40)], id="absurd numbers"),
        pytest.param([GPU, HOST], id="rows without a heading"),
        pytest.param([HEAD], id="no rows"),
        pytest.param([HEAD, TABLE + "|   - Host | \x1b[31m281 |"], id="something else"),
        pytest.param(["0.0 I llama_model_loader: - kv 2: general.name str = " + HEAD, HOST], id="a name"),
    ],
)
def test_what_is_no_table_in_mib_is_not_believed(lines: list[str]) -> None:
    assert read(START, *lines, FINE)[0].measurement is None


def test_rows_of_a_table_have_a_bound() -> None:
    assert read(START, HEAD, *[HOST] * 10_000, FINE)[0].measurement is None


@given(st.lists(st.text(max_size=200) | st.sampled_from([START, HEAD, GPU, HOST, FINE, SUCCESS])))
def test_no_line_is_a_fault(lines: list[str]) -> None:
    log, _ = read(*lines)
    assert len(log.errors) <= MOST_ERRORS
    measured = log.measurement
    assert measured is None or set(measured.asked) <= {GPU_ROW, HOST_ROW}


@given(st.text(max_size=500))
def test_errors_are_one_visible_line(text: str) -> None:
    log, _ = read("0.1 E load: " + text.replace("\n", "\x1b"))
    assert not any("\x1b" in error for error in log.errors)
