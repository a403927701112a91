"""What is noted of a process comes back as it was, without secrets, and nothing else is believed (07 §6)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from framework.planning.slot_saving.fingerprint import Loaded, files_of, fingerprint
from framework.runtime.process_identity import start_identity
from framework.runtime.records import Named, Trace, read_record, read_records, without_secrets
from framework.values.engine import Capabilities, EngineBinary, EngineRef, FileId
from framework.values.plan import (
    Attempt,
    FitPlan,
    LaunchPlan,
    LaunchResult,
    MemoryLine,
    Placement,
    Section,
    SpecDecision,
)
from framework.values.reason import Reason
from framework.values.request import LiveSettings, ModelRequest, ModelSource, PoolLimits, SpecPolicy
from framework.values.speculation import SpecFacts, SpecInputs
from tests.support.launch_plans import a_plan

PROGRAM = Path("/opt/llama/llama-server")
BINARY = EngineBinary(PROGRAM, PROGRAM.parent, FileId(PROGRAM, 1000, 5), "manifest")
CAPS = Capabilities(conclusive=True, flags=frozenset({"--fit", "--metrics"}), spec_types=("ngram-mod",))
REQUEST = ModelRequest(
    id="org/a model",
    source=ModelSource(repo="org/repo", variant="Q4_K_M"),
    engine=EngineRef(path=PROGRAM, env={"A": "1"}),
    pool=PoolLimits("gpu", ("CUDA0", "rpc://h:1"), reserve_bytes=5),
    spec=SpecPolicy(mode="ngram", depth=4),
    cache_type=("q8_0", None),
    projector="auto",
    adapters=((Path("/l.gguf"), 0.5),),
    template_kwargs={"enable": True, "list": [1, "two"]},
    extra_args=("--mlock",),
    env={"B": "2"},
    live=LiveSettings(aliases=("x",), load="at-start", idle_after_s=None, request_defaults={"seed": 1}),
)
PLAN = a_plan(
    BINARY,
    Section("spec", ("--spec-type", "ngram-mod"), "optional"),
    model=Path("/m/a.gguf"),
    caps=CAPS,
    request=REQUEST,
    spec=SpecDecision("ngram", "ngram-mod", ("--spec-type", "ngram-mod"), notes=(Reason("a_note", "Note."),)),
    env={"PATH": "/bin", "B": "2"},
    fit=FitPlan((MemoryLine("CUDA0", "weights", 7, "computed"),), {"CUDA0": 9}, {"CUDA0": 7}, fits=True),
    placement=Placement(
        ("CUDA0",), {"CUDA0": "CUDA0"}, is_delegated=False, shares=(0.5,), needs_bytes={"CUDA0": 7}
    ),
    reasons=(Reason("a_reason", "Sentence.", "Remedy.", "warning", {"tokens": 5, "names": ["a"]}),),
    projector=Path("/m/p.gguf"),
    spec_inputs=SpecInputs(SpecPolicy(), SpecFacts(drafter=Path("/d.gguf")), CAPS, ("--mlock",)),
)
ATTEMPT = Attempt(1, "S", ("llama-server",), "healthy", None, 0.5, Path("/log"))
RESULT = LaunchResult("ready", (ATTEMPT,), context=4096, slots=2, load_s=1.5, allocated_bytes={"CUDA0": 7})

STAMPS = {path: (1000 + number, 5) for number, path in enumerate(chain(*files_of(PLAN)))}
LOADED = Loaded(PLAN, RESULT, fingerprint(Path("/slots"), PLAN, RESULT, STAMPS), {0: 12})


def trace(folder: Path, *, outlives: bool = True, generation: int = 3, restarts: int = 2) -> Trace:
    named = Named(REQUEST, 0, generation, restarts)
    return Trace(folder / "instances", "0" * 16, named, outlives=outlives)


def begin(one: Trace) -> None:
    one.begin(os.getpid(), 40000, "the-key", program=str(PROGRAM), fingerprint=PLAN.fingerprint)


def only_path(folder: Path) -> Path:
    (path,) = (folder / "instances").glob("*.json")
    return path


def test_all_of_a_launch_comes_back(tmp_path: Path) -> None:
    one = trace(tmp_path)
    begin(one)
    one.commit(PLAN, RESULT, LOADED)
    record = read_record(only_path(tmp_path))
    assert record is not None
    assert record.committed is not None
    assert (record.committed.plan, record.committed.result) == (without_secrets(PLAN), RESULT)
    assert record.committed.loaded == replace(LOADED, plan=without_secrets(PLAN))
    assert (record.instance, record.generation, record.key) == ("org/a model.0@3", 3, "the-key")
    assert record.identity == record.owner_identity == start_identity(os.getpid())
    one.remove()
    assert read_records(tmp_path) == {}


def test_a_process_that_dies_with_us_leaves_no_key(tmp_path: Path) -> None:
    begin(trace(tmp_path, outlives=False))
    assert "the-key" not in only_path(tmp_path).read_text()


def test_secrets_stay_out(tmp_path: Path) -> None:
    request = replace(
        REQUEST,
        env={"HF_TOKEN": "secret-1", "DATABASE_URL": "secret-4", "B": "\udcff"},
        engine=replace(REQUEST.engine, env={"API_KEY": "secret-2"}),
        extra_args=("--hf-token", "secret-3"),
    )
    plan: LaunchPlan = replace(
        PLAN,
        request=request,
        env={"HF_TOKEN": "secret-1", "API_KEY": "secret-2", "DATABASE_URL": "secret-4", "B": "\udcff"},
        sections=(*PLAN.sections, Section("user", ("--hf-token", "secret-3"), "user")),
        spec_inputs=replace(PLAN.spec_inputs, args=("--hf-token", "secret-3")) if PLAN.spec_inputs else None,
    )
    one = Trace(tmp_path / "instances", "0" * 16, Named(request, 0, 1, 0), outlives=True)
    begin(one)
    one.commit(plan, RESULT, replace(LOADED, plan=plan))
    text = only_path(tmp_path).read_text()
    assert "secret-" not in text
    record = read_record(only_path(tmp_path))
    assert record is not None
    assert record.committed is not None
    assert set(record.committed.plan.env) == set(plan.env)


def test_what_a_later_version_adds_is_no_obstacle(tmp_path: Path) -> None:
    one = trace(tmp_path)
    begin(one)
    one.commit(PLAN, RESULT, None)
    path = only_path(tmp_path)
    whole = json.loads(path.read_bytes())
    whole["committed"]["plan"]["request"]["new_field"] = 1
    del whole["committed"]["plan"]["request"]["swa_full"]
    path.write_text(json.dumps({**whole, "new": {}}))
    record = read_record(path)
    assert record is not None
    assert record.committed is not None
    assert record.committed.plan.request == without_secrets(PLAN).request


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"version": 2}, id="version"),
        pytest.param({"pid": 0}, id="no-process"),
        pytest.param({"pid": "many"}, id="no-number"),
        pytest.param({"port": 70000}, id="no-port"),
        pytest.param({"replica": 10**9}, id="replica"),
        pytest.param({"instance": "b.0@3"}, id="another-instance"),
        pytest.param({"model": "b", "instance": "b.0@3"}, id="another-file"),
        pytest.param({"created": "2026-01-01T00:00:00"}, id="no-zone"),
        pytest.param({"committed": {"plan": 1}}, id="no-plan"),
    ],
)
def test_what_cannot_be_ours_is_no_record(tmp_path: Path, fields: dict[str, Any]) -> None:
    begin(trace(tmp_path))
    path = only_path(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **fields}))
    assert read_records(tmp_path) == {path: None}


def test_a_record_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    begin(trace(tmp_path))
    path = only_path(tmp_path)
    path.write_bytes(path.read_bytes() + b" " * (4 * 2**20))
    assert read_record(path) is None


def test_a_folder_that_cannot_be_written_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "instances").write_text("in the way")
    one = trace(tmp_path)
    begin(one)
    one.commit(PLAN, RESULT, None)
    assert "cannot take its process over" in caplog.text
