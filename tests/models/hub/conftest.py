"""A stand-in hub and sources that use it, with a cache of the test's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from framework.models.hub.process import CLIENT_SETTINGS
from framework.models.hub.sources import HubSources
from framework.models.hub.wire import Job, Note, Patience
from framework.values.reason import Reason, Refused
from framework.values.request import ModelSource
from tests.support.hub_stand_in import HubStandIn
from tests.support.model_files import write_tiny_gguf

# The client reads its settings when it is imported. Inside the tests' own process it must not know the tokens
# and the cache of whoever runs them.
os.environ.update({**CLIENT_SETTINGS, "HF_HOME": "/nonexistent/hub-home"})
from framework.models.hub.download import carry_out

for _name in [name for name in os.environ if name.startswith("HF_")]:
    del os.environ[_name]

REPO = "org/Tiny-GGUF"
PATIENCE = Patience(retry_waits_s=(0.05, 0.05), rate_limit_s=1.0, busy_s=1.0)
KIB = 1024


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    """A running stand-in without repositories."""
    with HubStandIn() as stand_in:
        yield stand_in


@pytest.fixture
def environ(tmp_path: Path, hub: HubStandIn) -> dict[str, str]:
    """An environment whose hub is the stand-in and whose cache is empty."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_ENDPOINT": hub.url,
        "NO_PROXY": "*",
    }


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The cache of `environ`; made by the first download."""
    return tmp_path / "hf" / "hub"


@pytest.fixture
def sources(environ: dict[str, str]) -> HubSources:
    """Sources with little patience."""
    return HubSources(environ, patience=PATIENCE)


def gguf_bytes(tmp_path: Path, *, name: str = "Tiny", padding: int = 0) -> bytes:
    """A valid small GGUF; `padding` bytes at its end make it as large as a test wants."""
    data = write_tiny_gguf(tmp_path / "made" / f"{name}.gguf", name=name).read_bytes()
    return data + bytes(range(256)) * (padding // 256)


def variant(name: str, repo: str = REPO) -> ModelSource:
    """`hf:REPO:NAME`."""
    return ModelSource(repo=repo, variant=name)


class Client:
    """The work of a download process, done in the test: the real client, without the start of a process."""

    def __init__(self, hub: HubStandIn, cache: Path) -> None:
        self.hub = hub
        self.cache = cache
        self.notes: list[Note] = []

    def job(self, work: Any = "fetch", **fields: Any) -> Job:
        """A job for `REPO`."""
        return Job(work, **{"repo": REPO, "cache_dir": str(self.cache), "patience": PATIENCE, **fields})

    def do(self, work: Any = "fetch", **fields: Any) -> Mapping[str, Any]:
        """The answer. Raises Refused."""
        return carry_out(self.job(work, **fields), self.hub.url, self.notes.append)

    def refused(self, work: Any = "fetch", **fields: Any) -> tuple[Reason, bool]:
        """The reason of the refusal, and whether it may pass."""
        with pytest.raises(Refused) as caught:
            self.do(work, **fields)
        return caught.value.failure.reason, caught.value.failure.retryable

    @property
    def unfinished(self) -> list[Path]:
        """Files of downloads that are not complete."""
        return sorted(self.cache.rglob("*.incomplete"))


@pytest.fixture
def client(hub: HubStandIn, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """See `Client`."""
    monkeypatch.setenv("NO_PROXY", "*")
    return Client(hub, cache)
