"""`python -m framework.nativeserver` is `paddock-native-server`."""

from __future__ import annotations

import gc
import os
import signal
import sys

from framework import standard_streams


def main() -> None:
    """Run one command line and end the process with its exit status."""
    # Imports make no garbage, and looking for some takes a tenth of their time; serving switches it on again.
    gc.disable()
    # Until the server takes signals itself there is nothing to end in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    standard_streams.prepare()
    from framework.nativeserver.process import run

    code = run(sys.argv[1:], os.environ)
    standard_streams.flush()
    sys.exit(code)


def _leave(_signal: int, _frame: object) -> None:
    os._exit(0)


if __name__ == "__main__":
    main()
