"""One kind of trouble each, under load. What is not named here as an exception must go on meanwhile."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from tests.support.chaos.editors import LONGEST_PAUSE_S, WAYS, broken, renamed
from tests.support.chaos.models import CHANGED, WORDS, Manifest
from tests.support.chaos.processes import engines_of, send
from tests.support.chaos.small_disk import FileLimit, Room, SmallDisk
from tests.support.chaos.thief import Thief
from tests.support.chaos.wall_clock import WallClock
from tests.support.chaos.world import World

DAY_S = 86400
SHORT_STOP_S = 1.5
NEW_ONES = 8
# From a client to the socket of a process that does not run.
REACHES_S = 0.3
HANG_UP_SHARE = 0.2
# One edit in so many asks for another process.
RESTARTS_EVERY = 25


def victim(world: World, dice: random.Random) -> int:
    """The process id of an engine that serves."""
    serving = world.wait(world.ready, "an instance that serves")
    chosen: int = dice.choice(sorted(serving))
    return chosen


def kill_child(world: World, dice: random.Random) -> str:
    """SIGKILL for an engine."""
    pid = victim(world, dice)
    send(pid, signal.SIGKILL)
    return f"process {pid}"


def kill_all_children(world: World, dice: random.Random) -> str:
    """SIGKILL for all engines at once."""
    pids = list(engines_of(world.state_id))
    dice.shuffle(pids)
    for pid in pids:
        send(pid, signal.SIGKILL)
    return f"{len(pids)} processes"


def pause_child(world: World, dice: random.Random) -> str:
    """SIGSTOP for a moment: nothing is lost, nothing is started again."""
    world.wait_serving()
    pid = victim(world, dice)
    send(pid, signal.SIGSTOP)
    time.sleep(SHORT_STOP_S)
    send(pid, signal.SIGCONT)
    world.wait_answers()
    assert pid in world.engines(), "a process that was stopped for a moment was ended"
    return f"process {pid}, for {SHORT_STOP_S:g} s"


def stop_child(world: World, dice: random.Random) -> str:
    """SIGSTOP for good: the process is ended and started again."""
    pid = victim(world, dice)
    send(pid, signal.SIGSTOP)
    world.wait(lambda: pid not in world.engines(), "the stopped process to be ended")
    return f"process {pid}"


def steal_port(world: World, dice: random.Random) -> str:
    """An engine dies and somebody else has its port before `up` can have seen that."""
    pid = victim(world, dice)
    port = world.port_of(pid)
    if port is None:
        return f"process {pid} was gone already"
    send(world.paddock.pid, signal.SIGSTOP)
    try:
        send(pid, signal.SIGKILL)
        thief = Thief(port)
        # They are at the door when it wakes up.
        asked = world.clients.ask_at_once(NEW_ONES)
        time.sleep(REACHES_S)
    finally:
        send(world.paddock.pid, signal.SIGCONT)
    with thief:
        asked()
        world.wait_answers()
    return f"port {port} of process {pid}, {thief.questions} questions went there"


def leave_early(times: int) -> Callable[[World, random.Random], str]:
    """Clients that go away in the middle."""

    def leave(world: World, dice: random.Random) -> str:
        world.clients.leave_early(times, dice.randrange(2**32))
        return f"{times} clients"

    return leave


def jump_clock(clock: WallClock) -> Callable[[World, random.Random], str]:
    """The wall clock of `up` goes forward, then back beyond where it was, then is right again."""

    def jump(world: World, dice: random.Random) -> str:
        world.wait_serving()
        steps = [dice.randint(1, 400) * DAY_S // 2, -dice.randint(1, 400) * DAY_S // 2, 0]
        before = set(world.engines())
        for step in steps:
            clock.set_ahead(step)
            world.wait_answers()
        assert set(world.engines()) == before, "processes changed because the clock did"
        return ", ".join(f"{step / DAY_S:+.1f} days" for step in steps)

    return jump


def fill_disk(disk: SmallDisk | None) -> Callable[[World, random.Random], str]:
    """No byte is left for state, and an engine dies meanwhile; it comes back when there is room. Without a
    disk no file of `up` may grow."""

    def fill(world: World, dice: random.Random) -> str:
        world.wait_serving()
        room: Room = disk or FileLimit(world.paddock.pid)
        taken = room.fill()
        try:
            pid = dice.choice([p for p, name in world.ready().items() if name.startswith(WORDS[0])])
            world.wait_answers()
            send(pid, signal.SIGKILL)
            world.wait_answers()
            room.fill()
        finally:
            room.free()
        return f"{taken / 2**20:.1f} MiB taken, process {pid} killed"

    return fill


def rewrite_manifest(times: int) -> Callable[[World, random.Random], str]:
    """Valid and broken texts in every way that files are written; what is not changed keeps its processes."""

    def rewrite(world: World, dice: random.Random) -> str:
        world.wait_serving()
        kept = {pid for pid, name in world.ready().items() if not name.startswith(CHANGED)}
        n_broken = 0
        for number in range(times):
            way = WAYS[list(WAYS)[number % len(WAYS)]]
            text = _edited(world, dice, number).text
            if dice.random() < 0.5:
                text, n_broken = broken(text, dice), n_broken + 1
            way(world.path, text, dice)
            if dice.random() < HANG_UP_SHARE:
                send(world.paddock.pid, signal.SIGHUP)
            time.sleep(dice.uniform(0.0, LONGEST_PAUSE_S))
        final = world.next_manifest(note="the last edit", aliases=(f"last-{dice.randrange(2**32)}",))
        renamed(world.path, final.text, dice)
        _wait_applied(world, final)
        world.wait_serving()
        assert kept <= set(world.engines()), "an edit of one model cost another its process"
        return f"{times} times, {n_broken} broken"

    return rewrite


def _edited(world: World, dice: random.Random, number: int) -> Manifest:
    changes: dict[str, object] = {"note": f"edit {number}"}
    if number % RESTARTS_EVERY == RESTARTS_EVERY - 1:
        changes["slots"] = 3 - world.manifest.slots
    elif dice.random() < 0.5:
        changes["aliases"] = (f"other-{number}",)
    return world.next_manifest(**changes)


def _wait_applied(world: World, manifest: Manifest) -> None:
    def applied() -> bool:
        status = world.paddock.status()
        changed = next(model for model in status["models"] if model["name"] == CHANGED)
        return status["manifest"]["error"] is None and changed["aliases"] == list(manifest.aliases)

    world.wait(applied, "the last edit to be applied")


def kill_up(world: World, dice: random.Random) -> str:
    """SIGKILL for `up`, then the next one; of what is kept perhaps an engine dies meanwhile."""
    return _kill_up(world, dice, [None, signal.SIGKILL])


def kill_up_and_stop_a_child(world: World, dice: random.Random) -> str:
    """The same, and an engine hangs when the next one comes: it is not taken over but ended."""
    return _kill_up(world, dice, [signal.SIGSTOP])


def _kill_up(world: World, dice: random.Random, sent: Sequence[signal.Signals | None]) -> str:
    world.wait_serving()
    before = set(world.engines())
    world.kill_up()
    lost: set[int] = set()
    number = dice.choice(sent)
    if world.manifest.on_exit == "stop":
        world.wait(lambda: not world.engines(), "the engines to die with their manager")
    elif number is not None:
        lost = {dice.choice(sorted(world.engines()))}
        send(next(iter(lost)), number)
    world.start_up()
    world.wait_serving()
    after = set(world.engines())
    if world.manifest.on_exit == "keep":
        assert before - lost <= after, f"{before - lost - after} were to be kept"
    return f"{len(before)} engines, {len(after & before)} kept, {len(lost)} lost meanwhile"


def kill_up_while_it_loads(world: World, dice: random.Random) -> str:
    """SIGKILL for `up` in the middle of starting engines."""
    kill_all_children(world, dice)
    pause_s = dice.uniform(0.0, 1.0)
    time.sleep(pause_s)
    world.kill_up()
    left = len(world.engines())
    world.start_up()
    world.wait_serving()
    return f"{pause_s:.2f} s after all engines died, {left} of the next ones were there"


def kill_up_while_it_starts(world: World, dice: random.Random) -> str:
    """SIGKILL for `up`, and for the next one before, or just when, it has found what the first one left."""
    world.wait_serving()
    before = set(world.engines())
    world.kill_up()
    pauses_s = [dice.uniform(0.1, 2.5) for _ in range(2)]
    for pause_s in pauses_s:
        world.begin_up()
        time.sleep(pause_s)
        world.kill_up()
    world.start_up()
    world.wait_serving()
    if world.manifest.on_exit == "keep":
        assert before <= set(world.engines()), "engines were lost on the way"
    return " and ".join(f"{pause_s:.2f} s" for pause_s in pauses_s) + " after its start"


def end_up(world: World, dice: random.Random) -> str:
    """Ctrl-C for `up`, then the next one."""
    world.wait_serving()
    before = set(world.engines())
    world.end_up()
    between = set(world.engines())
    assert between == (before if world.manifest.on_exit == "keep" else set())
    world.start_up()
    world.wait_serving()
    return f"{len(between)} of {len(before)} engines went on"


Fault = Callable[[World, random.Random], str]
# Those that need nothing but a world.
PLAIN: Mapping[str, Fault] = {
    "kill a child": kill_child,
    "kill all children": kill_all_children,
    "pause a child": pause_child,
    "stop a child": stop_child,
    "steal a port": steal_port,
    "kill up": kill_up,
    "kill up and stop a child": kill_up_and_stop_a_child,
    "kill up while it loads": kill_up_while_it_loads,
    "kill up while it starts": kill_up_while_it_starts,
    "end up": end_up,
}
