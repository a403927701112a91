"""Tables as such: unknown keys and tables, what stands in the wrong place, names, what is missing."""

from __future__ import annotations

import pytest

from tests.manifest.reading import MODEL, read, read_model


@pytest.mark.parametrize(
    ("text", "path", "suggestion"),
    [
        ('listen = "127.0.0.1:9090"', "listen", "server.listen"),
        ("[models.m]\nsource = 'x'\ncontex = 1", "models.m.contex", "context"),
        ("[models.m]\nsource = 'x'\nctx = 1", "models.m.ctx", "context"),
        ("[models.m]\nsource = 'x'\nn-ctx = 1", "models.m.n-ctx", "context"),
        ("[models.m]\nsource = 'x'\nparallel = 1", "models.m.parallel", "slots"),
        ("[models.m]\nsource = 'x'\nngl = 1", "models.m.ngl", "placement.gpu_layers"),
        (
            "[models.m]\nsource = 'x'\ngpu_layers = 1",
            "models.m.gpu_layers",
            "models.NAME.placement.gpu_layers",
        ),
        ("[models.m]\nsource = 'x'\nlisten = 1", "models.m.listen", "server.listen"),
        ("[models.m]\nsource = 'x'\nalias = 1", "models.m.alias", "aliases"),
        ("[models.m]\nsource = 'x'\nzzzzz = 1", "models.m.zzzzz", ""),
        ("[models.m]\nsource = 'x'\ntimeout = { lod = '1m' }", "models.m.timeout.lod", "load"),
        ("[server]\nprt = 1", "server.prt", ""),
        ("[server]\nport = 1", "server.port", "listen"),
        ("[server]\nslots = 1", "server.slots", "defaults.slots"),
        ("[server]\nmax_wating = 1", "server.max_wating", "max_waiting"),
        ("[defaults]\nsorce = 1", "defaults.sorce", "models.NAME.source"),
        ("[model.m]\nsource = 'x'", "model", "[models.NAME]"),
        ("[[model]]\nsource = 'x'", "model", "[models.NAME]"),
        ("[defualts]\nslots = 1", "defualts", "defaults"),
        ("[speculation.s]\nngram = { mtch = 1 }", "speculation.s.ngram.mtch", "match"),
        ("[pools.p]\ndevice = ['cpu']", "pools.p.device", "devices"),
        ("[engines.default]\npath = 'x'", "engines.default.path", "binary"),
    ],
)
def test_an_unknown_key_comes_with_what_was_meant(text: str, path: str, suggestion: str) -> None:
    problem = next(one for one in read(text).errors if one.code == "unknown_key")
    assert (problem.path, problem.suggestion) == (path, suggestion)


def test_an_unknown_key_points_at_the_key_and_lists_the_known_ones() -> None:
    problem = read_model("  contex = 1").only
    assert (problem.line, problem.column, problem.found) == (3, 3, "contex")
    assert "context" in problem.allowed


def test_profiles_are_told_to_be_includes() -> None:
    problem = read("[profiles.fast]\nx = 1").only
    assert (problem.path, problem.message) == (
        "profiles",
        "[profiles]: profiles are not a feature: use includes",
    )


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param("models = 5", "models", id="models is a number"),
        pytest.param("[[models]]\nsource = 'x'", "models", id="models is a list"),
        pytest.param("[models]\nm = 5", "models.m", id="model is a number"),
        pytest.param("[models]\nsource = 'x.gguf'", "models.source", id="model without a name"),
        pytest.param("[server.listen]\nx = 1", "server.listen", id="value is a table"),
        pytest.param("server = 1", "server", id="server is a number"),
        pytest.param("[[defaults]]\nslots = 1", "defaults", id="defaults is a list"),
        pytest.param("[models.m]\nsource = 'x'\nplacement = 1", "models.m.placement", id="table is a number"),
    ],
)
def test_a_table_must_be_a_table(text: str, path: str) -> None:
    problem = read(text).only
    assert (problem.code, problem.path) == ("wrong_type", path)


def test_keys_directly_below_models_are_told_where_they_belong() -> None:
    assert "[models.NAME]" in read("[models]\nsource = 'x.gguf'").only.message


@pytest.mark.parametrize("kind", ["models", "pools", "engines", "speculation", "access"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("  ", id="blank"),
        pytest.param("a\\nb", id="line end"),
        pytest.param("a\\u0000b", id="NUL"),
        pytest.param("x" * 300, id="long"),
    ],
)
def test_a_bad_name_is_one_problem_at_the_name(kind: str, name: str) -> None:
    problem = read(f'[{kind}."{name}"]\n').only
    assert (problem.code, problem.line, problem.column) == ("bad_name", 1, len(kind) + 3)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[models.m]\nslots = 1", "models.m.source"),
        ("[access.a]\nmodels = []", "access.a.key"),
        ("[models.m]\nsource = 'x'\nadapters = [{ scale = 0.5 }]", "models.m.adapters[0].path"),
        (
            "[models.m]\nsource = 'x'\n[[models.m.adapters]]\npath = 'x'\n[[models.m.adapters]]",
            "models.m.adapters[1].path",
        ),
        ("[server.tls]\nkey = 'file:x'", "server.tls.certificate"),
    ],
)
def test_a_key_that_must_be_written_is_missed(text: str, path: str) -> None:
    assert path in [problem.path for problem in read(text).errors if problem.code == "missing_key"]


def test_what_is_missing_points_at_its_table() -> None:
    problem = read("\n[models.m]\nslots = 1").only
    assert (problem.line, problem.column) == (2, 9)


@pytest.mark.parametrize("key", ["source", "aliases", "display_name"])
def test_what_belongs_to_one_model_is_no_default(key: str) -> None:
    problem = read(f'[defaults]\n{key} = "x"\n').only
    assert (problem.code, problem.path) == ("not_inherited", f"defaults.{key}")


def test_one_bad_key_hides_no_other_problem_of_its_table() -> None:
    reading = read_model('slots = 0\npool = "nope"\nengine_args = ["--port", "1"]\non_drift = "report"\n')
    assert reading.codes == ["out_of_range", "unknown_pool", "reserved_flag", "not_available_yet"]


def test_ids_are_kept_as_they_are_written() -> None:
    ids = ["org/m:Q4_K_M", "org/m:Q4_K_M-thinking", "ORG/m:Q4_K_M"]
    text = "".join(f'[models."{one}"]\nsource = "x.gguf"\n' for one in ids)
    assert list(read(text).manifest.models) == ids


def test_models_keep_the_order_of_the_file() -> None:
    assert list(read("".join(f'[models.{n}]\nsource = "x"\n' for n in "zmab")).manifest.models) == list(
        "zmab"
    )


def test_the_defaults_are_no_model() -> None:
    assert list(read(f"[defaults]\ncontext = 8192\n{MODEL}").manifest.models) == ["m"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param('[models."."]\nsource = "x"\n', 'models."."', id="name"),
        pytest.param('[models."..."]\nsource = "x"\n', 'models."..."', id="three dots"),
        pytest.param(f'{MODEL}aliases = ["a", ".."]\n', "models.m.aliases[1]", id="alias"),
    ],
)
def test_a_model_that_no_address_can_name_is_refused(text: str, path: str) -> None:
    problem = read(text).only
    assert (problem.code, problem.path) == ("bad_name", path)
    assert "which addresses cannot hold" in problem.message


def test_an_engine_may_have_any_name() -> None:
    assert read('[engines."."]\nbinary = "x"\n').errors == []
