"""Commands that talk to a running server: what they print, what they send, how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.runtime.logs import LogBuffer, LogLine
from framework.values.instance import State
from framework.values.problem import Problem
from framework.values.reason import Reason
from tests.api import samples
from tests.api.world import PROBLEM
from tests.commands.conftest import Paddock, Running

READERS = (
    ("status",),
    ("diff",),
    ("events",),
    ("logs", "chat"),
    ("load", "chat"),
    ("unload", "chat"),
    ("reload", "chat"),
    ("replan", "chat"),
)


def ids(arguments: tuple[str, ...]) -> str:
    return arguments[0]


@pytest.mark.parametrize("arguments", READERS, ids=ids)
def test_without_a_server_it_ends_with_3_and_one_line(
    paddock: Paddock, place: Path, arguments: tuple[str, ...]
) -> None:
    ended = paddock(*arguments)
    assert ended.code == 3
    assert ended.out == ""
    assert ended.err.count("\n") == 1
    assert "paddock up" in ended.err


@pytest.mark.parametrize("arguments", READERS, ids=ids)
def test_server_is_found_while_the_manifest_is_broken(
    paddock: Paddock, server: Running, place: Path, arguments: tuple[str, ...]
) -> None:
    (place / "serve.toml").write_text("[[[")
    become(server, "chat", State.STOPPED if arguments[0] == "unload" else State.READY)
    if arguments[0] in ("reload", "replan"):
        arguments = (*arguments, "--no-wait")
    assert paddock(*arguments).code == 0


def test_status_says_that_a_text_with_errors_was_not_applied(paddock: Paddock, server: Running) -> None:
    assert "not applied" not in paddock("status").out
    problem = Problem("unknown_key", "serve.toml", 3, 1, "x", "x is not a known key")
    server.world.services.current.problems = (problem,)
    out = paddock("status").out
    assert "serve.toml:3:1: x is not a known key [unknown_key]\nThe file was not applied: what was" in out


def become(server: Running, name: str, state: State, **changes: Any) -> None:
    """Put a model into a state."""
    instances = (samples.instance(state=state, **changes),) if state is not State.STOPPED else ()
    server.world.fleet.models[name] = samples.model(name, *instances, state=state)


def test_status_shows_what_runs(paddock: Paddock, server: Running) -> None:
    ended = paddock("status")
    assert ended.code == 0
    line = next(line for line in ended.out.splitlines() if line.startswith("chat "))
    assert line.split()[1] == "ready"
    for fact in ("4711", "40000", "1/4", "4096", "ngram-mod", "12.5"):
        assert fact in line
    assert "org/other:q4" in ended.out


def test_status_shows_reasons_with_their_remedies(paddock: Paddock, server: Running) -> None:
    out = paddock("status").out
    assert "chat: Less than asked." in out
    assert "→ Free memory." in out


def test_status_shows_how_far_a_load_is(paddock: Paddock, server: Running) -> None:
    progress = samples.LoadProgress("mapping", 2**20, 2**22, 0.25)
    become(server, "chat", State.STARTING, result=None, progress=progress)
    assert "starting 25% (1 MiB of 4 MiB)" in paddock("status").out


def line_of(out: str, name: str) -> str:
    """The first line of a model in the table of `status`."""
    return next(line for line in out.splitlines() if line.startswith(f"{name} "))


def test_status_says_of_planning_that_it_waits_for_memory(paddock: Paddock, server: Running) -> None:
    become(server, "chat", State.PLANNING, result=None, progress=None)
    view = server.world.fleet.models["chat"]
    assert "planning" in line_of(paddock("status").out, "chat")
    server.world.fleet.models["chat"] = replace(view, queue=replace(view.queue, position=1))
    assert "waiting for memory" in line_of(paddock("status").out, "chat")


def test_status_shows_nothing_of_the_last_start_of_a_stopped_model(paddock: Paddock, server: Running) -> None:
    stopped = samples.instance(state=State.STOPPED, pid=None, slots=(), inflight=0, last_error=None)
    server.world.fleet.models["chat"] = samples.model("chat", stopped, state=State.STOPPED)
    out = paddock("status").out
    line = line_of(out, "chat")
    assert "4096" not in line
    assert "ngram-mod" not in line
    assert "Less than asked." not in out


def test_status_shows_the_errors_of_the_manifest(paddock: Paddock, server: Running) -> None:
    server.world.services.current.problems = (PROBLEM,)
    out = paddock("status").out
    assert "\nserve.toml:3:7: unknown key" in out
    assert "warning" not in out


def test_status_shows_warnings_of_the_manifest_as_warnings(paddock: Paddock, server: Running) -> None:
    server.world.services.current.problems = (replace(PROBLEM, severity="warning"),)
    assert "\nwarning: serve.toml:3:7: unknown key" in paddock("status").out


def test_status_shows_what_waits_for_the_next_start(paddock: Paddock, server: Running) -> None:
    server.world.services.current.server_notices = ("server.listen is used from the next `paddock up` on",)
    assert "server.listen is used from the next" in paddock("status").out


def test_status_shows_a_reason_once(paddock: Paddock, server: Running) -> None:
    become(server, "chat", State.READY)
    assert paddock("status").out.count("chat: Less than asked.") == 1


def test_status_as_json_is_the_shape_of_the_specification(paddock: Paddock, server: Running) -> None:
    ended = paddock("status", "--json")
    assert ended.json.keys() >= {"version", "since_at", "manifest", "pools", "models"}
    assert ended.err == ""


def test_hostile_text_cannot_drive_the_terminal(paddock: Paddock, server: Running) -> None:
    evil = Reason("x", "\x1b]52;c;aGk=\x07[bold]a\u202eb", "\x9b2J", "error")
    become(server, "chat", State.FAILED, last_error=evil)
    for arguments in (("status",), ("status", "--json")):
        out = paddock(*arguments).out
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
    assert "[bold]" in paddock("status").out


def test_logs_prints_the_last_lines(paddock: Paddock, server: Running) -> None:
    buffer = server.world.fleet.logs["chat", 0] = LogBuffer()
    for text in ("one", "two [red]", "three"):
        buffer.append(text)
    ended = paddock("logs", "chat", "-n", "2")
    assert (ended.code, ended.out) == (0, "two [red]\nthree\n")


def test_logs_of_a_model_that_was_not_started_say_so(paddock: Paddock, server: Running) -> None:
    ended = paddock("logs", "chat")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("chat: its engine has written nothing")


def test_a_line_of_a_log_stays_one_line(paddock: Paddock, server: Running) -> None:
    server.world.fleet.logs["chat", 0] = OneLine("a\u2028b\x85c\x0cd")
    assert paddock("logs", "chat").out == "a\\u2028b\\x85c\\x0cd\n"


class OneLine(LogBuffer):
    """A log whose line was not cleaned."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._line = LogLine(1, text)

    def last(self, count: int) -> list[LogLine]:
        return [self._line]


