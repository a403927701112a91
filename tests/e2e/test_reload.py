"""Editing the manifest of a running manager: what follows, what stays, what a mistake does (01 §2.5-2.6)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import Stream, chat, engine_table, error_of, model_table
from tests.support.paddock import RunningPaddock

STREAM = {"max_tokens": 40}


@pytest.fixture
def trio(paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path) -> RunningPaddock:
    """Three loaded models a, b, c on an engine that streams 40 tokens in 2 s."""
    engine = fake_engine(tokens=40, token_interval_s=0.05)
    tables = engine_table(engine) + "".join(model_table(name, tiny_gguf) for name in "abc")
    paddock = paddock_up(tables)
    for name in "abc":
        paddock.wait_state(name, "ready")
    return paddock


def generations(paddock: RunningPaddock) -> list[dict[str, int]]:
    """Counts of each apply so far, the first one left out."""
    loaded = [event["data"] for event in paddock.events(kind="manifest_loaded", limit=1000)]
    return [
        {key: data[key] for key in ("added", "changed", "removed")} for data in loaded if "generation" in data
    ][1:]


def test_editing_one_model_changes_only_its_process_and_no_open_stream(trio: RunningPaddock) -> None:
    before = trio.pids()
    streams = [Stream(trio, name, STREAM) for name in ("a", "c")]
    trio.wait(lambda: all(stream.raw.count(b"data:") > 3 for stream in streams), 20, "both streams to flow")
    trio.edit("[models.b]\n", "[models.b]\nthreads = 3\n")
    trio.wait_replaced("b", before["b"][0])
    for stream in streams:
        stream.join()
    after = trio.pids()
    assert (after["a"], after["c"]) == (before["a"], before["c"])
    for stream in streams:
        assert stream.raw.endswith(b"data: [DONE]\n\n")
        assert [piece.strip() for piece in stream.pieces] == [f"t{number}" for number in range(40)]


def test_alias_and_time_out_apply_live_and_a_context_restarts(trio: RunningPaddock) -> None:
    before = trio.pids()
    text = trio.manifest.read_text()
    text = text.replace("[models.a]\n", '[models.a]\naliases = ["alias-of-a"]\nunload_after = "1m"\n')
    head, b = text.split("[models.b]\n")
    trio.write(head + "[models.b]\n" + b.replace("context = 1024", "context = 2048", 1))
    trio.wait(lambda: chat(trio, "alias-of-a").status_code == 200, 20, "the alias to answer")
    trio.wait_replaced("b", before["b"][0])
    after = trio.pids()
    assert (after["a"], after["c"]) == (before["a"], before["c"])
    assert trio.model("b")["instances"][0]["running"]["context"] == 2048
    assert generations(trio) == [{"added": 0, "changed": 2, "removed": 0}]


def test_comments_order_and_blanks_are_no_change(trio: RunningPaddock) -> None:
    before = trio.pids()
    text = trio.manifest.read_text()
    head, *models = text.split("[models.")
    trio.write("# a comment\n" + head + "".join(f"\n[models.{model}" for model in reversed(models)))
    trio.wait(lambda: generations(trio), 20, "the apply")
    assert generations(trio) == [{"added": 0, "changed": 0, "removed": 0}]
    assert trio.pids() == before


def test_a_broken_edit_is_shown_everywhere_and_stops_nothing(trio: RunningPaddock) -> None:
    before = trio.pids()
    good = trio.manifest.read_text()
    source = good.split('source = "')[1].split('"')[0]
    trio.write(good + f'\n[models.d]\nsource = "{source}"\ncontxt = 5\n')
    line = good.count("\n") + 4
    place = f"serve.toml:{line}:1"
    error = trio.wait(lambda: trio.status()["manifest"]["error"], 20, "the error in the status")
    assert [(p["line"], p["column"]) for p in error["problems"] if p["code"] == "unknown_key"] == [(line, 1)]
    assert any(place in event["message"] for event in trio.events(kind="manifest_rejected"))
    page = httpx.get(trio.base_url, trust_env=False).text
    assert place in page
    assert "was not applied" in page
    assert place in trio.log_text()
    assert trio.pids() == before
    assert chat(trio, "a").status_code == 200
    trio.write(good + "\n# corrected\n")
    trio.wait(lambda: trio.status()["manifest"]["error"] is None, 20, "the error to go")
    assert "was not applied" not in httpx.get(trio.base_url, trust_env=False).text
    assert trio.pids() == before


def test_adding_and_removing_a_model_leaves_the_others_alone(trio: RunningPaddock) -> None:
    before = trio.pids()
    text = trio.manifest.read_text()
    trio.write(text + model_table("d", Path(text.split('source = "')[1].split('"')[0])))
    trio.wait_state("d", "ready")
    head, rest = trio.manifest.read_text().split("[models.b]\n")
    trio.write(head + "[models.c]" + rest.split("[models.c]")[1])
    trio.wait(lambda: "b" not in trio.pids(), 20, "b to go")
    after = trio.pids()
    assert (after["a"], after["c"]) == (before["a"], before["c"])
    assert error_of(chat(trio, "b"))["code"] == "model_not_found"


def test_a_removed_model_finishes_its_stream_and_takes_no_new_request(trio: RunningPaddock) -> None:
    pid = trio.pids()["a"][0]
    stream = Stream(trio, "a", STREAM)
    trio.wait(lambda: stream.raw.count(b"data:") > 2, 20, "the stream to flow")
    text = trio.manifest.read_text()
    trio.write(text.split("[models.a]")[0] + "[models.b]" + text.split("[models.b]")[1])
    entry = trio.wait_state("a", "draining")
    assert entry["instances"][0]["inflight"] == 1
    assert chat(trio, "a").status_code == 404
    assert b"data: [DONE]" in stream.join()
    trio.wait(lambda: not Path(f"/proc/{pid}").exists(), 20, "the process to go")


def test_a_slow_writer_whose_first_half_is_valid_stops_nothing(trio: RunningPaddock) -> None:
    before = trio.pids()
    text = trio.manifest.read_text()
    first, rest = text.split("[models.b]")
    with trio.manifest.open("w") as file:
        file.write(first)
        file.flush()
        trio.wait(_elapsed(0.4), 5, "the slow writer")
        file.write("[models.b]" + rest + "# written slowly\n")
    trio.wait(lambda: generations(trio), 20, "the apply")
    assert generations(trio) == [{"added": 0, "changed": 0, "removed": 0}]
    assert trio.pids() == before
    assert trio.events(kind="manifest_rejected") == []


@pytest.mark.parametrize("way", ["truncate-and-write", "rename-over", "link-swap"])
def test_every_way_of_writing_yields_one_reload(trio: RunningPaddock, way: str) -> None:
    text = trio.manifest.read_text() + "# again\n"
    folder = trio.manifest.parent
    if way == "truncate-and-write":
        trio.manifest.write_text(text)
    elif way == "rename-over":
        trio.write(text)
    else:
        for number in ("1", "2"):
            (folder / number).mkdir()
            (folder / number / "serve.toml").write_text(f"{text}# {number}\n")
        (folder / "data").symlink_to("1")
        trio.manifest.unlink()
        trio.manifest.symlink_to("data/serve.toml")
        trio.wait(lambda: generations(trio), 20, "the reload of the link")
        (folder / "next").symlink_to("2")
        (folder / "next").replace(folder / "data")
    expected = 2 if way == "link-swap" else 1
    trio.wait(lambda: len(generations(trio)) >= expected, 20, "the reload")
    trio.wait(_elapsed(1.0), 5, "a second reload, which must not come")
    assert len(generations(trio)) == expected


def test_hang_up_reloads_and_never_kills(trio: RunningPaddock) -> None:
    before = trio.pids()
    os.kill(trio.pid, signal.SIGHUP)
    trio.wait(lambda: len(trio.events(kind="manifest_loaded")) > 1, 20, "the answer to the signal")
    assert generations(trio) == []
    with trio.manifest.open("a") as file:
        file.write(model_table("d", Path(trio.manifest.read_text().split('source = "')[1].split('"')[0])))
    os.kill(trio.pid, signal.SIGHUP)
    trio.wait_state("d", "ready")
    assert generations(trio) == [{"added": 1, "changed": 0, "removed": 0}]
    assert {name: trio.pids()[name] for name in "abc"} == before


def test_an_included_file_is_followed_too(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(
        engine_table(fake_engine()) + model_table("a", tiny_gguf),
        server="",
    )
    paddock.wait_state("a", "ready")
    (paddock.manifest.parent / "models.d").mkdir()
    paddock.write('include = ["models.d/*.toml"]\n' + paddock.manifest.read_text())
    paddock.wait(lambda: generations(paddock), 20, "the apply")
    (paddock.manifest.parent / "models.d" / "b.toml").write_text(model_table("b", tiny_gguf))
    paddock.wait(lambda: any(m["name"] == "b" for m in paddock.status()["models"]), 20, "b to be declared")
    paddock.wait_state("b", "ready")


def _elapsed(seconds: float):  # type: ignore[no-untyped-def]
    import time

    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def test_a_mistake_in_an_included_file_is_healed_there(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf))
    folder = paddock.manifest.parent / "models.d"
    folder.mkdir()
    (folder / "b.toml").write_text(model_table("b", tiny_gguf).replace("context", "contxt"))
    paddock.write('include = ["models.d/*.toml"]\n' + paddock.manifest.read_text())
    error = paddock.wait(lambda: paddock.status()["manifest"]["error"], 20, "the error")
    assert error["problems"][0]["file"].endswith("b.toml")
    (folder / "b.toml").write_text(model_table("b", tiny_gguf))
    paddock.wait_state("b", "ready")
    assert paddock.status()["manifest"]["error"] is None


def test_a_template_that_was_missing_is_noticed_when_it_appears(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path
) -> None:
    paddock = paddock_up(engine_table(fake_engine()) + model_table("a", tiny_gguf))
    paddock.wait_state("a", "ready")
    paddock.edit("[models.a]\n", '[models.a]\ntemplate = "file:chat.jinja"\n')
    paddock.wait(lambda: paddock.status()["manifest"]["error"], 20, "the error")
    (paddock.manifest.parent / "chat.jinja").write_text("{{ messages }}")
    paddock.wait(lambda: paddock.status()["manifest"]["error"] is None, 20, "the error to go")
