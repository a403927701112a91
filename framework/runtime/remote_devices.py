"""What an engine says of remote devices that it could not use (06 §14, B.11 of the situations). Pure.

An engine that cannot reach a server goes on without its devices, as if nobody had asked for them, so a start
that ends well has to be looked at too. Called by runtime.ladder and runtime.failures. Only lines in the
engine's own form are believed, and only of servers that stand on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from framework.engines.args import RPC_FLAG, RPC_VARIABLE
from framework.values.plan import LaunchPlan

# Time and level may be missing. Nothing may follow: names and texts from model files stand in other forms.
CONNECT_FAILED = re.compile(r"(?:\d[\d.]* [A-Z] )?Failed to connect to (\S{1,261})")
VERSION_DIFFERS = re.compile(r"(?:\d[\d.]* [A-Z] )?RPC server version mismatch: (\d{1,4}\.\d{1,4}\.\d{1,4})")
# The abort writes past the engine's log, whose own next line may have begun already: time, perhaps level.
BROKEN = re.compile(
    r"(?:\d[\d.]* (?:[A-Z] )?)?\S{1,300}: Remote RPC server crashed or returned malformed response"
)


@dataclass(frozen=True)
class Missing:
    """A server that the engine went on without. `version` is its protocol, where that was the cause."""

    endpoint: str
    version: str = ""


def endpoints(plan: LaunchPlan) -> tuple[str, ...]:
    """`host:port` of the servers that a launch uses, those of the user's own flags included."""
    argv = plan.argv
    flags = [argv[place + 1] for place, token in enumerate(argv[:-1]) if token == RPC_FLAG]
    variable = plan.env.get(RPC_VARIABLE, "")
    names = (part.strip() for value in (*flags, variable) for part in value.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def missing_servers(plan: LaunchPlan, lines: Sequence[str]) -> tuple[Missing, ...]:
    """Servers of the launch that the engine could not connect to, in the order in which it said so."""
    wanted, found, version = set(endpoints(plan)), dict[str, Missing](), ""
    if not wanted:
        return ()
    for line in lines:
        if differs := VERSION_DIFFERS.fullmatch(line):
            version = differs[1]
        elif failed := CONNECT_FAILED.fullmatch(line):
            if failed[1] in wanted:
                found.setdefault(failed[1], Missing(failed[1], version))
            version = ""
    return tuple(found.values())


def silent_servers(plan: LaunchPlan, lines: Sequence[str]) -> tuple[str, ...]:
    """Servers that no line speaks of: the engine names each as soon as it has answered."""
    return tuple(name for name in endpoints(plan) if not any(name in line for line in lines))


def connection_broke(lines: Sequence[str]) -> bool:
    """Whether a server was lost after the engine had reached it."""
    return any(BROKEN.fullmatch(line) for line in lines)