def test_logs_of_a_replica_that_there_is_not_end_with_1(paddock: Paddock, server: Running) -> None:
    ended = paddock("logs", "chat", "--replica", "7")
    assert ended.code == 1
    assert ended.err == 'paddock: "chat" has no replica 7; it has 0.\n'


def test_name_with_a_line_end_is_an_unknown_model(paddock: Paddock, server: Running) -> None:
    ended = paddock("load", "a\nb")
    assert ended.code == 2
    assert "There is no model" in ended.err


@pytest.mark.parametrize(
    ("path", "mode", "remedy"),
    [
        pytest.param("state/token", 0o644, "Run `chmod 600 ", id="token"),
        pytest.param("state", 0o755, "Run `chmod 700 ", id="directory"),
    ],
)
def test_state_that_others_may_read_is_told_with_the_remedy(
    paddock: Paddock, server: Running, place: Path, path: str, mode: int, remedy: str
) -> None:
    (place / path).chmod(mode)
    ended = paddock("status")
    assert ended.code == 3
    assert remedy in ended.err
    assert ended.err.count("\n") == 1


def test_another_server_is_asked_whatever_our_own_state_is(
    paddock: Paddock, server: Running, place: Path
) -> None:
    (place / "state").chmod(0o755)
    assert "chmod" not in paddock("status", "--url", "http://127.0.0.1:9").err


