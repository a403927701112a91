"""`[pools.NAME]` as values, pools against each other, and what models ask of them (01 §2.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.values.request import PoolLimits
from tests.manifest.conftest import Load
from tests.manifest.reading import MODEL, read

GIB = 2**30
ONE = "rpc://127.0.0.1:50052"
TWO = "rpc://127.0.0.1:50053"


def pool(name: str, *devices: str, more: str = "") -> str:
    """The table of one pool."""
    return f"[pools.{name}]\ndevices = [{', '.join(f'{chr(34)}{one}{chr(34)}' for one in devices)}]\n{more}\n"


def model(name: str, keys: str = "", *, source: str = "m.gguf") -> str:
    """The table of one model."""
    return f'[models.{name}]\nsource = "{source}"\n{keys}\n'


def test_a_pool_with_nothing_but_devices_has_all_defaults() -> None:
    assert read(pool("p", "CUDA0")).manifest.pools == {"p": PoolLimits("p", ("CUDA0",))}


def test_every_key_of_a_pool_becomes_its_field() -> None:
    keys = 'fill = 0.9\nbudget = "20GiB"\nreserve = "1GiB"\nevict = "never"\noffload = "forbid"'
    assert read(pool("p", ONE, "CUDA1", "GPU-5f1c", more=keys)).manifest.pools["p"] == PoolLimits(
        "p", (ONE, "CUDA1", "GPU-5f1c"), 0.9, 20 * GIB, GIB, "never", "forbid"
    )


def test_a_device_that_is_written_twice_is_one() -> None:
    assert read(pool("p", "CUDA0", ONE, "CUDA0")).manifest.pools["p"].devices == ("CUDA0", ONE)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("fill = 97", "out_of_range"),
        ("fill = 0.0", "out_of_range"),
        ("fill = nan", "out_of_range"),
        ("budget = 20", "unit_missing"),
        ('reserve = "-1GiB"', "bad_unit"),
        ('evict = "lru"', "bad_value"),
        ("offload = true", "bad_value"),
    ],
)
def test_limits_are_checked(key: str, code: str) -> None:
    problem = read(pool("p", "auto", more=key)).only
    assert (problem.code, problem.path) == (code, f"pools.p.{key.partition(' ')[0]}")


@pytest.mark.parametrize("device", ["rpc://", "rpc://host", "rpc://host:0", "RPC0", "CUDA 0", ""])
def test_an_endpoint_or_name_that_cannot_be_one_is_refused_at_its_place(device: str) -> None:
    problem = read(pool("p", "CUDA0", device)).only
    assert (problem.code, problem.path) == ("bad_device", "pools.p.devices[1]")


@pytest.mark.parametrize("beside", ["auto", "CUDA0"])
def test_host_memory_stands_alone_in_a_pool(beside: str) -> None:
    problem = read(pool("p", beside, "cpu")).only
    assert (problem.code, problem.path) == ("bad_device", "pools.p.devices[1]")


# Pools against each other


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(ONE, ONE, id="server"),
        pytest.param("rpc://localhost:50052", ONE, id="server by another name"),
        pytest.param("CUDA0", "CUDA0", id="name"),
        pytest.param("cpu", "CPU", id="host memory"),
        pytest.param("auto", "CUDA0", id="auto has every GPU"),
        pytest.param("GPU-5f1c", "auto", id="auto has that card too"),
        pytest.param("auto", "auto", id="auto twice"),
    ],
)
def test_a_device_of_two_pools_is_a_warning_that_names_both_places(one: str, other: str) -> None:
    reading = read(pool("p", one) + pool("q", other))
    assert reading.errors == []
    warning = reading.warnings[0]
    assert (warning.code, warning.path, warning.line) == ("device_shared", "pools.q.devices[0]", 5)
    assert "pool p too (/nowhere/serve.toml:2:12)" in warning.message


@pytest.mark.parametrize(
    ("one", "other"),
    [("auto", "cpu"), ("auto", ONE), (ONE, TWO), ("CUDA0", "CUDA1"), ("cpu", ONE), ("CUDA0", "GPU-5f1c")],
)
def test_different_devices_are_fine(one: str, other: str) -> None:
    assert read(pool("p", one) + pool("q", other)).warnings == []


@pytest.mark.parametrize("reserve", ["4GiB", "5GiB"])
def test_a_budget_of_which_nothing_is_left_is_refused(reserve: str) -> None:
    problem = read(pool("p", "auto", more=f'budget = "4GiB"\nreserve = "{reserve}"')).only
    assert (problem.code, problem.path) == ("no_room", "pools.p.budget")


# Picks


@pytest.mark.parametrize(
    ("devices", "pick"),
    [
        (("CUDA0", "CUDA1"), "CUDA1"),
        ((ONE, TWO), TWO),
        (("auto",), "CUDA3"),
        (("auto",), "GPU-5f1c"),
        (("GPU-5f1c",), "CUDA0"),
        (("CUDA0",), "GPU-5f1c"),
        (("auto", ONE), ONE),
        (("CUDA0",), "auto"),
        (("cpu",), "CPU"),
    ],
)
def test_a_pick_inside_the_pool_is_fine(devices: tuple[str, ...], pick: str) -> None:
    assert read(pool("p", *devices) + model("m", f'placement = {{ devices = ["{pick}"] }}')).errors == []


@pytest.mark.parametrize(
    ("devices", "pick"),
    [
        (("CUDA0",), "CUDA1"),
        ((ONE,), TWO),
        (("auto",), ONE),
        (("cpu",), "CUDA0"),
        (("GPU-5f1c",), "cpu"),
        ((ONE,), "GPU-5f1c"),
        ((ONE,), "rpc://localhost:50052"),
    ],
)
def test_a_pick_outside_the_pool_is_refused(devices: tuple[str, ...], pick: str) -> None:
    problem = read(pool("p", *devices) + model("m", f'placement = {{ devices = ["{pick}"] }}')).only
    assert (problem.code, problem.path) == ("device_not_in_pool", "models.m.placement.devices[0]")
    assert problem.allowed == ", ".join(f'"{one}"' for one in devices)


def test_without_pools_a_pick_is_one_of_all_local_devices() -> None:
    assert read(f'{MODEL}placement = {{ devices = ["CUDA1"] }}').errors == []
    assert read(f'{MODEL}placement = {{ devices = ["{ONE}"] }}').codes == ["device_not_in_pool"]


def test_an_inherited_pick_outside_the_pool_is_reported_once_where_it_is_written() -> None:
    defaults = '[defaults.placement]\ndevices = ["CUDA7"]\n'
    text = pool("p", "CUDA0") + defaults + model("a") + model("b")
    assert read(text).paths == ["defaults.placement.devices[0]"]


def test_a_pick_in_a_pool_that_is_not_there_is_one_problem() -> None:
    text = pool("p", "CUDA0") + model("m", 'pool = "q"\nplacement = { devices = ["CUDA7"] }')
    assert read(text).codes == ["unknown_pool"]


def test_auto_stands_alone_in_a_pick() -> None:
    problem = read(f'{MODEL}placement = {{ devices = ["auto", "CUDA0"] }}').only
    assert (problem.code, problem.path) == ("bad_device", "models.m.placement.devices")


# Pins (PL-21)


def test_more_pinned_models_than_rpc_servers_are_refused() -> None:
    text = pool("p", ONE) + model("a", "pin = true") + model("b", "pin = true")
    problem = read(text).only
    assert (problem.code, problem.path, problem.found, problem.allowed) == (
        "pins_exceed_pool",
        "pools.p.devices",
        "2",
        "1",
    )
    assert "(a, b)" in problem.message


def test_every_replica_of_a_pinned_model_counts() -> None:
    assert read(pool("p", ONE) + model("a", "pin = true\nreplicas = 2")).codes == ["pins_exceed_pool"]


@pytest.mark.parametrize("others", ["", "pin = false"])
def test_one_pinned_model_per_server_is_fine(others: str) -> None:
    assert read(pool("p", ONE, TWO) + model("a", "pin = true") + model("b", others)).errors == []


def weights(load: Load, devices: str, more: str, *, keys: str = "pin = true") -> tuple[list[str], list[str]]:
    """Codes of errors and warnings with two models of 3 KiB each in one pool."""
    text = pool("p", devices, more=more) + model("a", keys) + model("b", keys)
    reading = load(text, m_gguf=bytes(3072))
    return reading.codes, [problem.code for problem in reading.warnings]


def test_pinned_files_that_exceed_the_budget_of_host_memory_are_refused(load: Load) -> None:
    assert weights(load, "cpu", 'budget = "5KiB"') == (["pins_exceed_pool"], [])


def test_the_reserve_is_no_room_for_pins(load: Load) -> None:
    assert weights(load, "cpu", 'budget = "7KiB"\nreserve = "2KiB"')[0] == ["pins_exceed_pool"]


def test_pinned_files_that_exceed_gpus_which_may_not_offload_are_refused(load: Load) -> None:
    assert weights(load, "CUDA0", 'budget = "5KiB"\noffload = "forbid"')[0] == ["pins_exceed_pool"]


def test_pinned_files_that_could_lie_in_host_memory_are_a_warning(load: Load) -> None:
    assert weights(load, "CUDA0", 'budget = "5KiB"') == ([], ["pins_exceed_pool"])


@pytest.mark.parametrize(
    ("more", "keys"),
    [('budget = "6KiB"', "pin = true"), ("", "pin = true"), ('budget = "5KiB"', "pin = false")],
    ids=["they fit", "no budget", "no pin"],
)
def test_what_may_work_is_left_to_the_plan(load: Load, more: str, keys: str) -> None:
    assert weights(load, "cpu", more, keys=keys) == ([], [])


def test_pinned_files_that_are_not_there_are_not_counted() -> None:
    text = pool("p", "cpu", more='budget = "1KiB"') + model("a", "pin = true")
    assert read(text, path=Path("/nowhere/serve.toml")).errors == []


def test_ten_thousand_pools_are_compared_at_once() -> None:
    # Each with each took half a minute of a processor.
    shared = read("".join(pool(f"p{n}", f"GPU-{n % 5000:08x}") for n in range(10_000)))
    assert {problem.code for problem in shared.loaded.problems} == {"device_shared", "more_problems"}
