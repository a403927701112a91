"""Flags of the group "log": which lines appear, and how."""

from __future__ import annotations

from framework.nativeserver.flags.flag import Flag, switch, valued
from framework.nativeserver.flags.server import FILE
from framework.nativeserver.flags.values import on_off_auto, whole

EVERYTHING = 5
LEVELS = """lines up to this level are shown:
- 0: none
- 1: error
- 2: warning
- 3: info
- 4: trace (more info)
- 5: debug"""

FLAGS: tuple[Flag, ...] = (
    valued(
        "-lv --verbosity --log-verbosity",
        "server.verbosity",
        whole(0, 100),
        LEVELS,
        default="3",
        env="LOG_VERBOSITY",
    ),
    switch("-v --verbose --log-verbose", "server.verbosity", "show every line", constant=EVERYTHING),
    valued("--log-file", "log.file", FILE, "file that gets every line too", env="LOG_FILE"),
    switch(
        "--log-prefix",
        "log.prefix",
        "begin lines with level and source",
        off="--no-log-prefix",
        default="enabled",
        env="LOG_PREFIX",
    ),
    switch(
        "--log-timestamps",
        "log.timestamps",
        "begin lines with the time since the start",
        off="--no-log-timestamps",
        default="enabled",
        env="LOG_TIMESTAMPS",
    ),
    valued(
        "--log-colors",
        "log.colors",
        on_off_auto("on", "off", "auto"),
        "colours; auto has them on a terminal",
        default="auto",
        env="LOG_COLORS",
    ),
    switch(
        "--log-jsonl",
        "log.jsonl",
        "one JSON object for each line",
        off="--no-log-jsonl",
        default="disabled",
        env="LOG_JSONL",
    ),
    switch("--log-disable", "log.disabled", "no lines at all"),
)