def test_logs_of_an_unknown_model_end_with_2(paddock: Paddock, server: Running) -> None:
    ended = paddock("logs", "chatt")
    assert ended.code == 2
    assert "chat" in ended.err


def test_followed_logs_go_on_until_the_server_ends_them(
    paddock: Paddock, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = server.world.fleet.logs["chat", 0] = LogBuffer()
    buffer.append("one")

    def remove() -> None:
        del server.world.fleet.models["chat"]
        server.loop.call_soon_threadsafe(buffer.append, "two")

    timer = threading.Timer(0.5, remove)
    timer.start()
    ended = paddock("logs", "chat", "-f")
    timer.join()
    assert ended.out == "one\n"
    assert ended.code == 3


def test_events_are_printed_oldest_first(paddock: Paddock, server: Running) -> None:
    server.record("ready", "up", model="chat")
    server.record("refused", "no\x1b", reason=samples.REASON)
    lines = paddock("events").out.splitlines()
    assert lines[0].endswith("ready             chat: up")
    assert lines[1].endswith("refused           no\\x1b [context_lowered]")
    assert lines[2] == "  → Free memory."


def test_events_pass_the_filter(paddock: Paddock, server: Running) -> None:
    server.record("ready", "one", model="chat")
    server.record("exited", "two", model="chat")
    server.record("ready", "three", model="org/other:q4")
    ended = paddock("events", "--model", "chat", "--kind", "ready", "--json")
    assert [event["message"] for event in ended.json["events"]] == ["one"]
    assert [event["message"] for event in paddock("events", "-n", "1", "--json").json["events"]] == ["three"]


@pytest.mark.parametrize("arguments", [("--kind", "reday"), ("--model", "none")], ids=["kind", "model"])
def test_events_with_a_bad_filter_end_with_2(
    paddock: Paddock, server: Running, arguments: tuple[str, ...]
) -> None:
    assert paddock("events", *arguments).code == 2


def test_diff_prints_what_would_change_and_why(paddock: Paddock, server: Running) -> None:
    ended = paddock("diff")
    assert ended.code == 0
    assert "replace chat" in ended.out
    assert "models.chat.context: 4096 → 8192" in ended.out
    assert "restart: the cache is allocated at start" in ended.out
    assert server.world.texts == [None]


def test_diff_as_json_is_the_shape_of_the_specification(paddock: Paddock, server: Running) -> None:
    actions = paddock("diff", "--json").json["actions"]
    assert actions[0].keys() == {"kind", "model", "replica", "changes", "reasons"}


def test_diff_of_a_broken_file_ends_with_2(paddock: Paddock, server: Running) -> None:
    from framework.api.answers import DiffAnswer

    async def broken(_text: str | None, _file: str | None = None) -> DiffAnswer:
        return DiffAnswer(problems=(PROBLEM,))

    object.__setattr__(server.world.services, "diff", broken)
    ended = paddock("diff")
    assert ended.code == 2
    assert "serve.toml:3:7: unknown key" in ended.err


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        pytest.param(("load", "chat"), ("load", "chat", "token"), id="load"),
        pytest.param(("reload", "chat-alias"), ("reload", "chat", "token"), id="reload-by-alias"),
        pytest.param(("unload", "chat"), ("unload", "chat", "drain", "token"), id="unload"),
        pytest.param(("unload", "chat", "--mode", "kill"), ("unload", "chat", "kill", "token"), id="kill"),
        pytest.param(("load", "org/other:q4"), ("load", "org/other:q4", "token"), id="name-with-slash"),
    ],
)
def test_command_without_waiting_is_accepted(
    paddock: Paddock, server: Running, arguments: tuple[str, ...], command: tuple[str, ...]
) -> None:
    ended = paddock(*arguments, "--no-wait", "--json")
    assert ended.code == 0
    assert ended.json == {"accepted": True, "event_id": 1}
    assert server.world.fleet.commands == [command]


