"""What of the manager's environment reaches an engine (06 §7, §16.8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.engines.child_env import (
    base_environment,
    child_environment,
    declared_environment,
    probe_environment,
    spawn_environment,
    without_secrets,
)
from framework.engines.library_path import LibraryPath
from framework.values.engine import EngineRef
from framework.values.plan import Section
from tests.engines.requests import a_request

SPEC = {"LLAMA_ARG_SPEC_TYPE": "draft-mtp"}
NO_LIBRARIES = LibraryPath()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("PATH", True),
        ("CUDA_VISIBLE_DEVICES", True),
        ("PADDOCK_STATE_DIR", False),
        ("MY_SECRET_KEY", False),
        ("HF_TOKEN", False),
        ("HUGGING_FACE_HUB_TOKEN", False),
        ("LLAMA_ARG_SPEC_TYPE", False),
        ("LLAMA_API_KEY", False),
        ("LLAMA_CACHE", True),
    ],
)
def test_what_a_child_inherits(name: str, kept: bool) -> None:
    assert (name in base_environment({name: "x"}, secret_names=["MY_SECRET_KEY"])) is kept


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [("LLAMA_ARG_SPEC_*", True), ("LLAMA_ARG_SPEC_TYPE", True), ("LLAMA_ARG_SPEC", False), ("*", True)],
)
def test_passthrough(pattern: str, kept: bool) -> None:
    assert ("LLAMA_ARG_SPEC_TYPE" in base_environment(SPEC, passthrough=[pattern])) is kept


def test_passthrough_lets_no_secret_through() -> None:
    environ = {"PADDOCK_KEY": "x", "HF_TOKEN": "x", "MINE": "x"}
    assert base_environment(environ, secret_names=["MINE"], passthrough=["*"]) == {}


def test_a_model_that_goes_to_a_hub_keeps_the_token() -> None:
    request = a_request(extra_args=("-hfd", "owner/repo"))
    assert declared_environment(request, {"HF_TOKEN": "x"}) == {"HF_TOKEN": "x"}


def test_declared_variables_stay_and_the_models_own_win() -> None:
    engine = EngineRef(env={"LLAMA_ARG_SPEC_TYPE": "none", "A": "engine", "HF_TOKEN": "declared"})
    request = a_request(engine=engine, env={"A": "model"})
    assert declared_environment(request, {**SPEC, "A": "manager", "HF_TOKEN": "secret"}) == {
        "LLAMA_ARG_SPEC_TYPE": "none",
        "A": "model",
        "HF_TOKEN": "declared",
    }


def test_types_of_speculation_never_come_by_variable() -> None:
    assert child_environment(a_request(env=SPEC), {}, NO_LIBRARIES, ()) == {}


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        pytest.param((), False, id="off"),
        pytest.param(("--spec-default",), False, id="default"),
        pytest.param(("--spec-type", "ngram-mod"), False, id="n-grams"),
        pytest.param(("--spec-type", "draft-simple"), True, id="drafting"),
        pytest.param(("--spec-type", "ngram-mod,mtp"), True, id="chained"),
    ],
)
def test_a_drafter_comes_by_variable_only_beside_a_type_for_it(tokens: tuple[str, ...], kept: bool) -> None:
    """Some builds load it for nothing, others take its type from its file, and draft where nothing should."""
    env = {"LLAMA_ARG_SPEC_DRAFT_MODEL": "/m/d.gguf", "LLAMA_ARG_SPEC_DRAFT_HF_REPO": "o/r"}
    env |= {"LLAMA_ARG_MODEL_DRAFT": "/m/d.gguf", "LLAMA_ARG_HFD_REPO": "o/r"}
    found = child_environment(a_request(env=env), {}, NO_LIBRARIES, (Section("spec", tokens),))
    assert found == (env if kept else {})


def test_manual_mode_removes_what_would_place_layers_again() -> None:
    env = {"LLAMA_ARG_N_GPU_LAYERS": "1", "LLAMA_ARG_FIT": "on", "LLAMA_ARG_N_GPU_LAYERS_DRAFT": "2"}
    manual = child_environment(a_request(env=env, memory_mode="manual"), {}, NO_LIBRARIES, ())
    assert manual == {"LLAMA_ARG_N_GPU_LAYERS_DRAFT": "2"}
    assert child_environment(a_request(env=env), {}, NO_LIBRARIES, ()) == env


def test_the_threads_variable_needs_a_threads_flag_to_stay() -> None:
    request = a_request(env={"LLAMA_ARG_THREADS": "9"})
    assert child_environment(request, {}, NO_LIBRARIES, ()) == {}
    line = (Section("threads", ("--threads", "2")),)
    assert child_environment(request, {}, NO_LIBRARIES, line) == request.env


def test_libraries_come_in_front_of_the_inherited_path() -> None:
    libraries = LibraryPath((Path("/engine"), Path("/cuda")), {"HSA": "1", "KEEP": "no"})
    env = child_environment(a_request(), {"LD_LIBRARY_PATH": ":/old::/cuda", "KEEP": "mine"}, libraries, ())
    assert env == {"LD_LIBRARY_PATH": "/engine:/cuda:/old", "HSA": "1", "KEEP": "mine"}


def test_a_launch_adds_its_key_and_mark() -> None:
    env = spawn_environment({"LLAMA_ARG_API_KEY_FILE": "/f", "A": "1"}, api_key="k", mark="state:m.0@1")
    assert env == {"A": "1", "LLAMA_API_KEY": "k", "PADDOCK_INSTANCE": "state:m.0@1"}


def test_a_launch_without_key_leaves_the_users_own() -> None:
    env = spawn_environment({"LLAMA_API_KEY": "mine"}, api_key=None, mark="m")
    assert env["LLAMA_API_KEY"] == "mine"


def test_variables_that_a_manifest_names_as_secrets_are_left_out() -> None:
    assert without_secrets({"A": "1", "CHAT_KEY": "x"}, ["CHAT_KEY", "NOT_SET"]) == {"A": "1"}


def test_probes_ask_in_bus_order_and_without_settings() -> None:
    env = probe_environment({**SPEC, "HOME": "/h"}, NO_LIBRARIES)
    assert env == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "HOME": "/h"}
    assert probe_environment({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, NO_LIBRARIES) == {
        "CUDA_DEVICE_ORDER": "FASTEST_FIRST"
    }
