"""How a start ended, and the lines that may say why (06 §9, §12.4). Values and reading only.

Made by runtime.ladder; read by runtime.start_signs, runtime.rungs and runtime.failures. Lines of an engine
are hostile text: what quotes a model file is left out of every search, and everything shown is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Literal

from framework.values.plain_text import brief
from framework.values.plan import LaunchPlan

Outcome = Literal["exited", "timeout", "port_taken", "incomplete", "decode_failed"]
"""`incomplete`: it got ready without a device that it was to use, and was ended; `decode_failed`: it got
ready, could not generate, and was ended."""
Told = tuple[str, str, str]
"""Failure class, sentence, remedy."""
TAIL_LINES = 50
# Debugger backtraces of an abort push the cause out of the last lines (15 §7): they do not count here.
SEARCH_LINES = 400
BACKTRACE = re.compile(
    r"^(?:#\d+ |\[New |\[Thread |\[Current thread|\[Inferior|Using host libthread_db|warning: |Thread \d+ "
    r"|0x[0-9a-f]{4,16} in |\d+\s+(?:in )?\.\./|\S{1,300}\([\w.+]{0,300}\) ?\[0x[0-9a-f]{4,16}\]$)"
)
# Of this level are names and texts of the model file, and no fault. Some builds write no level, and some warn
# with texts of tokens.
INFORMATION = re.compile(
    r"^(?:\d[\d.]* I |(?:\d[\d.]* [A-Z] )?(?:llama_model_loader: - |print_info: |llm_load_print_meta: "
    r"|(?:load|llm_load_vocab): (?:control|special)\b))"
)
# The name of a model stands on lines of its own choice, up to the next one of the same table.
MODEL_NAME = re.compile(r"(?:\d[\d.]* [A-Z] )?print_info: general\.name")
MODEL_TABLE = re.compile(r"(?:\d[\d.]* [A-Z] )?print_info: ")
# What a line quotes is a path, or a text of the model file that may hold quotes itself.
QUOTED = re.compile(r"(?<!\w)'.*'")
# What a file says it is ends in a quote too. No build goes on behind it, but the text may have lines.
UNKNOWN_ARCHITECTURE = "unknown model architecture: '"
# With this every build begins to say something of a model file, after its command line was read.
LOADING = "llama_model_load"
# A program that ends itself says where: file and line of its source.
ABORT = re.compile(r"^(?:[A-Za-z]:)?[^:]{1,300}\.\w{1,4}:\d{1,6}: ")
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
LONGEST_NAME = 100


@dataclass(frozen=True)
class StartEnd:
    """How a start ended: what was waited for, the exit code, the output (redacted, oldest first)."""

    outcome: Outcome
    exit_code: int | None
    lines: Sequence[str]
    plan: LaunchPlan
    """As it was attempted: what earlier attempts changed is in it."""
    log_path: str
    waited_s: float
    was_healthy: bool = False
    """It answered the health check before."""
    before_text_only: StartEnd | None = None
    """The end for which the projector was left out of this start."""
    port_holder: str = ""
    """Who has the port that was taken, as far as that can be seen."""

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
    def is_hard(self) -> bool:
        """Whether the program itself broke."""
        return is_hard_fault(self.exit_code, via_wrapper=self.plan.engine.via_wrapper)

    @cached_property
    def whole(self) -> tuple[str, ...]:
        """The lines that can hold the cause: no backtraces, and nothing that only informs."""
        useful = [line for line in _without_names(self.lines) if not BACKTRACE.match(line)]
        last = next((n for n, line in enumerate(useful, 1) if UNKNOWN_ARCHITECTURE in line), len(useful))
        return tuple(useful[:last][-SEARCH_LINES:])

    @cached_property
    def told(self) -> tuple[str, ...]:
        """The same lines without what they quote, for every search."""
        cut = (line.partition(UNKNOWN_ARCHITECTURE) for line in self.whole)
        return tuple(QUOTED.sub("''", before + mark) for before, mark, _ in cut)

    @property
    def unknown_architecture(self) -> str | None:
        """The architecture, of the model or of its drafter, that the build does not know."""
        line = next((line for line in self.whole if UNKNOWN_ARCHITECTURE in line), None)
        if line is None:
            return None
        name = line.partition(UNKNOWN_ARCHITECTURE)[2]
        return brief(name.rpartition("'")[0] if "'" in name else name, LONGEST_NAME)

    @cached_property
    def told_of_line(self) -> tuple[str, ...]:
        """What it said of its command line and environment, before it had looked at any model file."""
        before = takewhile(lambda line: LOADING not in line, self.lines)
        useful = [line for line in before if not INFORMATION.match(line)]
        return tuple(useful[-SEARCH_LINES:])

    @cached_property
    def told_of_abort(self) -> str:
        """What it said, in lower case, when it ended itself: the place in its source, and the backtrace."""
        return "\n".join(line for line in self.lines if ABORT.match(line) or BACKTRACE.match(line)).lower()

    @cached_property
    def text(self) -> str:
        """The lines that can hold the cause, in lower case."""
        return "\n".join(self.told).lower()

    @property
    def tail(self) -> str:
        """The last lines as they are shown to a person."""
        return "\n".join(self.lines[-TAIL_LINES:])

    def says(self, *words: str) -> bool:
        """Whether any of the words, in lower case, is in a line that can hold the cause."""
        return any(word in self.text for word in words)

    def line_with(self, *words: str) -> str:
        """The first line with the first of the words that any line has; empty when none has one."""
        for word in words:
            for line, whole in self.pairs:
                if word in line.lower():
                    return brief(whole)
        return ""

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each line without what it quotes, and as it is."""
        return zip(self.told, self.whole, strict=True)


def _without_names(lines: Sequence[str]) -> Iterator[str]:
    """What is said besides facts of the model file."""
    is_name = False
    for line in lines:
        is_name = MODEL_NAME.match(line) is not None or (is_name and MODEL_TABLE.match(line) is None)
        if not is_name and not INFORMATION.match(line):
            yield line


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
        return "an unknown exit code, which is told only to the process that started it"
    if exit_code < 0:
        return f"signal {-exit_code} ({SIGNAL_NAMES.get(-exit_code, 'unnamed')})"
    return f"exit code {exit_code}"
