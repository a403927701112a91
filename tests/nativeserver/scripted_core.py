"""A core that loads, fails and ends as a test says, for what no real model does on demand.

Run as a program it is `paddock-native-server` over that core; the script comes by `SCRIPT`, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.nativeserver.drafting import engine_params, speculation

SCRIPT = "PADDOCK_TEST_CORE"


class LoadError(RuntimeError):
    """As of the core."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ScriptedEngine:
    """`load_s`: seconds of loading; `loads_until`: a file it waits for; `deaf`: nothing ends that early;
    `error`: code and text of its end. `fails_after_s`: the device is lost so long after the start; `ends_s`:
    seconds that the end takes."""

    def __init__(self, script: dict[str, Any]) -> None:
        self._script = script
        self._state = "fresh"
        self._stopping = threading.Event()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK)

    def load(self) -> None:
        self._state = "loading"
        load_s = self._script.get("load_s", 0.0)
        while "loads_until" in self._script and not Path(self._script["loads_until"]).exists():
            time.sleep(0.02)
        if self._script.get("deaf"):
            time.sleep(load_s)
        elif self._stopping.wait(load_s):
            raise LoadError("cancelled", "the server is shutting down")
        if "error" in self._script:
            self._state = "failed"
            raise LoadError(*self._script["error"])

    def start(self) -> None:
        self._state = "ready"
        if "fails_after_s" in self._script:
            threading.Timer(self._script["fails_after_s"], self._fail).start()

    def _fail(self) -> None:
        self._state = "failed"

    def state(self) -> str:
        return self._state

    def shutdown(self, timeout_ms: int) -> bool:
        self._stopping.set()
        ends_s = self._script.get("ends_s", 0.0)
        time.sleep(min(ends_s, timeout_ms / 1000))
        return bool(ends_s * 1000 <= timeout_ms)

    def meta(self) -> Any:
        return SimpleNamespace(chat_template=self._script.get("template", ""), bos_text="", eos_text="")

    def speculation(self) -> Any:
        return speculation()

    def notify_fd(self) -> int:
        return self._fd

    def poll(self, most: int, wait: bool) -> list[Any]:
        return []


def scripted_core(script: dict[str, Any]) -> Any:
    """The module. Raises ImportError where the script has `missing`."""
    if "missing" in script:
        raise ImportError(script["missing"])
    return SimpleNamespace(
        LoadError=LoadError,
        EngineParams=engine_params,
        LoraParams=lambda path, scale: (path, scale),
        Engine=lambda params: ScriptedEngine(script),
        set_log_verbosity=lambda verbosity: None,
        list_devices=lambda: [
            SimpleNamespace(
                name="Vulkan0", description="A card, (big)", total_bytes=3 << 30, free_bytes=2 << 30
            )
        ],
    )


def main() -> int:
    """One run."""
    from framework.nativeserver.process import run

    script = json.loads(os.environ.get(SCRIPT, "{}"))
    return run(sys.argv[1:], os.environ, core=lambda: scripted_core(script))


if __name__ == "__main__":
    sys.exit(main())
