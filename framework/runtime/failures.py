"""From the end of a start to a failure class with a sentence and a remedy (06 §14). Pure.

Called by runtime.ladder and runtime.rungs. First match wins. The order is that of 06 §14.1, save that what a
start without projector says of its own end counts before the projector: of lack of memory, or of a flag, more
follows than that the projector was not the cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from framework.engines.renames import instead_of
from framework.runtime.memory_failures import killed, out_of_memory, planned_bytes
from framework.runtime.model_failures import (
    architecture_unknown,
    ollama_file,
    projector_failed,
    tensor_unsupported,
)
from framework.runtime.remote_failures import server_broke, server_missing, server_silent
from framework.runtime.start_end import (
    LONGEST_NAME,
    Outcome,
    StartEnd,
    Told,
    describe_exit,
    is_hard_fault,
)
from framework.runtime.start_signs import (
    FILE_WORDS,
    holds_flag,
    port_was_taken,
    rejected_flag,
    rejected_variable,
)
from framework.values.plain_text import brief
from framework.values.reason import Failure, Reason

__all__ = ["Outcome", "StartEnd", "classify", "describe_exit", "is_hard_fault", "rejected_flag"]

RETRYABLE = frozenset(
    {
        "killed_by_os",
        "out_of_memory",
        "port_conflict",
        "binary_locked",
        "rpc_busy",
        "rpc_lost",
        "rpc_version_mismatch",
    }
)
# Classes whose sentence says what the memory plan knew.
TOLD_WITH_MEMORY = frozenset({"killed_by_os", "out_of_memory"})
# The last words of a start that failed repeat that it failed; the cause stands before them.
CLOSING = re.compile(r"exiting due to|failed to load model|cleaning up", re.IGNORECASE)
# What the parser says of a flag that it knows, and whose value it does not take.
BAD_VALUE = "error while handling argument"
REMOVED = "has been removed"
LIBRARY = re.compile(r"error while loading shared libraries: ([^:\s]+)")
# What a shell, and our own launcher, end with when a program cannot be executed or is not there.
CANNOT_RUN = (126, 127)
SIGILL, SIGTERM = 4, 15
ENDED_BY_US = frozenset({"incomplete", "decode_failed", "timeout", "port_taken"})


def classify(end: StartEnd) -> Failure:
    """The failure class of a start that no rung could save, told for a person."""
    code, message, remedy = next(told for rule in RULES if (told := rule(end)))
    evidence: dict[str, Any] = {
        "exit_code": end.exit_code,
        "signal": end.signal,
        "log": end.log_path,
        "model_file": str(end.plan.main_gguf),
        "engine": str(end.plan.engine.entry),
    }
    if code in TOLD_WITH_MEMORY and end.plan.fit.lines:
        fit = end.plan.fit
        evidence |= {"needed_bytes": planned_bytes(fit), "budget_bytes": dict(fit.budget_bytes)}
    reason = Reason(code, message, remedy, "error", evidence)
    ours = end.exit_code is None and end.outcome in ENDED_BY_US
    how = "by Paddock" if ours else f"with {describe_exit(end.exit_code)}"
    detail = f"{message}\nEnded {how}; log {end.log_path}\n{end.tail}"
    return Failure(reason, detail, retryable=code in RETRYABLE)


def _cpu_unsupported(end: StartEnd) -> Told | None:
    if end.signal != SIGILL:
        return None
    return (
        "cpu_unsupported",
        "This build needs CPU instructions that this machine lacks: it died of signal 4 (SIGILL).",
        f"Use another llama.cpp build than {end.plan.engine.entry}, for example one made on this machine.",
    )


def _terminated(end: StartEnd) -> Told | None:
    if end.signal != SIGTERM:
        return None
    return (
        "terminated",
        "The engine was stopped from outside before it was ready.",
        "See the log, then reload.",
    )


def _timeout(end: StartEnd) -> Told | None:
    if end.outcome != "timeout":
        return None
    lacking = "had not generated its first tokens" if end.was_healthy else "was not ready"
    return (
        "health_timeout",
        f"The engine is alive but {lacking} after {end.waited_s:.0f} s.",
        "Raise timeout.load, or use a shorter context or a smaller quantisation.",
    )


def _port(end: StartEnd) -> Told | None:
    if not port_was_taken(end):
        return None
    holder = f" The last one is held by {end.port_holder}." if end.port_holder else ""
    return (
        "port_conflict",
        f"Another program took the port of the engine, again and again.{holder}",
        "End the program that grabs loopback ports.",
    )


def _rejected(end: StartEnd) -> Told | None:
    flag = rejected_flag(end)
    if flag is None:
        return None
    lines = end.told_of_line
    said = next((line for line in lines if flag in line and ("argument" in line or "error" in line)), "")
    hint = brief(next((line for line in lines if REMOVED in line), said))
    is_value = BAD_VALUE in said.lower() and REMOVED not in hint
    args, shown = end.plan.request.extra_args, brief(flag, LONGEST_NAME)
    theirs = holds_flag(args, flag)
    code = "user_flag_rejected" if theirs else "flag_rejected"
    remedy = "Use another llama.cpp build, or report which one this is."
    if theirs and is_value:
        remedy = f"Give {shown} in engine_args a value that this build takes, or remove it."
    elif theirs and flag not in args:
        remedy = f"Give {shown} and its value as two items of engine_args, or remove it."
    elif theirs:
        listed = "`paddock engines` lists what this build knows"
        remedy = f"{_other_spelling(flag, end)}Change or remove {shown} in engine_args; {listed}."
    what = f"the value of {shown}" if is_value else f"the flag {shown}"
    return code, f"The engine refused {what}. It said: {hint.rstrip('.')}.", remedy


def _other_spelling(flag: str, end: StartEnd) -> str:
    """What this build calls the same setting, as a sentence."""
    args = end.plan.request.extra_args
    value = next((follows for token, follows in pairwise((*args, "")) if token == flag), "")
    spellings = instead_of(flag, value, end.plan.caps)
    return f"This engine calls it {' or '.join(spellings)}. " if spellings else ""


def _variable_rejected(end: StartEnd) -> Told | None:
    name = rejected_variable(end)
    if name is None:
        return None
    request = end.plan.request
    said = next(line for line in end.told_of_line if name in line)
    return (
        "user_flag_rejected",
        f"The engine refused the environment variable {name}. It said: {brief(said)}",
        f"Change or remove {name} in models.{request.id}.env or engines.{request.engine.name}.env.",
    )


def _library(end: StartEnd) -> Told | None:
    missing = LIBRARY.search("\n".join(end.told))
    if missing is None and end.exit_code not in CANNOT_RUN:
        return None
    what = (
        f"the library {brief(missing.group(1))}" if missing else "the program, its interpreter or a library"
    )
    return (
        "library_missing",
        f"{end.plan.engine.entry} cannot be run: {what} is missing.",
        f"Install what is missing, or name another engine in engines.{end.plan.request.engine.name}.binary.",
    )


def _other(end: StartEnd) -> Told:
    useful = [(line, whole) for line, whole in end.pairs if line.strip() and not CLOSING.search(line)]
    errors = [(line, whole) for line, whole in useful if "error" in line.lower()]
    last = (errors or useful)[-1:]
    said = end.line_with(*FILE_WORDS) or "".join(brief(whole) for _, whole in last)
    quoted = f" It said: {said}" if said else ""
    ended = f"ended with {describe_exit(end.exit_code)} before it was ready"
    if end.was_healthy:
        died = f"ended with {describe_exit(end.exit_code)}" if end.exit_code is not None else "failed"
        ended = f"got ready and {died} at the first tokens"
    return (
        "start_failed",
        f"The engine {ended}.{quoted}",
        "Check that the model file is complete and that memory suffices; `paddock logs` shows its output.",
    )


RULES: tuple[Callable[[StartEnd], Told | None], ...] = (
    tensor_unsupported,
    architecture_unknown,
    _cpu_unsupported,
    server_missing,
    killed,
    _terminated,
    server_silent,
    _timeout,
    _port,
    _rejected,
    _variable_rejected,
    _library,
    out_of_memory,
    server_broke,
    projector_failed,
    ollama_file,
    _other,
)
