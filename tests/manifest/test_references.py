"""Names that tables use for each other, names of models for clients, and the listener (01 §2.3)."""

from __future__ import annotations

import pytest

from framework.values.engine import EngineRef
from framework.values.request import PoolLimits
from tests.manifest.reading import MODEL, read, read_model

TWO_POOLS = '[pools.gpu]\ndevices = ["auto"]\n[pools.host]\ndevices = ["cpu"]\n'


@pytest.mark.parametrize(
    ("key", "table", "code"),
    [("pool", "pools", "unknown_pool"), ("engine", "engines", "unknown_engine")]
    + [("speculation", "speculation", "unknown_speculation")],
)
def test_a_name_that_means_nothing_is_refused_with_the_nearest(key: str, table: str, code: str) -> None:
    problem = read(f'[{table}.steady]\n{MODEL}{key} = "stedy"').only
    assert (problem.code, problem.path, problem.suggestion) == (code, f"models.m.{key}", '"steady"')
    assert "steady" in problem.allowed


@pytest.mark.parametrize("key", ["pool", "engine", "speculation"])
def test_a_bad_name_in_the_defaults_is_reported_once(key: str) -> None:
    models = "".join(f'[models.m{n}]\nsource = "x"\n' for n in range(3))
    assert read(f'[defaults]\n{key} = "nope"\n{models}').paths == [f"defaults.{key}"]


def test_the_default_engine_exists_without_being_written() -> None:
    assert read_model('engine = "default"').request().engine == EngineRef()


def test_the_default_engine_exists_beside_written_ones() -> None:
    assert list(read("[engines.mine]\nbinary = 'x'").manifest.engines) == ["mine", "default"]


def test_without_pools_there_is_one() -> None:
    assert read_model('pool = "default"').manifest.pools == {"default": PoolLimits("default", ("auto",))}


def test_with_pools_there_is_no_default_pool() -> None:
    assert read(f'[pools.gpu]\ndevices = ["auto"]\n{MODEL}pool = "default"').codes == ["unknown_pool"]


def test_the_only_pool_need_not_be_named() -> None:
    assert read(f'[pools.host]\ndevices = ["cpu"]\n{MODEL}').request().pool == PoolLimits("host", ("cpu",))


def test_with_several_pools_a_model_says_which() -> None:
    problem = read(TWO_POOLS + MODEL).only
    assert (problem.code, problem.path, problem.allowed) == ("pool_missing", "models.m", "gpu, host")


def test_the_defaults_may_say_which_pool() -> None:
    assert read(f'{TWO_POOLS}[defaults]\npool = "host"\n{MODEL}').request().pool.name == "host"


def test_a_pool_without_devices_is_refused() -> None:
    assert read("[pools.p]\ndevices = []").only.allowed == "a list of texts with at least one entry"


@pytest.mark.parametrize("models", ['["*"]', '["m"]', '["alias"]', '["m", "*"]', "[]"])
def test_a_key_may_name_models_and_aliases(models: str) -> None:
    text = f'{MODEL}aliases = ["alias"]\n[access.a]\nkey = "env:K"\nmodels = {models}\n'
    assert read(text, {"K": "k"}).errors == []


def test_a_key_for_a_model_that_is_not_there_is_refused() -> None:
    problem = read(f'{MODEL}[access.a]\nkey = "env:K"\nmodels = ["*", "M"]\n', {"K": "k"}).only
    assert (problem.code, problem.path, problem.suggestion) == ("unknown_model", "access.a.models[1]", '"m"')


def test_an_alias_that_is_the_name_of_another_model_names_both_owners_and_places() -> None:
    problem = read(f'{MODEL}aliases = ["n"]\n[models.n]\nsource = "n"\n').only
    assert (problem.code, problem.path, problem.line, problem.column) == (
        "name_taken",
        "models.m.aliases[0]",
        3,
        12,
    )
    assert 'the name of model "n" (/nowhere/serve.toml:4:9)' in problem.message
    assert 'model "m"' in problem.message


def test_an_alias_of_two_models_names_both_owners_and_places() -> None:
    problem = read(f'{MODEL}aliases = ["x"]\n[models.n]\nsource = "n"\naliases = ["x"]\n').only
    assert problem.path == "models.n.aliases[0]"
    assert 'an alias of model "m" (/nowhere/serve.toml:3:12)' in problem.message


@pytest.mark.parametrize("aliases", ['["m"]', '["a", "a"]'])
def test_an_alias_that_says_nothing_new_is_refused(aliases: str) -> None:
    assert "a name of this model already" in read_model(f"aliases = {aliases}").only.message


def test_names_are_compared_exactly() -> None:
    assert read_model('aliases = ["M", " m", "m:latest"]').errors == []


ACCESS = f'[access.scraper]\nkey = "sha256:{"a" * 64}"\nmodels = []\ndashboard = "view"\n'
CHAT = '[models.m]\nsource = "hf:o/r:Q4_0"\n'


def test_access_tables_that_may_use_no_model_are_warned_of() -> None:
    (problem,) = read(ACCESS + CHAT).warnings
    assert (problem.code, problem.line) == ("no_key_for_models", 3)
    clients = ACCESS.replace("scraper", "clients").replace("models = []\n", "")
    assert read(ACCESS + clients + CHAT).warnings == []
    assert read(ACCESS).warnings == []


@pytest.mark.parametrize("address", ["0.0.0.0:80", "[::]:80", "192.168.0.2:80", "example.org:80"])
def test_an_address_that_others_reach_needs_keys(address: str) -> None:
    problem = read(f'[server]\nlisten = "{address}"').only
    assert (problem.code, problem.path, problem.line, problem.column) == (
        "open_listener",
        "server.listen",
        2,
        10,
    )


def test_an_address_that_others_reach_is_fine_with_keys() -> None:
    text = '[server]\nlisten = "0.0.0.0:80"\n[access.a]\nkey = "env:K"\n'
    assert read(text, {"K": "k"}).manifest.server.listen.host == "0.0.0.0"


@pytest.mark.parametrize("address", ["127.0.0.1:80", "localhost:80", "[::1]:80"])
def test_loopback_needs_no_keys(address: str) -> None:
    assert read(f'[server]\nlisten = "{address}"').errors == []


@pytest.mark.parametrize(
    ("mode", "header"),
    [("ngram", "ngram"), ("MTP+ngram", '"mtp+ngram"'), ("none", "none")],
)
def test_a_mode_in_place_of_a_policy_is_told_where_modes_are_written(mode: str, header: str) -> None:
    problem = read_model(f'speculation = "{mode}"').only
    assert problem.code == "unknown_speculation"
    assert f'write [speculation.{header}] with mode = "{mode.lower()}"' in problem.message


@pytest.mark.parametrize("value", ['{ mode = "ngram" }', "false"])
def test_settings_in_place_of_the_name_of_a_policy_are_told_where_they_stand(value: str) -> None:
    problem = read_model(f"speculation = {value}").only
    assert (problem.code, problem.path) == ("wrong_type", "models.m.speculation")
    assert "the name of a table [speculation.NAME]" in problem.message
