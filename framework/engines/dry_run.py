"""Let an engine measure a launch without loading it: its fit step says what each device would hold (13 §2).

The command line of the plan is started, on no port of ours, and the process is killed as soon as its table
has been read, before a byte of the weights is. Called by runtime.measuring for `paddock plan --measure`.
Refuses engines without a fit step, and gives a reason for whatever keeps an engine from answering.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from framework.engines.args import FALSE_WORDS, values_of
from framework.engines.command_line import SLOT_SAVING, fill_line
from framework.engines.fit_log import FitLog
from framework.engines.help_text import VERBOSITY_FLAGS
from framework.engines.process_output import Watcher, watch
from framework.engines.redaction import is_secret_name
from framework.engines.working_folder import working_folder
from framework.values.device import HOST_NAME
from framework.values.engine import Capabilities
from framework.values.measurement import Measurement
from framework.values.plan import LaunchPlan, Section
from framework.values.reason import Reason

TIMEOUT_S = 60.0
# An engine that says nothing of a fit step may be loading the model: devices and a header take seconds.
BEGIN_LIMIT_S = 30.0
OUTPUT_LIMIT_BYTES = 16 * 2**20
# Longer lines hold no number of ours; what is beyond is dropped.
LINE_LIMIT_BYTES = 16 * 2**10
ANY_PORT = 0
FIT_FLAGS = ("-fit", "--fit")
FIT_VARIABLE = "LLAMA_ARG_FIT"
# They do not change what a model takes, and the file or folder that they name is only made for a launch.
WITHOUT_MEMORY = frozenset({"template", "template-kwargs", SLOT_SAVING})
SILENCING = frozenset({"--log-disable"})
SILENCING_WITH_VALUE = frozenset({"--log-file"})


class NotMeasured(Exception):
    """The engine did not answer; `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.message)
        self.reason = reason


async def measure(
    plan: LaunchPlan, *, listed: Iterable[str] | None = None, timeout_s: float = TIMEOUT_S
) -> Measurement:
    """What the launch of `plan` would take, as the engine says it. Raises NotMeasured.

    `listed` are the names of all devices that the engine lists; an answer about others is none.
    The process is gone when this returns, raises or is cancelled. `timeout_s` is for all runs together.
    """
    if plan.caps.conclusive and not plan.caps.has("--fit"):
        raise NotMeasured(_unsupported(plan, "its help text knows no --fit"))
    measured = await _measured(plan, timeout_s)
    known = None if listed is None else {HOST_NAME, *listed}
    tables = (measured.asked, measured.draft, measured.choice.table if measured.choice else ())
    for row in (row for table in tables for row in table):
        if known is not None and row.device not in known:
            raise NotMeasured(_unlisted(plan, row.device))
    return measured


async def _measured(plan: LaunchPlan, timeout_s: float) -> Measurement:
    deadline = time.monotonic() + timeout_s
    whole = _fits_itself(plan)
    measured = await _run(plan, (), timeout_s=timeout_s, whole=whole)
    choice = measured.choice
    if choice is None or choice.table:
        return measured
    # The fit step works a shorter context out and prints no table for it; for the layers it tried, it does.
    again = ("-c", str(choice.context)) if choice.gpu_layers is None and choice.context else ()
    left_s = deadline - time.monotonic()
    if not again or left_s <= 0:
        return replace(measured, choice=None)
    shortened = await _run(plan, again, timeout_s=left_s, whole=False)
    return replace(measured, choice=replace(choice, table=shortened.asked))


def dry_line(plan: LaunchPlan, extra: Iterable[str] = ()) -> list[str]:
    """The plan's command line, made to print its memory; the last occurrence of a flag wins."""
    sections = [_speaking(section) for section in plan.sections if section.name not in WITHOUT_MEMORY]
    return [*fill_line(sections, port=ANY_PORT), *extra, "--fit", "on", *_loud(plan.caps)]


def _loud(caps: Capabilities) -> Iterator[str]:
    flag = next((flag for flag in VERBOSITY_FLAGS if caps.has(flag)), None)
    if flag is not None and caps.trace_level is not None:
        yield from (flag, str(caps.trace_level))
    if caps.has("--log-colors"):
        yield from ("--log-colors", "off")
    if caps.has("--offline"):
        yield "--offline"


def _speaking(section: Section) -> Section:
    """Without the user's flags that would hide what is to be read, or write it somewhere."""
    if section.kind != "user":
        return section
    kept: list[str] = []
    skip = False
    for token in section.tokens:
        if not skip and token not in SILENCING and token not in SILENCING_WITH_VALUE:
            kept.append(token)
        skip = not skip and token in SILENCING_WITH_VALUE
    return replace(section, tokens=tuple(kept))


def _fits_itself(plan: LaunchPlan) -> bool:
    """Whether the launch lets the fit step change what was asked."""
    said = [value for value in values_of(plan.argv, FIT_FLAGS) if value]
    word = said[-1] if said else plan.env.get(FIT_VARIABLE, "on")
    return word not in FALSE_WORDS


async def _run(plan: LaunchPlan, extra: Iterable[str], *, timeout_s: float, whole: bool) -> Measurement:
    reader = _Reader(FitLog(whole=whole))
    patience = asyncio.get_running_loop().call_later(BEGIN_LIMIT_S, reader.end_unless_begun)
    with working_folder() as folder:
        try:
            code, fault = await watch(
                reader, dry_line(plan, extra), _environment(plan.env), timeout_s=timeout_s, cwd=folder
            )
        finally:
            patience.cancel()
    measured = reader.log.measurement
    if measured is not None:
        return measured  # also when the fit step took too long to decide
    raise NotMeasured(_why(plan, reader, code, fault))


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """A dry run proves nothing to anybody, so it knows no secret."""
    return {name: value for name, value in env.items() if not is_secret_name(name)}


class _Reader(Watcher):
    """Feeds the log line by line, until that has all it wants or too much was printed."""

    def __init__(self, log: FitLog) -> None:
        super().__init__()
        self.log = log
        self.overflow = False
        self.never_begun = False
        self._read_bytes = 0
        self._rest: dict[int, bytes] = {}

    def end_unless_begun(self) -> None:
        """Want no more of an engine that has said nothing of what is asked."""
        if not self.done.is_set() and not self.log.has_begun:
            self.never_begun = True
            self.done.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self.done.is_set():
            return
        self._read_bytes += len(data)
        *lines, rest = (self._rest.get(fd, b"") + data).split(b"\n")
        self._rest[fd] = rest[:LINE_LIMIT_BYTES]
        if any(self.log.feed(_text(line)) for line in lines):
            self.done.set()
        elif self._read_bytes > OUTPUT_LIMIT_BYTES:
            self.overflow = True
            self.done.set()


def _text(line: bytes) -> str:
    return line[:LINE_LIMIT_BYTES].decode("utf-8", "replace").rstrip("\r")


def _why(plan: LaunchPlan, reader: _Reader, code: int | None, fault: str) -> Reason:
    log = reader.log
    if log.loading:
        return _unsupported(plan, "it began to load the model without printing a table of its memory")
    if reader.overflow:
        return _unsupported(plan, f"it printed more than {OUTPUT_LIMIT_BYTES >> 20} MiB and no table")
    if reader.never_begun:
        fault = f"said nothing of its fit step within {BEGIN_LIMIT_S:g} s"
    said = f": {log.errors[0].rstrip('.')}" if log.errors else ""
    how = fault or _ending(code, stopped=reader.log.errors != [] and code == -signal.SIGKILL)
    return Reason(
        "measure_failed",
        f"The engine did not measure the memory of {plan.main_gguf.name}; it {how}{said}.",
        "The plan's own numbers stand. If the model does not start either, `paddock logs` says more.",
        "warning",
        {"exit_code": code, "errors": list(log.errors), "engine": str(plan.engine.entry)},
    )


def _unlisted(plan: LaunchPlan, device: str) -> Reason:
    return Reason(
        "measure_failed",
        f"What the engine measured for {plan.main_gguf.name} is not used: it speaks of a device {device},"
        " which it does not list.",
        "The plan's own numbers stand. `paddock devices` shows what the engine lists.",
        "warning",
        {"device": device, "engine": str(plan.engine.entry)},
    )


def _ending(code: int | None, *, stopped: bool) -> str:
    if stopped:  # by us, as it said that it could not
        return "gave up"
    return f"was ended by signal {-code}" if code is not None and code < 0 else f"exited with {code}"


def _unsupported(plan: LaunchPlan, why: str) -> Reason:
    return Reason(
        "measure_unsupported",
        f"This engine ({plan.caps.version}) cannot measure memory before a start: {why}.",
        "The plan's own numbers stand. Use a llama-server with a fit step; split modes `row` and `tensor`"
        " have none.",
        "warning",
        {"engine": str(plan.engine.entry), "version": plan.caps.version},
    )
