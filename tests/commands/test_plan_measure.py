"""`paddock plan --measure` with the real engine: exact, remembered, and before anything is downloaded."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.engine_plan import stand_ins
from bench.sparse_gguf import write_sparse_gguf
from tests.commands.conftest import Ended, Paddock
from tests.engines.programs import write_program
from tests.support.hub_stand_in import HubStandIn
from tests.support.memory_rows import measured_models

MIB, GIB = 2**20, 2**30
KNOWN = {"weights", "kv", "recurrent_state", "compute"}
REPO, FILE = "org/Big-GGUF", "Big-Q4_K_M.gguf"
HELP = Path(__file__).parents[1] / "data/llama-server-help-b10068.txt"


@pytest.fixture
def wrapper(place: Path, engine_binary: Path) -> Path:
    """The real engine, which notes every start."""
    real = shlex.quote(str(engine_binary))
    libraries = f"export LD_LIBRARY_PATH={shlex.quote(str(engine_binary.parent))}"
    return write_program(
        place / "engine" / "llama-server", f'echo "$$ $*" >> {place}/starts\n{libraries}\nexec {real} "$@"'
    )


@pytest.fixture
def declare(place: Path, wrapper: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a manifest with one model, whose engine is the wrapper; nothing of the user's caches is used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "xdg"))

    def write(source: str, **keys: Any) -> None:
        lines = [f"{name} = {value}" for name, value in keys.items()]
        text = f'[engines.default]\nbinary = "{wrapper}"\n[models.m]\nsource = "{source}"\n'
        quiet = '[speculation.quiet]\nmode = "off"\n'
        (place / "serve.toml").write_text(quiet + text + "\n".join(lines) + "\n")

    return write


def dry_runs(place: Path) -> list[str]:
    """Command lines of engines that were started on a model."""
    path = place / "starts"
    return [line for line in path.read_text().splitlines() if " -m " in line] if path.exists() else []


def living(place: Path) -> list[int]:
    pids = [int(line.split()[0]) for line in (place / "starts").read_text().splitlines()]
    return [pid for pid in pids if psutil.pid_exists(pid)]


def fit(ended: Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.out + ended.err
    found: dict[str, Any] = ended.json["instances"][0]["fit"]
    return found


def bases(found: dict[str, Any]) -> set[str]:
    """How the numbers are known that an engine can measure."""
    return {line["basis"] for line in found["lines"] if line["label"] in KNOWN}


@pytest.mark.engine
def test_measured_is_what_was_computed_and_the_next_plan_knows_it(
    paddock: Paddock, place: Path, declare: Any, smollm2: Path
) -> None:
    declare(str(smollm2), context=4096, slots=2, speculation='"quiet"')
    computed = fit(paddock("plan", "--json"))
    assert (bases(computed), dry_runs(place)) == ({"computed"}, [])
    ended = paddock("plan", "--measure", "--json")
    measured = fit(ended)
    assert bases(measured) == {"measured"}
    assert [line["bytes"] for line in measured["lines"]] == [line["bytes"] for line in computed["lines"]]
    assert ended.err.count("\n") == 1
    assert (len(dry_runs(place)), living(place)) == (1, [])
    again = fit(paddock("plan", "--json"))
    assert again["lines"] == measured["lines"]
    assert len(dry_runs(place)) == 1


@pytest.mark.engine
def test_room_for_the_logits_of_drafts_is_computed_and_measured(
    paddock: Paddock, declare: Any, smollm2: Path
) -> None:
    declare(str(smollm2), context=4096)
    (computed, measured) = (fit(paddock("plan", *more, "--json")) for more in ((), ("--measure",)))
    for before, after in zip(computed["lines"], measured["lines"], strict=True):
        assert abs(before["bytes"] - after["bytes"]) <= 16 * MIB
    assert next(line["bytes"] for line in measured["lines"] if line["label"] == "compute") > 40 * MIB


@pytest.mark.engine
def test_other_settings_are_not_known(paddock: Paddock, place: Path, declare: Any, smollm2: Path) -> None:
    declare(str(smollm2), context=4096)
    fit(paddock("plan", "--measure", "--json"))
    declare(str(smollm2), context=8192)
    assert bases(fit(paddock("plan", "--json"))) == {"computed"}


@pytest.mark.engine
def test_a_model_larger_than_memory_is_measured_since_nothing_is_loaded(
    paddock: Paddock, place: Path, declare: Any
) -> None:
    model = measured_models()["minimax-m2"]
    path = place / "huge.gguf"
    write_sparse_gguf(path, model.architecture, model.vocabulary, model.facts, model.tensors)
    before = path.stat()
    assert before.st_size > 120 * GIB > psutil.virtual_memory().total
    declare(str(path), context=4096)
    ended = paddock("plan", "--measure", "--json")
    found = ended.json["instances"][0]["fit"]
    assert bases(found) == {"measured"}
    assert sum(line["bytes"] for line in found["lines"] if line["label"] == "weights") > 120 * GIB
    assert (path.stat().st_blocks, living(place)) == (before.st_blocks, [])


@pytest.mark.engine
def test_an_engine_that_does_not_know_the_model_says_so(
    paddock: Paddock, place: Path, declare: Any, smollm2: Path
) -> None:
    data = smollm2.read_bytes()
    (place / "odd.gguf").write_bytes(data.replace(b"llama", b"lxama", 40))
    declare(str(place / "odd.gguf"))
    ended = paddock("plan", "--measure", "--json")
    (instance,) = ended.json["instances"]
    (reason,) = [reason for reason in instance["reasons"] if reason["code"] == "measure_failed"]
    assert (ended.code, "unknown model architecture: 'lxama'" in reason["message"]) == (1, True)
    assert "measured" not in bases(instance["fit"])
    assert living(place) == []


def test_an_engine_that_dies_leaves_the_plan_as_computed(
    paddock: Paddock, place: Path, wrapper: Path, declare: Any
) -> None:
    write_program(wrapper, f'case "$1" in --help) cat {HELP};; --list-devices) ;; *) exit 3;; esac')
    declare(str(place / "tiny.gguf"))
    ended = paddock("plan", "--measure", "--json")
    (instance,) = ended.json["instances"]
    assert ended.code == 1
    assert "exited with 3" in next(r["message"] for r in instance["reasons"] if r["code"] == "measure_failed")
    assert instance["granted"] is not None


def test_the_context_is_printed_as_tokens(paddock: Paddock, place: Path, wrapper: Path, declare: Any) -> None:
    write_program(wrapper, f'case "$1" in --help) cat {HELP};; esac')
    declare(str(place / "tiny.gguf"), context=16384, slots=2)
    rows = [line.split() for line in paddock("plan").out.splitlines()]
    assert ["context", "16,384", "tokens", "16,384", "tokens"] in rows
    assert ["slots", "2", "2"] in rows


def test_replicas_of_an_engine_that_failed_are_not_measured_again(
    paddock: Paddock, place: Path, wrapper: Path, declare: Any
) -> None:
    note = f'echo "$$ $*" >> {place}/starts'
    write_program(wrapper, f'{note}\ncase "$1" in --help) cat {HELP};; --list-devices) ;; *) exit 3;; esac')
    declare(str(place / "tiny.gguf"), replicas=4)
    ended = paddock("plan", "--measure", "--json")
    codes = [[reason["code"] for reason in one["reasons"]] for one in ended.json["instances"]]
    assert [found.count("measure_failed") for found in codes] == [1] * 4
    assert (ended.code, len(dry_runs(place))) == (1, 1)


@pytest.fixture
def hub(place: Path, declare: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A stand-in with a model of 4.6 GiB, which is mostly a hole, a smaller variant and a projector."""
    model = measured_models()["llama-3.1-8b"]
    path = place / "made.gguf"
    write_sparse_gguf(path, model.architecture, model.vocabulary, model.facts, model.tensors)
    with path.open("rb") as file:
        head = file.read(4 * MIB)
    files = {FILE: head, "Big-Q2_K.gguf": b"x", "mmproj-Big-F16.gguf": b"y"}
    holes = {FILE: path.stat().st_size - len(head), "Big-Q2_K.gguf": 3 * GIB, "mmproj-Big-F16.gguf": GIB // 2}
    with HubStandIn() as stand_in:
        stand_in.add(REPO, files, holes=holes)
        monkeypatch.setenv("HF_ENDPOINT", stand_in.url)
        monkeypatch.setenv("HF_HOME", str(place / "hf"))
        declare(f"hf:{REPO}:Q4_K_M", context=8192)
        yield stand_in


def test_what_is_not_downloaded_is_refused_with_both_ways_out(paddock: Paddock, hub: HubStandIn) -> None:
    ended = paddock("plan", "--json")
    (reason,) = ended.json["instances"][0]["reasons"]
    assert (ended.code, reason["code"], hub.seen) == (1, "model_missing", [])
    assert {"`paddock pull`", "`paddock plan --measure`"} <= {
        f"`{part}`" for part in reason["remedy"].split("`")[1::2]
    }


@pytest.mark.engine
def test_a_hub_model_is_measured_by_its_header_alone(paddock: Paddock, hub: HubStandIn, place: Path) -> None:
    ended = paddock("plan", "--measure", "--json")
    found = fit(ended)
    assert (bases(found), found["fits"]) == ({"measured"}, True)
    (instance,) = ended.json["instances"]
    (reason,) = [reason for reason in instance["reasons"] if reason["code"] == "headers_only"]
    assert 2 * MIB < reason["evidence"]["fetched_bytes"] <= 8 * MIB
    assert "paddock pull m" in reason["remedy"]
    future = place / "hf" / "hub" / "models--org--Big-GGUF" / "snapshots" / ("a" * 40) / FILE
    assert str(future) in instance["argv"]
    assert not (place / "hf").exists()
    assert len(hub.served("/content")) == 1


@pytest.mark.engine
def test_a_second_question_about_a_hub_model_fetches_and_starts_nothing(
    paddock: Paddock, hub: HubStandIn, place: Path
) -> None:
    first = fit(paddock("plan", "--measure", "--json"))
    second = fit(paddock("plan", "--measure", "--json"))
    assert second["lines"] == first["lines"]
    assert (len(dry_runs(place)), len(hub.served("/content"))) == (1, 1)


@pytest.mark.engine
def test_a_hub_model_that_does_not_fit_has_smaller_variants(
    paddock: Paddock, hub: HubStandIn, declare: Any
) -> None:
    declare(f"hf:{REPO}:Q4_K_M", context=4_000_000, engine_args='["--no-mmap"]')
    found = fit(paddock("plan", "--measure", "--json"))
    assert (found["fits"], bases(found)) == (False, {"measured"})
    assert "Q2_K" in [remedy["to"] for remedy in found["remedies"] if remedy["kind"] == "variant"]


@pytest.mark.engine
def test_the_projector_that_would_come_with_it_is_planned(
    paddock: Paddock, hub: HubStandIn, declare: Any
) -> None:
    declare(f"hf:{REPO}:Q4_K_M", context=4096, projector='"auto"')
    found = fit(paddock("plan", "--measure", "--json"))
    (line,) = [line for line in found["lines"] if line["label"] == "projector"]
    assert line["bytes"] > GIB // 2


def test_a_hub_that_is_not_there_is_a_refusal(
    paddock: Paddock, hub: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    ended = paddock("plan", "--measure", "--json")
    (instance,) = ended.json["instances"]
    assert (ended.code, instance["granted"]) == (1, None)
    assert os.environ["HF_HUB_OFFLINE"] == "1"


@pytest.mark.engine
def test_memory_of_a_gpu_is_measured_on_the_gpu(
    paddock: Paddock, place: Path, declare: Any, smollm2: Path, engine_binary: Path
) -> None:
    with stand_ins(engine_binary, 1) as (address,):
        declare(str(smollm2), context=4096, speculation='"quiet"', engine_args=f'["--rpc", "{address}"]')
        computed, measured = (fit(paddock("plan", *more, "--json")) for more in ((), ("--measure",)))
    assert bases(measured) == {"measured"}
    assert measured["lines"][0]["device"] == "RPC0"
    assert [line["bytes"] for line in measured["lines"]] == [line["bytes"] for line in computed["lines"]]