def when(server: Running, command: str, happens: Callable[[], None]) -> None:
    """Let something happen as soon as a command is given."""
    fleet = server.world.fleet
    given = getattr(fleet, command)

    def both(*arguments: Any, **named: Any) -> Any:
        event = given(*arguments, **named)
        happens()
        return event

    setattr(fleet, command, both)


def test_load_waits_until_the_model_is_ready(paddock: Paddock, server: Running) -> None:
    become(server, "chat", State.STARTING, result=None)
    when(server, "load", lambda: become(server, "chat", State.READY, last_error=None))
    ended = paddock("load", "chat")
    assert ended.code == 0
    # With what it was granted less than was asked for.
    assert ended.out.startswith("chat: ready\nchat: Less than asked.")
    assert "→ Free memory." in ended.out


def test_load_that_fails_ends_with_1_and_says_what_to_do(paddock: Paddock, server: Running) -> None:
    events = server.world.services.events
    become(server, "chat", State.STARTING, result=None)
    when(
        server,
        "load",
        lambda: events.record("start_failed", "no", model="chat", reason=samples.REASON) and None,
    )
    ended = paddock("load", "chat")
    assert ended.code == 1
    assert "load of chat failed: Less than asked. Free memory." in ended.err
    assert ended.err.count("paddock: ") == 1


def test_load_as_json_prints_the_model(paddock: Paddock, server: Running) -> None:
    ended = paddock("load", "chat", "--json")
    assert ended.json["name"] == "chat"
    assert ended.json["state"] == "ready"


def test_unload_waits_until_the_process_is_gone(paddock: Paddock, server: Running) -> None:
    when(server, "unload", lambda: become(server, "chat", State.STOPPED))
    ended = paddock("unload", "chat")
    assert (ended.code, ended.out) == (0, "chat: stopped\n")


def test_reload_waits_for_the_new_process(paddock: Paddock, server: Running) -> None:
    events = server.world.services.events
    when(server, "reload", lambda: events.record("ready", "ready", model="chat") and None)
    assert paddock("reload", "chat").code == 0


def test_unknown_mode_is_refused_before_anything_is_sent(paddock: Paddock, server: Running) -> None:
    assert paddock("unload", "chat", "--mode", "gently").code == 2
    assert server.world.fleet.commands == []


def test_fault_of_the_server_ends_with_1(paddock: Paddock, server: Running) -> None:
    def broken() -> Any:
        raise RuntimeError("secret")

    server.world.fleet.views = broken  # type: ignore[method-assign]
    ended = paddock("status")
    assert ended.code == 1
    assert "secret" not in ended.err


def test_removed_model_leaves_a_sentence_while_waiting(paddock: Paddock, server: Running) -> None:
    become(server, "chat", State.STARTING, result=None)
    when(server, "load", lambda: server.world.fleet.models.pop("chat") and None)
    ended = paddock("load", "chat")
    assert ended.code == 2
    assert "chat" in ended.err


def test_replicas_have_lines_of_their_own(paddock: Paddock, server: Running) -> None:
    two = replace(samples.instance(), replica=1, pid=4712)
    server.world.fleet.models["chat"] = samples.model("chat", samples.instance(), two)
    assert "replica 1" in paddock("status").out
