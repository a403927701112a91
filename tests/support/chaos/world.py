"""A real `paddock up` on three models, its clients, and when it was down."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from framework.runtime.records import read_records
from tests.support.chaos.clients import Clients
from tests.support.chaos.models import WORDS, Manifest, OnExit, write_templates
from tests.support.chaos.processes import Held, engines_of, held_by, send, zombies_of
from tests.support.chaos.small_disk import SmallDisk
from tests.support.paddock import RunningPaddock, spawn_up
from tests.support.waiting import unused_port, wait_until

# Generous: a start takes seconds, on a busy machine perhaps a minute.
RECOVERS_S = 240.0
LOOK_S = 0.25
LINES_TOLD = 60
# Requests that were answered, or whose clients left.
FINE = re.compile(r" status=(200|499) ")
T = TypeVar("T")
# An engine prints a request's sampling before it runs it; the number of a request is its `top_k`.
RUN = re.compile(
    r"^(\S+) I slot +launch_slot_: .* sampler params:.*\n.*\n.*\n +top_k = (1\d{6}),", re.MULTILINE
)
RETRIED = re.compile(r"(req-[0-9a-f]+): lost the connection to .*, trying once more")


class World:
    """Owns all processes of a run; `close` leaves none of them."""

    def __init__(
        self,
        folder: Path,
        source: Path,
        environment: Mapping[str, str],
        *,
        on_exit: OnExit,
        seed: int,
        disk: SmallDisk | None = None,
    ) -> None:
        """`disk` is where the state directory of `environment` lies, if not on one like any other."""
        folder.mkdir(parents=True, exist_ok=True)
        self.manifest = Manifest(unused_port(), source, on_exit)
        self.path = folder / "serve.toml"
        self.path.write_text(self.manifest.text, encoding="utf-8")
        write_templates(folder)
        self._down: list[list[float]] = []
        self.state_id = ""
        log, state = folder / "paddock.log", Path(environment["PADDOCK_STATE_DIR"])
        wrapper: tuple[str, ...] = ()
        if disk is not None:
            wrapper, state = disk.wrapper, disk.outside
        process = spawn_up(self.path, log, environment, wrapper)
        self.paddock = RunningPaddock(
            process, self.path, state, self.manifest.port, log, environment, wrapper=wrapper
        )
        self.clients = Clients(self.paddock.base_url, seed, self.was_down)
        try:
            self.paddock.wait_ready()
            self.state_id = (state / "id").read_text(encoding="utf-8").strip()
            self.wait_serving()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def instances(self) -> int:
        """How many processes the manifest asks for."""
        return len(WORDS) - 1 + self.manifest.replicas

    def was_down(self, since_s: float) -> bool:
        """Whether `up` was being ended, down or on its way up at any moment since then."""
        return any(until_s >= since_s for _, until_s in self._down)

    def wait(self, predicate: Callable[[], T], what: str) -> T:
        """Until it is true, looked at a few times a second: looking takes time of the same processors."""
        deadline = time.monotonic() + RECOVERS_S
        while not (value := predicate()):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {RECOVERS_S:g} s for {what}\n{self._told()}")
            time.sleep(LOOK_S)
        return value

    def _told(self) -> str:
        """The log of `up` without its lines for requests that went well, for failure messages."""
        lines = [line for line in self.paddock.log_text().splitlines() if not FINE.search(line)]
        return "\n".join(lines[-LINES_TOLD:])

    # What runs

    def engines(self) -> dict[int, str]:
        """Living processes of this state directory, by process id."""
        return engines_of(self.state_id)

    def ready(self) -> dict[int, str]:
        """The instances that serve, by process id, as `up` says."""
        return {
            entry["pid"]: f"{model['name']}.{entry['replica']}"
            for model in self.paddock.status()["models"]
            for entry in model["instances"]
            if entry["state"] == "ready"
        }

    def port_of(self, pid: int) -> int | None:
        """Where an instance listens, if it is still there."""
        models = self.paddock.status()["models"]
        ports = {entry["pid"]: entry["port"] for model in models for entry in model["instances"]}
        return ports.get(pid)

    def wait_serving(self) -> None:
        """Until every process that is asked for serves, and no other is there."""

        def serves() -> bool:
            ready = self.ready()
            if len(ready) != self.instances or set(self.engines()) != set(ready):
                return False
            return self.manifest.on_exit == "stop" or set(ready) <= self._committed()

        self.wait(serves, "every instance to serve, and no other process to be there")

    def _committed(self) -> set[int]:
        """Processes of which all is noted that the next manager needs."""
        records = read_records(self.paddock.state_dir).values()
        return {record.pid for record in records if record is not None and record.committed is not None}

    def wait_answers(self, more: int = 2) -> None:
        """Until each model has given so many more whole answers."""
        before = Counter(self.clients.tally.whole)

        def answered() -> bool:
            now = self.clients.tally.whole
            return all(now[word] >= before[word] + more for word in WORDS)

        self.wait(answered, f"{more} more answers of each model after {before}")

    # The end of `up`, and another one

    def kill_up(self) -> None:
        """SIGKILL."""
        self._went_down()
        self.paddock.kill()

    def end_up(self) -> None:
        """As Ctrl-C does."""
        self._went_down()
        self.paddock.stop(RECOVERS_S)

    def start_up(self) -> None:
        """The next one."""
        self.paddock.restart()
        for outage in self._down:
            outage[1] = min(outage[1], time.monotonic())

    def begin_up(self) -> None:
        """The next one, without waiting for it."""
        paddock = self.paddock
        paddock.process = spawn_up(self.path, paddock.log_path, paddock.environment, paddock.wrapper)

    def _went_down(self) -> None:
        self._down.append([time.monotonic(), float("inf")])

    # What is left

    def settled(self, limit: Held, timeout_s: float = RECOVERS_S) -> Held:
        """What `up` holds once that is no more than `limit`, or at last."""
        deadline = time.monotonic() + timeout_s
        while True:
            held = held_by(self.paddock.pid)
            if held.descriptors <= limit.descriptors and held.sockets <= limit.sockets:
                return held
            if time.monotonic() > deadline:
                return held
            time.sleep(0.2)

    def zombies(self) -> list[int]:
        """Ended children that `up` has not collected."""
        return zombies_of(self.paddock.pid)

    def run_twice(self) -> list[str]:
        """Requests that engines ran more often than they should: once, or twice where the server says that it
        lost the connection before it had sent a byte, and tried once more."""
        ran = Counter(number for _, _, number in self._runs())
        retried = set(RETRIED.findall(self.paddock.log_text()))
        ids = self.clients.tally.ids
        allowed = {number: 1 + (ids.get(number) in retried or number not in ids) for number in ran}
        return [f"{n} ({ids.get(n)}): {times} times" for n, times in ran.items() if times > allowed[n]]

    def runs(self) -> int:
        """How many runs of requests the engines' logs tell of."""
        return len(self._runs())

    def _runs(self) -> set[tuple[str, str, int]]:
        """Replica, time and number of each. The log of a process that was taken over repeats some lines."""
        return {
            (path.parent.name, at, int(number))
            for path in self.paddock.state_dir.glob("logs/*/*.log*")
            for at, number in RUN.findall(path.read_text(encoding="utf-8", errors="replace"))
        }

    def next_manifest(self, **changes: object) -> Manifest:
        """The manifest of now, changed; nothing is written."""
        self.manifest = replace(self.manifest, **changes)  # type: ignore[arg-type]
        return self.manifest

    def close(self) -> None:
        """End everything that was started, by its process id."""
        if self.paddock.process.poll() is None:
            send(self.paddock.pid, signal.SIGCONT)
            self._went_down()
        self.paddock.close()
        self.clients.close()
        if self.state_id:
            for pid in self.engines():
                send(pid, signal.SIGKILL)
            wait_until(lambda: not self.engines(), 30.0, "the engines to be gone")
