"""The engine's results on an event loop: every request gets its own, and nobody polls (10 §1.5-1.6, 12 §1.8).

Made by nativeserver.process; used by everything that asks the engine for something. All of it belongs to one
event loop, apart from `tokenize`, `detokenize` and `piece`, which any thread may call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from framework.nativeserver.core import Engine, Result, Task
from framework.nativeserver.core_speculation import EMBEDDINGS, Speculation, undrafted
from framework.nativeserver.errors import ApiError
from framework.nativeserver.off_loop import thread_of_its_own
from framework.nativeserver.partials import Mailbox, lost_tasks
from framework.nativeserver.text_work import TextWork

RESULTS_AT_ONCE = 512
LOADING = "Loading model"
READY, SLEEPING, WAKING, FAILED, STOPPED = "ready", "sleeping", "waking", "failed", "stopped"
BEFORE_READY = ("fresh", "loading")


class FellAsleep(ApiError):
    """The model left memory after the request found it there; the request may be tried once more."""

    def __init__(self) -> None:
        super().__init__("unavailable", "The model has just left memory; try again")


class Submission:
    """The tasks of one HTTP request, and their results in the order of their arrival."""

    def __init__(self, bridge: EngineBridge, ids: Sequence[int], indices: Sequence[int]) -> None:
        self.ids = tuple(ids)
        self._bridge = bridge
        self._indices = dict(zip(ids, indices, strict=True))
        self._positions = {task_id: position for position, task_id in enumerate(ids)}
        self._mailbox = Mailbox()
        self._arrived = asyncio.Event()
        self._left = set(ids)
        """Tasks whose last result has not arrived."""

    @property
    def open(self) -> bool:
        """Whether a result is still to be read."""
        return bool(self._left) or len(self._mailbox) > 0

    def position(self, result: Result) -> int:
        """Index of the result's task in the call."""
        return self._positions[result.id]

    async def next(self, timeout_s: float | None = None) -> Result | None:
        """The next result; None when there was none in time, and when nothing is to be expected any more."""
        while len(self._mailbox) == 0:
            if not self._left:
                return None
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), timeout_s)
            except TimeoutError:
                return None
        return self._mailbox.take()

    def ready_now(self) -> bool:
        """Whether a result is here without waiting."""
        return len(self._mailbox) > 0

    def cancel(self) -> None:
        """End what still runs; nothing more is read. Harmless when everything has ended."""
        running = sorted(self._left)
        self._left.clear()
        self._mailbox.clear()
        self._arrived.set()
        if running:
            self._bridge.drop(running)

    def take(self, result: Result) -> None:
        """Called by the bridge."""
        self._mailbox.put(result)
        if result.kind != "partial":
            self._left.discard(result.id)
        self._arrived.set()

    def lose(self) -> None:
        """Called by the bridge: no task is answered any more."""
        ids = sorted(self._left)
        for result in lost_tasks(ids, [self._indices[task_id] for task_id in ids]):
            self.take(result)


