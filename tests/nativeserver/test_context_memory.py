"""A context is refused when no memory of the machine could hold it, and told when what is free can't."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from framework.nativeserver import context_memory
from framework.nativeserver.context_memory import cache_bytes, check_context
from framework.nativeserver.load_failed import LoadFailed
from tests.nativeserver import drafting
from tests.support.model_files import write_tiny_gguf
from tests.support.sized_models import write_large_model

GIB = 2**30
TOKENS_OF_A_GIB = 8192
READ_UNUSED_BYTES = context_memory.unused_bytes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_model(tmp_path_factory.mktemp("model") / "large.gguf")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 GiB, of which 4 are free, 1 of them unused."""
    monkeypatch.setattr(context_memory, "unused_bytes", lambda: GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=7 * GIB, available=4 * GIB))
    monkeypatch.setattr(psutil, "swap_memory", lambda: SimpleNamespace(total=GIB, free=0))


def params(model: Path, gib: float, **fields: Any) -> SimpleNamespace:
    wanted = drafting.engine_params()
    wanted.model_path, wanted.n_ctx = str(model), int(gib * TOKENS_OF_A_GIB)
    for name, value in fields.items():
        setattr(wanted, name, value)
    return wanted


def module(free_gib: int = 0) -> SimpleNamespace:
    """A core with one device."""
    device = SimpleNamespace(total_bytes=free_gib * GIB, free_bytes=free_gib * GIB)
    return SimpleNamespace(list_devices=lambda: [device] if free_gib else [])


def test_a_cache_has_the_size_of_its_types(model: Path) -> None:
    assert cache_bytes(params(model, 2)) == 2 * GIB
    assert cache_bytes(params(model, 2, cache_type_k="f32", cache_type_v="f32")) == 4 * GIB


def test_unused_memory_is_part_of_what_the_machine_has() -> None:
    has_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < READ_UNUSED_BYTES() < has_bytes


def test_what_fits_is_not_spoken_of(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    check_context(params(model, 4), module())
    assert caplog.text == ""


def test_what_is_not_free_is_told_and_tried(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_context(params(model, 8), module())
    assert "takes 8 GiB, which is more than is free" in caplog.text
    assert f"make --ctx-size smaller: {4 * TOKENS_OF_A_GIB} would" in caplog.text


def test_what_no_memory_holds_is_refused_with_both_sizes(model: Path) -> None:
    with pytest.raises(LoadFailed) as caught:
        check_context(params(model, 9), module())
    assert caught.value.code == "context"
    assert "takes 9 GiB, and this machine has 8 GiB of memory" in str(caught.value)


def test_devices_count_where_the_cache_may_lie_on_them(model: Path) -> None:
    check_context(params(model, 9), module(free_gib=8))
    for elsewhere in ({"n_gpu_layers": 0}, {"devices": ["none"]}, {"offload_kqv": False}):
        with pytest.raises(LoadFailed):
            check_context(params(model, 9, **elsewhere), module(free_gib=8))


@pytest.mark.parametrize("unknown", [{"n_ctx": 0}, {"metadata_overrides": [("a", "int", "1")]}])
def test_what_cannot_be_known_is_left_to_the_engine(model: Path, unknown: dict[str, Any]) -> None:
    check_context(params(model, 9000, **unknown), module())


def test_a_model_nobody_has_measured_is_left_to_the_engine(tmp_path: Path) -> None:
    file = write_tiny_gguf(tmp_path / "new.gguf", architecture="nobody")
    check_context(params(file, 9000), module())
    file.write_bytes(b"GGUF")
    check_context(params(file, 9000), module())
