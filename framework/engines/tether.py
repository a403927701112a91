"""Become another program that dies with the process that started us, or that goes on without it.

Run as a script, by `engines.process_output`, `runtime.child` and `runtime.kept`; they import `tethered` and
`untied` for the command line.

    python -I -S tether.py PARENT_PID|- PROGRAM [ARGUMENT ...]

Asks Linux to send SIGKILL when the parent goes (06 §8.3), then replaces itself by PROGRAM, which keeps the
process id and the request. With `-` for the parent it asks for nothing. A script of its own because the
alternative, code between fork and exec in the manager, can deadlock in a program with threads. Elsewhere than
on Linux it only replaces itself.
"""

from __future__ import annotations

import os
import sys

PR_SET_PDEATHSIG = 1
# The shell's words for "found but not executable" and "not found".
CANNOT_RUN, NOT_FOUND = 126, 127
CANNOT_EXECUTE = "cannot execute "
NOBODY = "-"


def tethered(argv: list[str]) -> list[str]:
    """The command line that runs `argv` tied to this process. To be started from the main thread: the
    kernel's signal follows the thread that forks."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *argv]


def untied(argv: list[str]) -> list[str]:
    """The command line that runs `argv` beyond the end of this process; a program that cannot be run says so
    in the same words and with the same exit codes."""
    return [sys.executable, "-I", "-S", __file__, NOBODY, *argv]


def main(arguments: list[str]) -> None:
    """Tie to the parent where one is named, then exec. Returns never: it execs or exits."""
    parent, program = arguments[0], arguments[1:]
    if parent != NOBODY:
        tie(int(parent))
    try:
        os.execv(program[0], program)
    except OSError as error:
        sys.stderr.write(f"{CANNOT_EXECUTE}{program[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN)


def tie(parent: int) -> None:
    """Die with the parent; at once, where it has gone already."""
    import ctypes
    import signal

    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have gone before the kernel knew of our wish.
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
