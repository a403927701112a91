"""The way in: situations as users meet them, and what the result promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.manifest.load import check_text, load_manifest
from tests.manifest.conftest import Load
from tests.manifest.reading import MODEL, Reading, read, read_model

REPOSITORY = Path(__file__).parents[2]


def test_the_demo_manifest_of_the_repository_has_no_error() -> None:
    assert Reading(load_manifest(REPOSITORY / "serve.toml", {})).errors == []


def test_checking_a_text_reads_nothing_of_the_file_itself(load: Load, tmp_path: Path) -> None:
    load("= broken")
    assert list(read(MODEL, path=tmp_path / "serve.toml").manifest.models) == ["m"]


def test_checking_a_text_reads_what_it_includes(load: Load, tmp_path: Path) -> None:
    load("", models_d__a_toml='[models.a]\nsource = "a"')
    assert list(read('include = ["models.d/a.toml"]', path=tmp_path / "serve.toml").manifest.models) == ["a"]


def test_loading_a_file_and_checking_its_text_come_to_the_same(load: Load, tmp_path: Path) -> None:
    assert load(MODEL).loaded == check_text(tmp_path / "serve.toml", MODEL, {})


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "serve.toml").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    assert Reading(load_manifest(Path("serve.toml"), {})).manifest.path == tmp_path / "serve.toml"


def test_order_of_keys_comments_and_blanks_change_no_request() -> None:
    one = read('[models.m]\nsource = "m.gguf"\nslots = 2\ncontext = 100\n').request()
    other = read('# x\n[models]\nm.context = 100\nm.slots = 2 # y\n\nm.source = "m.gguf"').request()
    assert one == other


def test_a_manifest_with_an_error_is_none_and_one_with_warnings_is_not() -> None:
    assert read_model("slots = 0").loaded.manifest is None
    assert read(MODEL).loaded.manifest is not None


def test_a_bad_manifest_still_has_a_digest_and_files() -> None:
    loaded = read("slots = ").loaded
    assert (len(loaded.sha256), loaded.files) == (64, (Path("/nowhere/serve.toml"),))


def test_names_and_aliases_resolve_exactly() -> None:
    manifest = read('[models."org/m:Q4"]\nsource = "x"\naliases = ["gpt"]').manifest
    asked = [
        "org/m:Q4",
        "gpt",
        "ORG/M:Q4",
        " gpt",
        "gpt/",
        "defaults",
        "default",
        "../../etc/passwd",
        "gpt\0",
    ]
    assert [manifest.resolve(name) for name in asked] == ["org/m:Q4", "org/m:Q4"] + [None] * 7


def test_removed_or_misplaced_keys_are_two_findings_with_their_lines() -> None:
    reading = read(f'listen = "127.0.0.1:9090"\n{MODEL}contex = 8192\n')
    assert [(p.line, p.found, p.suggestion) for p in reading.errors] == [
        (1, "listen", "server.listen"),
        (4, "contex", "context"),
    ]


def test_three_presets_of_one_file_are_three_models_until_a_name_clashes() -> None:
    names = ["org/m:Q4_K_M", "org/m:Q4_K_M-thinking", "org/m:Q4_K_M-precise"]
    text = "".join(f'[models."{name}"]\nsource = "m.gguf"\n' for name in names)
    assert list(read(text).manifest.models) == names
    clash = text.replace('thinking"]\n', 'thinking"]\naliases = ["org/m:Q4_K_M"]\n')
    assert read(clash).only.code == "name_taken"


def test_false_is_not_present() -> None:
    assert read_model("full_window_cache = false\nrollback = false").request().swa_full is False


def test_sampling_names_have_one_spelling() -> None:
    problem = read_model('request.defaults = { top_p = 0.9, "top-k" = 20, min_p = 0.05 }').only
    assert (problem.path, problem.suggestion) == ("models.m.request.defaults", "top_k")


@pytest.mark.parametrize(
    "fields",
    [
        '{ temperature = "hot" }',
        "{ top_k = true }",
        "{ temperature = nan }",
        '{ model = "x" }',
        "{ stream = true }",
    ]
    + ["{ seed = 99999999999999999999 }", "{ when = 2026-01-01 }", '"x"'],
)
@pytest.mark.parametrize("table", ["defaults", "force"])
def test_fields_that_no_request_can_have_are_refused(table: str, fields: str) -> None:
    assert read_model(f"request.{table} = {fields}").only.path == f"models.m.request.{table}"


def test_nesting_of_request_fields_is_bounded() -> None:
    assert read_model(f"template_arguments = {{ a = {'[' * 40}{']' * 40} }}").only.code == "too_deep"


WRONG = {
    "context = -1": "models.m.context",
    "context = 0": "models.m.context",
    "context = 1.5": "models.m.context",
    'context = "8k"': "models.m.context",
    "context = 9000000000000000000": "models.m.context",
    "context = nan": "models.m.context",
    "context = inf": "models.m.context",
    "context = true": "models.m.context",
    "slots = 0": "models.m.slots",
    "slots = 257": "models.m.slots",
    'placement = { mode = "manual", tensor_split = [0, 0] }': "models.m.placement.tensor_split",
    'placement = { mode = "manual", tensor_split = [1, -1] }': "models.m.placement.tensor_split",
    'placement = { mode = "manual", tensor_split = [nan] }': "models.m.placement.tensor_split",
    'placement = { mode = "manual", tensor_split = [1, true] }': "models.m.placement.tensor_split",
    'unload_after = "10"': "models.m.unload_after",
    "unload_after = 10": "models.m.unload_after",
    'unload_after = "400d"': "models.m.unload_after",
    'timeout = { load = "0s" }': "models.m.timeout.load",
    "adapters = [{ path = 'x', scale = nan }]": "models.m.adapters[0].scale",
    "adapters = [{ path = 'x', scale = inf }]": "models.m.adapters[0].scale",
    "replicas = 0": "models.m.replicas",
    "priority = 1e3": "models.m.priority",
    "threads = -2": "models.m.threads",
    "max_queue = -1": "models.m.max_queue",
    'engine_args = ["-c", 5]': "models.m.engine_args[1]",
    'environment = { A = "x\\u0000" }': "models.m.environment.A",
    'aliases = ["a\\nb"]': "models.m.aliases[0]",
    f'aliases = ["{"x" * 201}"]': "models.m.aliases[0]",
}


@pytest.mark.parametrize(
    ("line", "path"), [pytest.param(line, path, id=line[:60]) for line, path in WRONG.items()]
)
def test_a_value_out_of_type_or_range_is_one_finding_with_path_value_and_range(line: str, path: str) -> None:
    problem = read_model(line).only
    assert (problem.path, problem.line) == (path, 3)
    assert problem.found
    assert problem.allowed


@pytest.mark.parametrize("port", [70000, 0, -1])
def test_a_port_out_of_range_names_the_range(port: int) -> None:
    problem = read(f'[server]\nlisten = "127.0.0.1:{port}"').only
    assert "from 1 to 65535" in problem.allowed


def test_everything_wrong_is_reported_in_one_pass() -> None:
    lines = [
        line for line in WRONG if line.startswith(("slots = 0", "replicas", "threads", 'unload_after = "10"'))
    ]
    text = MODEL + "\n".join(lines) + '\n[server]\nlisten = "127.0.0.1:70000"\n[models.""]\nsource = "x"\n'
    assert len(read(text).errors) == len(lines) + 2
