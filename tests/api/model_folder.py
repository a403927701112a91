"""A folder of model files of every kind, good and bad, and what looks around in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from framework.api.answers import DevicesAnswer
from framework.api.model_files import ModelFiles
from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.models.hub.facts import ResolvedSource
from framework.reconcile.current import CurrentManifest
from framework.values.manifest import Manifest
from framework.values.request import ModelRequest, ModelSource
from tests.api import samples
from tests.models.gguf_bytes import BOOL, STRING, U16, U32, Tensor, gguf, llama, pair
from tests.support.model_files import write_tiny_gguf

NO_DEVICES = DevicesAnswer()
MARKUP = '<img src=x onerror="alert(1)">'


def fill(folder: Path) -> Path:
    """Write `models` below `folder`; the folder of the manifest comes back."""
    models = folder / "models"
    write_tiny_gguf(models / "tiny-F32.gguf")
    (models / "broken.gguf").write_bytes(b"hello")
    (models / "markup <b>.gguf").write_bytes(hostile())
    (models / "big-00001-of-00003.gguf").write_bytes(llama())
    (models / "mmproj-tiny.gguf").write_bytes(
        gguf(
            pair("general.architecture", STRING, "clip"),
            pair("clip.has_vision_encoder", BOOL, 1),
            pair("clip.vision.projection_dim", U32, 64),
        )
    )
    (models / "org").mkdir()
    for index in (1, 2):
        part = gguf(
            pair("general.architecture", STRING, "llama"),
            pair("split.no", U16, index - 1),
            pair("split.count", U16, 2),
            tensors=(Tensor(f"w{index}", dims=(4, 8)),),
            data=128,
        )
        (models / "org" / f"set-0000{index}-of-00002.gguf").write_bytes(part)
    return folder


def hostile() -> bytes:
    """A model whose every text is markup."""
    return gguf(
        pair("general.architecture", STRING, "<script>"),
        pair("general.name", STRING, f"{MARKUP}\u202e"),
        pair("general.size_label", STRING, MARKUP),
        pair("tokenizer.ggml.model", STRING, MARKUP),
        pair("tokenizer.chat_template", STRING, f"{MARKUP}{{% if tools %}}"),
        tensors=(Tensor(MARKUP, dims=(4, 8)),),
        data=128,
    )


def model_files(
    folder: Path,
    *requests: ModelRequest,
    devices: DevicesAnswer = NO_DEVICES,
    fetched: Callable[[ModelSource], ResolvedSource | None] = lambda _source: None,
    **limits: Any,
) -> ModelFiles:
    """The files around a manifest in `folder` that declares `requests`."""
    path = folder / "serve.toml"
    models = {request.id: request for request in requests}
    current = CurrentManifest(Manifest(path, "a" * 64, (path,), models=models), samples.NOON)
    return ModelFiles(current, fetched, FactsReader(HeaderCache()), lambda: devices, **limits)
