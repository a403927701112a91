"""`paddock bench`: one table with the model's policy and without, and a baseline that the next `up` knows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from framework import state_dir
from tests.commands.conftest import Paddock
from tests.conftest import MakeFake
from tests.support.model_files import write_tiny_gguf
from tests.support.waiting import wait_until

# Tokens of 10 ms without drafting, of 4 ms with it.
GAINS = {"tokens": 32, "token_ms": 10.0, "drafting_token_ms": 4.0, "drafted": 20, "accepted": 19}
QUICK = ("--requests", "2", "--tokens", "32")


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_engine: MakeFake) -> Path:
    """A manifest of one model whose engine gains by drafting; its state lies beside it."""
    write_tiny_gguf(tmp_path / "tiny.gguf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PADDOCK_STATE_DIR", str(tmp_path / "state"))
    write_manifest(tmp_path, fake_engine(**GAINS).path)
    return tmp_path


def write_manifest(folder: Path, engine: Path, mode: str = "ngram") -> None:
    (folder / "serve.toml").write_text(
        f'[engines.default]\nbinary = "{engine}"\n[speculation.own]\nmode = "{mode}"\n'
        '[models.tiny]\nsource = "tiny.gguf"\ncontext = 1024\nspeculation = "own"\naliases = ["small"]\n'
    )


def test_one_table_compares_both(paddock: Paddock, declare: Path) -> None:
    ended = paddock("bench", "tiny", *QUICK)
    assert ended.code == 0, ended.err
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == "tiny: speculation asked ngram, resolved ngram-mod, running ngram-mod"
    assert lines[1].startswith("WORKLOAD ANSWERS TOKENS/S WITHOUT WITH SPEED-UP")
    assert lines[2].startswith("prose 2 100.0 250.0 2.50x")
    assert lines[2].endswith("95%")


def test_the_same_facts_as_json(paddock: Paddock, declare: Path) -> None:
    document = paddock("bench", "small", *QUICK, "--json").json
    assert [row["workload"] for row in document["workloads"]] == ["prose", "edit"]
    row = document["workloads"][0]
    assert (row["baseline_tokens_per_s"], row["tokens_per_s"], row["speedup"]) == (100.0, 250.0, 2.5)
    assert row["first_token_s"] > 0
    assert document["speculation"]["resolved"] == "ngram-mod"


def test_the_baseline_is_kept_for_the_next_server(paddock: Paddock, declare: Path) -> None:
    paddock("bench", "tiny", *QUICK)
    (kept,) = (declare / "state" / "speeds").iterdir()
    cells = json.loads(kept.read_text())["cells"]
    assert {cell["running"]: cell["requests"] for cell in cells} == {"none": 4, "ngram-mod": 4}


def test_several_requests_at_once_are_another_number_of_busy_slots(paddock: Paddock, declare: Path) -> None:
    assert paddock("bench", "tiny", *QUICK, "--at-once", "2").code == 0
    (kept,) = (declare / "state" / "speeds").iterdir()
    cells = json.loads(kept.read_text())["cells"]
    assert sum(cell["requests"] for cell in cells if cell["running"] == "none") == 4


def test_a_policy_that_does_not_draft_is_timed_once(
    paddock: Paddock, declare: Path, fake_engine: MakeFake
) -> None:
    write_manifest(declare, fake_engine(**GAINS).path, mode="off")
    document = paddock("bench", "tiny", *QUICK, "--json").json
    assert [row["tokens_per_s"] for row in document["workloads"]] == [None, None]
    assert [row["baseline_tokens_per_s"] for row in document["workloads"]] == [100.0, 100.0]


def test_a_policy_that_does_not_draft_leaves_nothing_to_compare_and_says_so(
    paddock: Paddock, declare: Path, fake_engine: MakeFake
) -> None:
    write_manifest(declare, fake_engine(**GAINS).path, mode="off")
    assert "there is nothing to compare" in paddock("bench", "tiny", *QUICK).out


def test_too_few_tokens_make_no_speed_up_and_no_baseline(
    paddock: Paddock, declare: Path, fake_engine: MakeFake
) -> None:
    write_manifest(declare, fake_engine(**{**GAINS, "tokens": 4}).path)
    ended = paddock("bench", "tiny", "--requests", "1", "--tokens", "4")
    assert "too few tokens" in ended.out
    assert not list((declare / "state").glob("speeds/*"))


def test_where_nothing_was_drafted_there_is_no_speed_up(
    paddock: Paddock, declare: Path, fake_engine: MakeFake
) -> None:
    write_manifest(declare, fake_engine(**{**GAINS, "drafted": 0, "accepted": 0}).path)
    row = paddock("bench", "tiny", *QUICK, "--json").json["workloads"][0]
    assert (row["speedup"], row["no_speedup"]) == (None, "nothing was drafted")


def test_beside_a_running_server_it_refuses(paddock: Paddock, declare: Path) -> None:
    (declare / "state").mkdir(mode=0o700)
    with state_dir.hold(declare / "state"):
        ended = paddock("bench", "tiny", *QUICK)
    assert ended.code == 1
    assert "already runs this manifest" in ended.err


def test_a_start_that_fails_is_told_in_one_line(
    paddock: Paddock, declare: Path, fake_engine: MakeFake
) -> None:
    stderr = ("error loading model: unknown model architecture: 'womba'",)
    write_manifest(declare, fake_engine(exit_code=1, stderr=stderr).path)
    ended = paddock("bench", "tiny", *QUICK)
    assert ended.code == 1
    assert "womba" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--requests", "0"), id="no requests"),
        pytest.param(("--tokens", "one"), id="no number of tokens"),
        pytest.param(("--at-once", "1000"), id="too many at once"),
    ],
)
def test_bad_options_are_refused(paddock: Paddock, declare: Path, arguments: tuple[str, str]) -> None:
    ended = paddock("bench", "tiny", *arguments)
    assert ended.code == 2
    assert arguments[0] in ended.err


def test_what_an_option_takes_is_told_with_its_unit(paddock: Paddock, declare: Path) -> None:
    assert "a whole number from 2 to 100,000 tokens;" in paddock("bench", "tiny", "--tokens", "1").err


def test_an_unknown_model_is_refused(paddock: Paddock, declare: Path) -> None:
    ended = paddock("bench", "tinny")
    assert ended.code == 2
    assert "tiny" in ended.err


@pytest.mark.parametrize("pause_s", [0.05, 0.5], ids=["at once", "while the engine does not end"])
def test_a_second_interrupt_ends_it_without_a_word_of_libraries(
    declare: Path, fake_engine: MakeFake, pause_s: float
) -> None:
    engine = fake_engine(tokens=500, token_interval_s=0.1, ignore_sigterm=True)
    write_manifest(declare, engine.path)
    with subprocess.Popen(
        [sys.executable, "-m", "framework", "bench", "tiny", "--manifest", str(declare / "serve.toml")],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "tiny: without speculation\n"
        own = psutil.Process(process.pid)
        wait_until(lambda: len(engine.requests()) > 1)
        engines = own.children(recursive=True)
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(pause_s)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert (process.returncode, rest) == (130, "")
    assert psutil.wait_procs(engines, timeout=20.0)[1] == []
