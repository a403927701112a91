"""Checked tables to canonical requests (01 §1.1, 07 §3.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.values.engine import EngineRef
from framework.values.manifest import ServerSettings
from framework.values.request import LiveSettings, ModelRequest, ModelSource
from tests.manifest.conftest import Load
from tests.manifest.reading import MODEL, read, read_model


def test_a_model_with_nothing_but_a_source_has_all_defaults() -> None:
    expected = ModelRequest(id="m", source=ModelSource(path=Path("/nowhere/m.gguf")))
    assert read(MODEL).request() == expected


def test_a_manifest_without_server_has_all_defaults() -> None:
    assert read("").manifest.server == ServerSettings()


@pytest.mark.parametrize(
    ("keys", "field", "value"),
    [
        ("context = 4096", "n_ctx", 4096),
        ('context = "auto"', "n_ctx", 0),
        ("slots = 1", "slots", 1),
        ('kv_cache = "Q8_0"', "cache_type", ("q8_0", "q8_0")),
        ('kv_cache = { k = " F16 " }', "cache_type", ("f16", None)),
        ('kv_cache = ""', "cache_type", (None, None)),
        ("batch = { logical = 1024 }", "batch", 1024),
        ("batch = { physical = 256 }", "ubatch", 256),
        ("threads = 6", "threads", 6),
        ("threads = 0", "threads", None),
        ("threads = -1", "threads", None),
        ('threads = "auto"', "threads", None),
        ('flash_attention = "off"', "flash_attn", "off"),
        ("full_window_cache = true", "swa_full", True),
        ('placement = { mode = "manual", gpu_layers = -7 }', "gpu_layers", -1),
        ('placement = { mode = "manual", gpu_layers = 0 }', "gpu_layers", 0),
        ('placement = { mode = "manual", cpu_experts = 3 }', "n_cpu_moe", 3),
        ('placement = { mode = "manual", tensor_split = [3, 1.5] }', "tensor_split", (3.0, 1.5)),
        ('placement = { split = "tensor" }', "tensor_parallel", True),
        ('placement = { split = "layer" }', "tensor_parallel", False),
        ('placement = { devices = ["CUDA1", "CUDA0", "CUDA1"] }', "devices", ("CUDA0", "CUDA1")),
        ("placement = { devices = [] }", "devices", None),
        ('placement = { devices = ["auto"] }', "devices", None),
        ("template_arguments = { a = [1, { b = true }] }", "template_kwargs", {"a": [1, {"b": True}]}),
        ('environment = { A = "b" }', "env", {"A": "b"}),
        ('engine_args = ["--rope_scaling=yarn"]', "extra_args", ("--rope-scaling", "yarn")),
        ('projector = "none"', "projector", None),
        ('projector = "auto"', "projector", "auto"),
        ('reasoning = "off"', "reasoning", "off"),
        ("", "slot_save", True),
        ('slot_state = "off"', "slot_save", False),
        ('slot_state = { mode = "off" }', "slot_save", False),
        ('slot_state = { max = "1GiB" }', "slot_save", True),
    ],
)
def test_a_key_of_a_model_becomes_its_field(keys: str, field: str, value: Any) -> None:
    assert getattr(read_model(keys).request(), field) == value


@pytest.mark.parametrize(
    ("keys", "field", "value"),
    [
        ('aliases = ["a", "b"]', "aliases", ("a", "b")),
        ('display_name = "X"', "display_name", "X"),
        ('load = "manual"', "load", "manual"),
        ('unload_after = "90s"', "idle_after_s", 90.0),
        ('unload_after = "0s"', "idle_after_s", 0.0),
        ('unload_after = "never"', "idle_after_s", None),
        ('load = "at-start"\nunload_after = "1m"', "idle_after_s", None),
        ("priority = -5", "priority", -5),
        ("pin = true", "pin", True),
        ("replicas = 2", "replicas", 2),
        ("max_queue = 0", "max_queue", 0),
        ("rollback = false", "rollback", False),
        ('slot_state = { max = "1GiB" }', "slot_save_max_bytes", 2**30),
        ('slot_state = { max = "0MiB" }', "slot_save_max_bytes", 0),
        ('slot_state = { timeout = "5s" }', "slot_save_timeout_s", 5.0),
        ('timeout = { load = "1h" }', "load_timeout_s", 3600.0),
        ('timeout = { first_token = "5s" }', "first_token_timeout_s", 5.0),
        ('timeout = { stall = "5s" }', "stall_timeout_s", 5.0),
        ('timeout = { drain = "0s" }', "drain_timeout_s", 0.0),
        ('timeout = { queue = "250ms" }', "queue_timeout_s", 0.25),
        ("request = { defaults = { top_p = 0.9 } }", "request_defaults", {"top_p": 0.9}),
        ("request = { force = { top_k = 1 } }", "request_force", {"top_k": 1}),
        ('request = { drop = ["logit_bias"] }', "request_drop", ("logit_bias",)),
        ('request = { sampling_defaults = "server" }', "sampling_defaults", "server"),
    ],
)
def test_a_live_key_of_a_model_becomes_its_field(keys: str, field: str, value: Any) -> None:
    assert getattr(read_model(keys).request().live, field) == value


def test_restarts_are_set_key_by_key() -> None:
    restart = read_model('restart = { max_crashes = 1, max_backoff = "5s" }').request().live.restart
    assert (restart.max_crashes, restart.backoff_max_s, restart.window_s) == (1, 5.0, 600.0)


def test_no_key_of_a_model_is_without_a_field() -> None:
    keys = 'aliases = ["x"]\nslots = 2\n'
    assert read_model(keys).request().live == LiveSettings(aliases=("x",))


# Inheritance


def test_a_model_inherits_and_its_own_key_wins() -> None:
    text = f"[defaults]\nslots = 7\ncontext = 1000\n{MODEL}context = 2000\n"
    assert (read(text).request().slots, read(text).request().n_ctx) == (7, 2000)


def test_tables_are_inherited_key_by_key() -> None:
    text = f'[defaults]\ntimeout = {{ load = "1m", stall = "9s" }}\n{MODEL}timeout = {{ load = "2m" }}\n'
    live = read(text).request().live
    assert (live.load_timeout_s, live.stall_timeout_s) == (120.0, 9.0)


def test_free_tables_are_inherited_key_by_key() -> None:
    text = f'[defaults]\nenvironment = {{ A = "1", B = "1" }}\n{MODEL}environment = {{ B = "2" }}\n'
    assert read(text).request().env == {"A": "1", "B": "2"}


def test_request_defaults_are_inherited_key_by_key() -> None:
    text = f"[defaults.request.defaults]\ntop_p = 1.0\ntop_k = 5\n{MODEL}request.defaults.top_k = 6\n"
    assert read(text).request().live.request_defaults == {"top_p": 1.0, "top_k": 6}


def test_a_cache_type_replaces_the_inherited_pair() -> None:
    assert read(f'[defaults]\nkv_cache = "q8_0"\n{MODEL}kv_cache = {{ k = "f16" }}').request().cache_type == (
        "f16",
        None,
    )


def test_lists_replace_inherited_lists() -> None:
    assert read(f'[defaults]\nengine_args = ["-x"]\n{MODEL}engine_args = []').request().extra_args == ()


def test_an_inherited_value_may_be_set_back_to_the_default() -> None:
    assert read(f"[defaults]\nslots = 7\n{MODEL}slots = 4").request().slots == 4


def test_inheriting_changes_no_other_model() -> None:
    text = f"[defaults]\nslots = 7\n{MODEL}slots = 1\n[models.n]\nsource = 'n'\n"
    assert read(text).request("n").slots == 7


# Paths


def test_paths_are_relative_to_the_manifest(load: Load, tmp_path: Path) -> None:
    assert load('[models.m]\nsource = "sub/m.gguf"').request().source.path == tmp_path / "sub/m.gguf"


def test_an_absolute_path_stays() -> None:
    assert read('[models.m]\nsource = "/data/m.gguf"').request().source.path == Path("/data/m.gguf")


def test_the_home_directory_comes_from_the_environment(tmp_path: Path) -> None:
    request = read('[models.m]\nsource = "~/m.gguf"', {"HOME": str(tmp_path)}).request()
    assert request.source.path == tmp_path / "m.gguf"


@pytest.mark.parametrize("name", ["link.gguf", "directory/real.gguf", "./link.gguf", "x/../link.gguf"])
def test_links_are_resolved(load: Load, tmp_path: Path, name: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "real.gguf").touch()
    (tmp_path / "directory").symlink_to("real")
    (tmp_path / "link.gguf").symlink_to("directory/real.gguf")
    assert load(f'[models.m]\nsource = "{name}"').request().source.path == tmp_path / "real" / "real.gguf"


def test_a_circle_of_links_is_left_as_it_is(load: Load, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    assert load('[models.m]\nsource = "a"').request().source.path == tmp_path / "a"


def test_weights_that_are_not_there_are_a_warning_and_the_others_go_on(load: Load, tmp_path: Path) -> None:
    reading = load(f"{MODEL}[models.n]\nsource = 'n.gguf'", n_gguf="x")
    warning = reading.loaded.problems[0]
    assert (warning.code, warning.severity, warning.path) == ("model_missing", "warning", "models.m.source")
    assert str(tmp_path / "m.gguf") in warning.message
    assert list(reading.manifest.models) == ["m", "n"]


def test_a_projector_and_adapters_are_paths(load: Load, tmp_path: Path) -> None:
    keys = 'projector = "mm.gguf"\nadapters = [{ path = "l.gguf", scale = 2 }, { path = "k.gguf" }]'
    reading = load(MODEL + keys, mm_gguf="", l_gguf="")
    assert reading.request().projector == tmp_path / "mm.gguf"
    assert reading.request().adapters == ((tmp_path / "l.gguf", 2.0), (tmp_path / "k.gguf", 1.0))
    assert [one.path for one in reading.warnings] == ["models.m.adapters[1].path"]


# Templates


def test_a_template_is_read_as_text(load: Load, tmp_path: Path) -> None:
    reading = load(f'{MODEL}template = "file:chat.jinja"', chat_jinja="{{ x }}\n")
    assert reading.request().template == "{{ x }}\n"
    assert tmp_path / "chat.jinja" in reading.manifest.files


def test_a_changed_template_changes_the_digest(load: Load) -> None:
    text = f'{MODEL}template = "file:chat.jinja"'
    assert load(text, chat_jinja="a").manifest.sha256 != load(text, chat_jinja="b").manifest.sha256


def test_an_empty_template_is_none(load: Load) -> None:
    assert load(f'{MODEL}template = "file:chat.jinja"', chat_jinja="").request().template is None


def test_a_template_that_is_not_there_is_an_error() -> None:
    problem = read_model('template = "file:chat.jinja"').only
    assert (problem.code, problem.path, problem.line) == ("template_missing", "models.m.template", 3)


@pytest.mark.parametrize("content", [b"\xff", b"x" * (2**20 + 1)], ids=["no text", "too large"])
def test_a_template_that_cannot_be_used_is_an_error(load: Load, content: bytes) -> None:
    assert load(f'{MODEL}template = "file:chat.jinja"', chat_jinja=content).only.code == "template_unreadable"


# Engines and server


@pytest.mark.parametrize(
    ("binary", "ref"),
    [
        ("auto", EngineRef("e")),
        ("llama-server", EngineRef("e", command="llama-server")),
        ("bin/llama-server", EngineRef("e", path=Path("/nowhere/bin/llama-server"))),
        ("/opt/llama/llama-server", EngineRef("e", path=Path("/opt/llama/llama-server"))),
        ("~/llama-server", EngineRef("e", path=Path("/home/me/llama-server"))),
        ("/usr", EngineRef("e", dir=Path("/usr"))),
        (f"/{'b' * 300}", EngineRef("e", path=Path(f"/{'b' * 300}"))),
    ],
)
def test_a_binary_is_a_path_a_directory_or_a_command(binary: str, ref: EngineRef) -> None:
    assert read(f'[engines.e]\nbinary = "{binary}"', {"HOME": "/home/me"}).manifest.engines["e"] == ref


def test_an_engine_has_variables_and_a_key() -> None:
    text = '[engines.e]\nenvironment = { A = "" }\nenvironment_passthrough = ["GGML_*"]\napi_key = false\n'
    ref = read(text).manifest.engines["e"]
    assert (ref.env, ref.env_passthrough, ref.api_key) == ({"A": ""}, ("GGML_*",), False)


def test_the_server_has_its_settings() -> None:
    text = (
        '[server]\nlisten = "[::1]:81"\nmax_waiting = 2\nstate_dir = "state"\nstart_concurrency = 3\n'
        'shutdown = "1m"\nmax_body = "2MiB"\nrequest_log = "full"\n'
    )
    server = read(text).manifest.server
    assert str(server.listen) == "[::1]:81"
    assert (server.max_waiting, server.start_concurrency, server.shutdown_s) == (2, 3, 60.0)
    assert server.request_log == "full"
    assert (server.max_body_bytes, server.state_dir) == (2 * 2**20, Path("/nowhere/state"))
