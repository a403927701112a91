"""What holds for every process of ours, whichever command it runs."""

from __future__ import annotations

DEBUG_VARIABLE = "PADDOCK_DEBUG"
"""Set to anything but nothing: traces of our own faults, and log lines of every detail."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells give it: 128 and the number of SIGINT."""