class EngineBridge:
    """One engine on the running event loop; an async context manager.

    `withheld` are types of drafting that were asked for where there is nothing to draft.
    """

    def __init__(self, engine: Engine, module: Any, *, withheld: Sequence[str] = ()) -> None:
        self.engine = engine
        self._withheld = tuple(withheld)
        self.module = module
        """The extension module: GenerationParams and the like."""
        self._open: dict[int, Submission] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waking: asyncio.Future[bool] | None = None
        self._longest_token = 0
        self.text_work = TextWork()
        """Where long texts are tokenised."""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.engine.notify_fd(), self._drain)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What the engine said last is given out; whoever waits beyond that gets an error."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.remove_reader(self.engine.notify_fd())
        while self._drain():
            pass
        for submission in set(self._open.values()):
            submission.lose()
        self._open.clear()

    @property
    def state(self) -> str:
        """One of `fresh loading ready sleeping waking failed stopped`."""
        return self.engine.state()

    @property
    def meta(self) -> Any:
        """ModelMeta of the last load, or None."""
        return self.engine.meta()

    @property
    def facts(self) -> Any:
        """ContextFacts of the last load, or None."""
        return self.engine.facts()

    @property
    def n_slots(self) -> int:
        """Slots, after `auto` was resolved."""
        return self.engine.n_slots()

    def speculation(self) -> Speculation:
        """Which drafters run, and which do not. Once the model was loaded."""
        told = self.engine.speculation()
        return undrafted(told, self._withheld) if self._withheld else told

    @property
    def undrafted_reason(self) -> str:
        """Why no type that was asked for reached the core; empty when they did."""
        return EMBEDDINGS if self._withheld else ""

    def snapshot(self) -> Any:
        """What readers may see without asking the decode thread."""
        return self.engine.snapshot()

    def new_task(self) -> Task:
        """A task with the core's defaults."""
        task: Task = self.module.Task()
        return task

    async def ready_or_wake(self) -> None:
        """Return once the model is in memory. Raises ApiError: loading, failed, ending, not to be woken."""
        state = self.state
        if state in BEFORE_READY:
            raise ApiError("unavailable", LOADING)
        if state == FAILED:
            raise ApiError("server", "The engine has failed; see its log")
        if state == STOPPED:
            raise ApiError("unavailable", "The server is shutting down")
        if state != READY and not await self._wake():
            raise ApiError("unavailable", "The model could not be loaded again; try later")

    async def _wake(self) -> bool:
        """All who wait share one call, and one thread."""
        if self._waking is None or self._waking.done():
            self._waking = thread_of_its_own(self.engine.wake)
        # Who goes away while it wakes does not end the wake of the others.
        return await asyncio.shield(self._waking)

    def submit(self, tasks: Sequence[Task]) -> Submission:
        """Hand the tasks of one request to the engine; never blocks."""
        ids = self.engine.submit(tasks)
        submission = Submission(self, ids, [task.index for task in tasks])
        if self._loop is None:
            submission.lose()
        else:
            self._open.update(dict.fromkeys(ids, submission))
        return submission

    async def ask(self, task: Task) -> Result:
        """The one result of a task that has one. Raises ApiError for an error result."""
        submission = self.submit([task])
        try:
            result = await submission.next()
        finally:
            submission.cancel()
        if result is None:
            raise ApiError("unavailable", "The engine has stopped")
        raise_error(result)
        return result

    def drop(self, ids: Sequence[int]) -> None:
        """Nobody waits for these any more; called by their submission."""
        for task_id in ids:
            self._open.pop(task_id, None)
        self.engine.cancel(ids)

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Token ids. Raises FellAsleep, and ApiError for a text that is too long for the tokeniser.

        Blocks: texts of more than some KiB belong into a thread (12 §1.8).
        """
        try:
            with _awake():
                return self.engine.tokenize(text.encode(errors="replace"), add_special, parse_special)
        except ValueError as problem:
            raise ApiError("invalid_request", str(problem)) from None

    def detokenize(self, ids: Sequence[int]) -> bytes:
        """Bytes of tokens, special ones shown. Raises FellAsleep."""
        with _awake():
            return self.engine.detokenize(ids, True)

    def piece(self, token: int, *, special: bool = True) -> bytes:
        """Bytes of one token. Raises FellAsleep."""
        with _awake():
            return self.engine.piece(token, special)

    @property
    def longest_token(self) -> int:
        """Bytes of the longest token, special ones included. Raises FellAsleep.

        Looks at the whole vocabulary when it is asked for the first time: belongs into a thread.
        """
        if not self._longest_token:
            self._longest_token = max(len(self.piece(token)) for token in range(self.meta.n_vocab))
        return self._longest_token

    def _drain(self) -> int:
        """Give out what waits, a bounded number at a time; returns how many results there were.

        The descriptor stays readable while more waits, so that other work gets its turn in between.
        """
        results = self.engine.poll(RESULTS_AT_ONCE, False)
        for result in results:
            submission = self._open.get(result.id)
            if submission is None:
                continue
            if result.kind != "partial":
                del self._open[result.id]
            submission.take(result)
        return len(results)


@contextlib.contextmanager
def _awake() -> Iterator[None]:
    try:
        yield
    except RuntimeError:
        raise FellAsleep from None


def raise_error(result: Result) -> None:
    """Raises ApiError when the result is one."""
    if result.kind == "error":
        raise error_of(result)


def error_of(result: Result) -> ApiError:
    """The error that a result tells."""
    extra = {}
    if result.error == "exceed_context_size":
        extra = {"n_prompt_tokens": result.n_prompt_tokens, "n_ctx": result.n_ctx}
    return ApiError(result.error, result.text.decode(errors="replace"), extra)  # type: ignore[arg-type]
