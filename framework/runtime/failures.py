"""From the end of a start to a failure class with a sentence and a remedy (06 §14). Pure.

Called by runtime.ladder. First match wins; the order is that of 06 §14.1. Classes of features that are not
there yet (tensor split, projector recovery) join the table with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from framework.runtime.allocation import (
    fit_was_forbidden,
    refused_allocation,
    too_large_tensor,
    was_short_of_memory,
)
from framework.runtime.remote_devices import connection_broke, endpoints, missing_servers, silent_servers
from framework.values.plan import FitPlan, LaunchPlan
from framework.values.reason import Failure, Reason
from framework.values.units_text import size

Outcome = Literal["exited", "timeout", "port_taken", "incomplete"]
"""`incomplete`: it got ready without a device that it was to use, and was ended."""
# Debugger backtraces of an abort push the cause out of the last lines (15 §7): look further back.
TAIL_LINES = 50
SEARCH_LINES = 400
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
BACKTRACE = re.compile(r"^(#\d+ |\[New LWP|\[Thread debugging|Using host libthread_db|\[Inferior|warning: )")
ARCHITECTURE = re.compile(r"unknown model architecture: '([^']*)'")
REJECTED = re.compile(
    r"(?:invalid argument:? |unknown argument:? |error while handling argument [\"'])(-[-\w]+)", re.IGNORECASE
)
# The last words of a start that failed repeat that it failed; the cause stands before them.
CLOSING = re.compile(r"exiting due to|failed to load model|cleaning up", re.IGNORECASE)
LIBRARY = re.compile(r"error while loading shared libraries: ([^:\s]+)")
# What a shell, and our own launcher, end with when a program cannot be executed or is not there.
CANNOT_RUN = (126, 127)
SIGNAL_NAMES = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
}
HARD_SIGNALS = frozenset({4, 6, 7, 8, 11})
WRAPPED = 128
IMAGE_ARCHITECTURES = frozenset(
    {
        "qwen_image",
        "flux",
        "sd1",
        "sdxl",
        "sd3",
        "aura",
        "hidream",
        "cosmos",
        "ltxv",
        "hyvid",
        "wan",
        "lumina2",
    }
)


@dataclass(frozen=True)
class StartEnd:
    """How a start ended: what was waited for, the exit code, the output (redacted, oldest first)."""

    outcome: Outcome
    exit_code: int | None
    lines: Sequence[str]
    plan: LaunchPlan
    log_path: str
    waited_s: float

    @property
    def signal(self) -> int | None:
        """The signal that ended the process; behind a wrapper script also told by 128+n (06 §12.4)."""
        code = self.exit_code
        if code is not None and code < 0:
            return -code
        if code is not None and self.plan.engine.via_wrapper and code > WRAPPED:
            return code - WRAPPED
        return None

    @property
    def text(self) -> str:
        """The lines that can hold the cause, lower-cased, without debugger noise."""
        useful = [line for line in self.lines[-SEARCH_LINES:] if not BACKTRACE.match(line)]
        return "\n".join(useful).lower()

    @property
    def tail(self) -> str:
        """The last lines as they are shown to a person."""
        return "\n".join(self.lines[-TAIL_LINES:])


Told = tuple[str, str, str]
"""Class, sentence, remedy."""


def is_hard_fault(exit_code: int | None, *, via_wrapper: bool = False) -> bool:
    """Whether the program itself broke (06 §12.4): killed by ILL, ABRT, BUS, FPE or SEGV."""
    if exit_code is None:
        return False
    if via_wrapper and exit_code > WRAPPED:
        return exit_code - WRAPPED in HARD_SIGNALS
    return -exit_code in HARD_SIGNALS


def describe_exit(exit_code: int | None) -> str:
    """`exit code 1`, `signal 4 (SIGILL)`, or that it is not known."""
    if exit_code is None:
        return "an unknown exit code"
    if exit_code < 0:
        return f"signal {-exit_code} ({SIGNAL_NAMES.get(-exit_code, 'unnamed')})"
    return f"exit code {exit_code}"


def rejected_flag(end: StartEnd) -> str | None:
    """The flag the engine refused, when that is why it ended.

    Without its server a device has no name to the engine, which is no fault of `--device`.
    """
    if end.outcome != "exited" or not end.exit_code or missing_servers(end.plan, end.lines):
        return None
    found = REJECTED.search("\n".join(end.lines[-TAIL_LINES:]))
    return found.group(1) if found else None


def port_was_taken(end: StartEnd) -> bool:
    """Whether the port went to somebody else between the reservation and the start (rung P)."""
    if end.outcome == "port_taken":
        return True
    return bool(end.exit_code) and ("couldn't bind" in end.text or "address already in use" in end.text)


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
        evidence |= {"needed_bytes": _needed(end.plan.fit), "budget_bytes": dict(end.plan.fit.budget_bytes)}
    reason = Reason(code, message, remedy, "error", evidence)
    how = "by Paddock" if end.outcome == "incomplete" else f"with {describe_exit(end.exit_code)}"
    detail = f"{message}\nEnded {how}; log {end.log_path}\n{end.tail}"
    return Failure(reason, detail, retryable=code in RETRYABLE)


def _unsupported_architecture(end: StartEnd) -> Told | None:
    found = ARCHITECTURE.search("\n".join(end.lines[-SEARCH_LINES:]))
    if not found:
        return None
    name = found.group(1)
    if name in IMAGE_ARCHITECTURES:
        return (
            "image_model",
            f"{end.plan.main_gguf.name} is an image or video generation model ({name});"
            " llama-server serves text models.",
            "Name a text model in source.",
        )
    return (
        "unsupported_architecture",
        f"This llama-server build does not know the model architecture '{name}'; the file itself is fine.",
        f"Use a newer llama.cpp build: set engines.{end.plan.request.engine.name}.binary to it.",
    )


def _cpu_unsupported(end: StartEnd) -> Told | None:
    if end.signal != 4:
        return None
    return (
        "cpu_unsupported",
        "This build needs CPU instructions that this machine lacks: it died of signal 4 (SIGILL).",
        f"Use another llama.cpp build than {end.plan.engine.entry}, for example one made on this machine.",
    )


def _server_missing(end: StartEnd) -> Told | None:
    missing = missing_servers(end.plan, end.lines)
    if not missing:
        return None
    differing = next((server for server in missing if server.version), None)
    if differing is not None:
        engine = end.plan.caps.version or str(end.plan.engine.entry)
        return (
            "rpc_version_mismatch",
            f"The RPC server {differing.endpoint} speaks version {differing.version} of the protocol, and"
            f" this engine ({engine}) another one, so that it would go on without that device.",
            "Run the ggml-rpc-server of the same llama.cpp build as the engine; it is tried again by itself.",
        )
    names = " and ".join(server.endpoint for server in missing)
    return (
        "rpc_lost",
        f"Nothing answers at {names}; the engine would have gone on without that device.",
        "Start the ggml-rpc-server there, or take it out of the pool; it is tried again by itself.",
    )


def _server_silent(end: StartEnd) -> Told | None:
    silent = silent_servers(end.plan, end.lines) if end.outcome == "timeout" else ()
    if not silent:
        return None
    return (
        "rpc_busy",
        f"The RPC server {silent[0]} did not answer in {end.waited_s:.0f} s. Such a server serves one program"
        " at a time, and others wait.",
        "Find out who uses it, or give the pool a server of its own; it is tried again by itself.",
    )


def _server_broke(end: StartEnd) -> Told | None:
    names = endpoints(end.plan)
    if not names or not connection_broke(end.lines[-SEARCH_LINES:]):
        return None
    return (
        "rpc_lost",
        f"The connection to {' or '.join(names)} broke while the model was loaded: the RPC server ended,"
        " or had too little memory to take in what was sent.",
        "Look at what that server printed, and at the memory of its machine; it is tried again by itself.",
    )


def _killed(end: StartEnd) -> Told | None:
    if end.signal == 9:
        return (
            "killed_by_os",
            "The system killed the engine while it loaded the model, most likely for lack of memory."
            f"{_planned_memory(end.plan.fit)}",
            "Use a smaller quantisation or a shorter context, or free memory.",
        )
    if end.signal == 15:
        return (
            "terminated",
            "The engine was stopped from outside before it was ready.",
            "See the log, then reload.",
        )
    return None


def _timeout(end: StartEnd) -> Told | None:
    if end.outcome != "timeout":
        return None
    return (
        "health_timeout",
        f"The engine is alive but was not ready after {end.waited_s:.0f} s.",
        "Raise timeout.load, or use a shorter context or a smaller quantisation.",
    )


def _port(end: StartEnd) -> Told | None:
    if not port_was_taken(end):
        return None
    return (
        "port_conflict",
        "Another program took the port of the engine, again and again.",
        "End the program that grabs loopback ports.",
    )


def _rejected(end: StartEnd) -> Told | None:
    flag = rejected_flag(end)
    if flag is None:
        return None
    said = next(
        (
            line
            for line in end.lines[-TAIL_LINES:]
            if flag in line and ("argument" in line or "error" in line)
        ),
        "",
    )
    hint = next((line for line in end.lines[-TAIL_LINES:] if "has been removed" in line), said).strip()
    theirs = flag in end.plan.request.extra_args
    code = "user_flag_rejected" if theirs else "flag_rejected"
    remedy = (
        f"Change or remove {flag} in engine_args; `paddock engines` lists what this build knows."
        if theirs
        else "Use another llama.cpp build, or report which one this is."
    )
    return code, f"The engine refused the flag {flag}. It said: {hint}", remedy


def _library(end: StartEnd) -> Told | None:
    missing = LIBRARY.search("\n".join(end.lines[-SEARCH_LINES:]))
    if missing is None and end.exit_code not in CANNOT_RUN:
        return None
    what = f"the library {missing.group(1)}" if missing else "the program, its interpreter or a library"
    return (
        "library_missing",
        f"{end.plan.engine.entry} cannot be run: {what} is missing.",
        f"Install what is missing, or name another engine in engines.{end.plan.request.engine.name}.binary.",
    )


def _memory(end: StartEnd) -> Told | None:
    too_large = too_large_tensor(end.lines[-SEARCH_LINES:])
    if too_large is None and not was_short_of_memory(end.text):
        return None
    remedy = "Use a shorter context, fewer slots, a smaller kv_cache type or a smaller quantisation."
    if fit_was_forbidden(end.lines[-SEARCH_LINES:]):
        remedy = (
            f"Remove models.{end.plan.request.id}.placement.gpu_layers: a fixed number of layers keeps the"
            " engine from fitting the model. Or use a shorter context or a smaller quantisation."
        )
    if too_large is not None:
        tensor, device = too_large
        told = f"{device} does not take a buffer as large as {tensor} of this model would be."
        return "out_of_memory", f"{told}{_planned_memory(end.plan.fit)}", remedy
    refused = f"{_refused_memory(end)}{_planned_memory(end.plan.fit)}"
    return "out_of_memory", f"The device had less memory than the model needs.{refused}", remedy


def _refused_memory(end: StartEnd) -> str:
    found = refused_allocation(end.lines[-SEARCH_LINES:])
    if found is None:
        return ""
    purpose = f" for {found.purpose}" if found.purpose else ""
    return f" {size(found.bytes)}{purpose} were refused on {found.device}."


def _needed(fit: FitPlan) -> dict[str, int]:
    return {device: need for device in fit.total_bytes if (need := fit.needed_bytes(device))}


def _planned_memory(fit: FitPlan) -> str:
    """What the plan knew of the devices: of those that were too small, or of all where none was."""
    budget = fit.budget_bytes
    needed = {device: need for device, need in _needed(fit).items() if device in budget}
    full = {device: need for device, need in needed.items() if need > budget[device]}
    parts = [
        f"{size(need)} of {name}, where {size(budget[name])} could be used"
        for name, need in (full or needed).items()
    ]
    return f" Planned were {' and '.join(parts)}." if parts else ""


def _other(end: StartEnd) -> Told:
    errors = [line.strip() for line in end.lines[-SEARCH_LINES:] if "error" in line.lower()]
    said = next((line for line in reversed(errors) if not CLOSING.search(line)), "")
    quoted = f" It said: {said}" if said else ""
    return (
        "start_failed",
        f"The engine ended with {describe_exit(end.exit_code)} before it was ready.{quoted}",
        "Check that the model file is complete and that memory suffices; `paddock logs` shows its output.",
    )


RULES: tuple[Callable[[StartEnd], Told | None], ...] = (
    _unsupported_architecture,
    _cpu_unsupported,
    _server_missing,
    _killed,
    _server_silent,
    _timeout,
    _port,
    _rejected,
    _library,
    _memory,
    _server_broke,
    _other,
)
