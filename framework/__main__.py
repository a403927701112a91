"""`python -m framework` is `paddock`, and so is the console script.

Sees to what must hold before the rest is imported, which takes up to seconds: an interrupt that ends the
process without a trace, a SIGHUP that does not end `up`, and standard streams that are open.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time

from framework.values.process import INTERRUPTED

# Long enough that the place where nothing can be raised is left, on a busy machine too.
AGAIN_S = 0.2


def main() -> None:
    """Run one command line and end the process with its exit code."""
    # Not an exception: it could come up anywhere in an import, and not every module lets it pass.
    signal.signal(signal.SIGINT, _leave)
    arguments = sys.argv[1:]
    if arguments[:1] == ["up"]:
        # A handler, since what is ignored would stay ignored in engines. Nothing is lost: the manifest is
        # read after this, and looked at again as soon as `up` listens for the signal itself.
        signal.signal(signal.SIGHUP, _stay)

    from framework import standard_streams

    standard_streams.prepare()
    from framework.cli import import_command, run

    import_command(arguments)
    sys.unraisablehook = interrupt_again
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    # What is left is the end of the process, which needs no interruption.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    standard_streams.flush()
    sys.exit(code)


def interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """An interrupt that came where nothing can be raised (a finaliser, a callback of a weakref) comes again.

    Python would print and forget it: the command would go on as if nobody had pressed Ctrl-C.
    """
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    # Unlike threading's, this one is not waited for: an interrupt in here would be lost like the first.
    _thread.start_new_thread(_interrupt_main, ())


def _interrupt_main() -> None:
    time.sleep(AGAIN_S)
    main_thread = threading.main_thread().ident
    if main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)


def _leave(_signal: int, _frame: object) -> None:
    os._exit(INTERRUPTED)


def _stay(_signal: int, _frame: object) -> None:
    """Do nothing."""


if __name__ == "__main__":
    main()
