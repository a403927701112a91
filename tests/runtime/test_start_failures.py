"""Every way a start can fail gives one clear sentence, a class and a remedy (06 §14)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from framework.runtime.lease import LeaseRefused
from framework.values.instance import State
from framework.values.request import ModelSource, SpecPolicy
from tests.conftest import MakeFake
from tests.runtime.conftest import FleetRig, alive, changed, request_for

OFF = SpecPolicy(mode="off")


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        pytest.param({"exit_signal": "SIGILL"}, "cpu_unsupported", "CPU instructions", id="signal-4"),
        pytest.param({"exit_code": 1}, "start_failed", "exit code 1", id="exit-1"),
        pytest.param(
            {"exit_code": 1, "stderr": ["error loading model: unknown model architecture: 'womba'"]},
            "unsupported_architecture",
            "'womba'",
            id="unknown-architecture",
        ),
        pytest.param(
            {"exit_code": 1, "stderr": ["error loading model: unknown model architecture: 'flux'"]},
            "image_model",
            "image or video",
            id="image-model",
        ),
        pytest.param(
            {"exit_code": 127, "stderr": ["x: error while loading shared libraries: libfoo.so"]},
            "library_missing",
            "libfoo.so",
            id="library-missing",
        ),
        pytest.param(
            {"exit_code": 1, "stderr": ["error: invalid argument: --parallel"]},
            "flag_rejected",
            "--parallel",
            id="core-flag-rejected",
        ),
        pytest.param({"exit_signal": "SIGTERM"}, "terminated", "from outside", id="terminated"),
    ],
)
async def test_an_engine_that_dies_at_once_is_classified(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, script: dict[str, Any], code: str, words: str
) -> None:
    engine = fake_engine(**script)
    rig.declare(request_for(engine, tiny_gguf, spec=OFF))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == code
    assert words in view.last_error.message
    assert view.last_error.remedy
    assert len(engine.starts()) == 1
    assert rig.event("start_failed").reason == view.last_error


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param({"exit_signal": "SIGKILL"}, "killed_by_os", id="killed-by-the-system"),
        pytest.param({"exit_code": 1, "stderr": ["CUDA error: out of memory"]}, "out_of_memory", id="memory"),
    ],
)
async def test_a_failure_that_may_pass_is_tried_again(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, script: dict[str, Any], code: str
) -> None:
    engine = fake_engine(**script, faulty_starts=1)
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.READY)
    reason = rig.event("start_failed").reason
    assert reason is not None
    assert reason.code == code
    assert len(engine.starts()) == 2


async def test_an_engine_that_never_gets_healthy_is_given_up(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(load_s=-1)
    rig.declare(request_for(engine, tiny_gguf, live={"load_timeout_s": 3.0}))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "health_timeout"
    assert alive([engine.starts()[0]["pid"]]) == []


async def test_a_stranger_on_the_port_is_not_taken_for_the_engine(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(model_path="/somebody/elses.gguf")
    rig.declare(request_for(engine, tiny_gguf))
    view = await rig.until("m", State.BACKOFF, State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "port_conflict"
    assert len(engine.starts()) == 4


async def test_a_port_that_was_taken_is_changed(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    stderr = ["couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1"]
    engine = fake_engine(exit_code=1, stderr=stderr, faulty_starts=2)
    rig.declare(request_for(engine, tiny_gguf))
    await rig.until("m", State.READY)
    ports = [start["argv"][start["argv"].index("--port") + 1] for start in engine.starts()]
    assert len(set(ports)) == 3


async def test_an_optional_flag_that_the_build_refuses_is_dropped(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(reject_flags=["--metrics"])
    rig.declare(request_for(engine, tiny_gguf))
    view = await rig.until("m", State.READY)
    assert view.result is not None
    assert [reason.code for reason in view.result.degradations] == ["flag_rejected"]
    assert "--metrics" not in engine.starts()[-1]["argv"]


async def test_an_unknown_flag_of_the_user_is_refused_with_the_nearest_before_any_start(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf, extra_args=("--no-warmupp",)))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "user_flag_rejected"
    assert "--no-warmupp" in view.last_error.message
    assert "--no-warmup?" in view.last_error.remedy
    assert engine.starts() == []


async def test_a_flag_that_only_the_start_refuses_fails_with_its_name_and_no_retry(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(reject_flags=["--no-warmup"])
    rig.declare(request_for(engine, tiny_gguf, extra_args=("--no-warmup",)))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "user_flag_rejected"
    assert "--no-warmup" in view.last_error.message
    assert len(engine.starts()) == 1


async def test_a_fork_whose_help_leaves_flags_out_is_asked_and_its_own_spelling_is_named(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(help="fork")
    rig.declare(request_for(engine, tiny_gguf, extra_args=("--load-mode", "none")))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "user_flag_rejected"
    assert "unknown argument: --load-mode" in view.last_error.message
    assert "This engine calls it --no-mmap." in view.last_error.remedy
    assert len(engine.starts()) == 1


async def test_a_program_that_is_no_llama_server_is_named_before_any_start(
    rig: FleetRig, tiny_gguf: Path
) -> None:
    rig.declare(request_for(Path("/bin/cat"), tiny_gguf))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "not_an_engine"


async def test_a_removed_flag_of_the_user_is_refused_with_the_replacement_before_any_start(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf, extra_args=("--draft-max", "8")))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "user_flag_rejected"
    assert "--spec-draft-n-max" in view.last_error.remedy
    assert engine.starts() == []


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        pytest.param(None, "model_missing", "does not exist", id="missing"),
        pytest.param(b"hello, world, this is no model", "bad_model_file", "not a GGUF", id="not-gguf"),
        pytest.param(b"", "bad_model_file", "empty", id="empty"),
    ],
)
async def test_a_bad_model_file_is_refused_without_a_process(
    rig: FleetRig, fake_engine: MakeFake, tmp_path: Path, content: bytes | None, code: str, words: str
) -> None:
    path = tmp_path / "bad.gguf"
    if content is not None:
        path.write_bytes(content)
    engine = fake_engine()
    rig.declare(request_for(engine, path))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == code
    assert words in view.last_error.message
    assert engine.starts() == []


async def test_a_truncated_model_file_is_refused(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    tiny_gguf.write_bytes(tiny_gguf.read_bytes()[:-40])
    rig.declare(request_for(fake_engine(), tiny_gguf))
    view = await rig.until("m", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "bad_model_file"
    assert "cut" in view.last_error.message


async def test_no_engine_is_one_sentence_and_other_models_go_on(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    rig.declare(
        request_for(tmp_path / "no-such-engine", tiny_gguf, "broken"),
        request_for(fake_engine(), tiny_gguf, "fine"),
    )
    view = await rig.until("broken", State.FAILED)
    assert view.last_error is not None
    assert view.last_error.code == "binary_missing"
    await rig.until("fine", State.READY)


async def test_a_failed_model_recovers_when_its_file_appears(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    request = changed(request_for(fake_engine(), tiny_gguf), source=ModelSource(path=tmp_path / "later.gguf"))
    rig.declare(request)
    await rig.until("m", State.FAILED)
    (tmp_path / "later.gguf").write_bytes(tiny_gguf.read_bytes())
    await rig.until("m", State.READY)


async def test_a_failed_model_answers_requests_with_its_reason(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(exit_signal="SIGILL")
    rig.declare(request_for(engine, tiny_gguf, live={"load": "on-demand"}))
    for _ in range(2):
        with pytest.raises(LeaseRefused) as refused:
            await rig.fleet.acquire("m")
        assert refused.value.code == "model_load_failed"
        assert refused.value.reason is not None
        assert refused.value.reason.code == "cpu_unsupported"
    assert len(engine.starts()) == 1


async def test_a_reload_tries_a_failed_model_again(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine(exit_code=1, faulty_starts=1)
    rig.declare(request_for(engine, tiny_gguf, spec=OFF))
    await rig.until("m", State.FAILED)
    rig.declare(request_for(engine, tiny_gguf, spec=OFF))
    await asyncio.sleep(0.2)
    assert rig.instance("m").state is State.FAILED
    rig.fleet.reload("m", by="test")
    await rig.until("m", State.READY)


async def test_an_engine_that_ignores_a_setting_is_told_about(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    rig.declare(request_for(fake_engine(context=512), tiny_gguf))
    view = await rig.until("m", State.READY)
    assert view.result is not None
    assert [reason.code for reason in view.result.degradations] == ["context_lowered"]
    assert view.result.context == 512


async def test_the_key_of_a_launch_is_in_no_command_line_event_or_log(
    rig: FleetRig, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    engine = fake_engine()
    rig.declare(request_for(engine, tiny_gguf))
    view = await rig.until("m", State.READY)
    key = engine.starts()[0]["environment"]["LLAMA_API_KEY"]
    cmdline = Path(f"/proc/{view.pid}/cmdline").read_text()
    log = rig.fleet.log("m")
    assert log is not None
    everything = [
        cmdline,
        *(str(event) for event in rig.events.recent(limit=1000)),
        *(x.text for x in log.last(999)),
    ]
    assert len(key) > 30
    assert not any(key in text for text in everything)
