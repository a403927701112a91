"""`/embeddings` and `/v1/embeddings` of a decoder and of an encoder."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.nativeserver.conformance.requests import STORY
from tests.support.engine_pair import EnginePair, running_pair
from tests.support.rank_models import write_encoder_ranker

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

INPUTS = [STORY, "short", "日本"]
FLAGS = ("-c", "1024", "-np", "2", "--embeddings")
POOLINGS = ("mean", "cls", "last", "none")


@pytest.fixture(scope="module", params=POOLINGS)
def decoders(
    request: pytest.FixtureRequest,
    engine_binary: Path,
    smollm2: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[EnginePair, str]]:
    """Both with the demo model, and what they make one vector of several by."""
    logs = tmp_path_factory.mktemp("logs")
    with running_pair(engine_binary, smollm2, logs, *FLAGS, "--pooling", request.param) as running:
        yield running, request.param


@pytest.fixture(scope="module")
def encoders(engine_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnginePair]:
    """Both with a small encoder."""
    folder = tmp_path_factory.mktemp("encoder")
    model = write_encoder_ranker(folder / "encoder.gguf")
    with running_pair(engine_binary, model, folder, *FLAGS, "--pooling", "cls") as running:
        yield running


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


def assert_same_vectors(native: list[list[float]], real: list[list[float]]) -> None:
    for ours, theirs in zip(native, real, strict=True):
        assert cosine(ours, theirs) > 0.9999
        assert math.hypot(*ours) == pytest.approx(math.hypot(*theirs), rel=1e-3)


def unpacked(text: str) -> list[float]:
    packed = base64.b64decode(text)
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))


def test_openai_embeddings_are_the_same(decoders: tuple[EnginePair, str]) -> None:
    pair, pooling = decoders
    body = {"input": INPUTS, "model": "m"}
    if pooling == "none":
        real, native = (server.post("/v1/embeddings", body) for server in (pair.real, pair.native))
        assert native.status_code == real.status_code == 400
        assert native.json()["error"]["type"] == real.json()["error"]["type"]
        return
    real, native = pair.post("/v1/embeddings", body)
    assert_same(native, real, apart_from=["data[].embedding"])
    vectors = [[entry["embedding"] for entry in answer["data"]] for answer in (native, real)]
    assert_same_vectors(*vectors)
    real, native = pair.post("/v1/embeddings", {**body, "encoding_format": "base64"})
    assert_same(native, real, apart_from=["data[].embedding"])
    assert_same_vectors(
        [unpacked(entry["embedding"]) for entry in native["data"]],
        [unpacked(entry["embedding"]) for entry in real["data"]],
    )


@pytest.mark.parametrize("norm", [None, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("field", ["input", "content"])
def test_native_embeddings_are_the_same(
    decoders: tuple[EnginePair, str], norm: int | None, field: str
) -> None:
    pair, _ = decoders
    body: dict[str, Any] = {field: INPUTS} if norm is None else {field: INPUTS, "embd_normalize": norm}
    real, native = pair.post("/embeddings", body)
    assert [set(entry) for entry in native] == [set(entry) for entry in real]
    for ours, theirs in zip(native, real, strict=True):
        assert ours["index"] == theirs["index"]
        assert_same_vectors(ours["embedding"], theirs["embedding"])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"input": [5, 9, 1000]}, id="tokens"),
        pytest.param({"input": "one text"}, id="one"),
        pytest.param({"input": [[5, 9], [1000, 42, 7]]}, id="lists-of-tokens"),
    ],
)
def test_every_form_of_input_is_read_the_same(decoders: tuple[EnginePair, str], body: dict[str, Any]) -> None:
    real, native = decoders[0].post("/embedding", body)
    for ours, theirs in zip(native, real, strict=True):
        assert_same_vectors(ours["embedding"], theirs["embedding"])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="no-input"),
        pytest.param({"input": "a", "encoding_format": "hex"}, id="encoding"),
        pytest.param({"input": [""]}, id="empty"),
        pytest.param({"input": [5, 10**9]}, id="unknown-token"),
        pytest.param({"input": "word " * 3000}, id="too-long"),
    ],
)
def test_broken_requests_get_the_same_status(decoders: tuple[EnginePair, str], body: dict[str, Any]) -> None:
    pair, _ = decoders
    real, native = (server.post("/embeddings", body) for server in (pair.real, pair.native))
    assert native.status_code == real.status_code, (native.text, real.text)
    assert set(native.json()["error"]) == set(real.json()["error"])
    assert native.json()["error"]["type"] == real.json()["error"]["type"]


def test_vectors_of_an_encoder_are_the_same(encoders: EnginePair) -> None:
    real, native = encoders.post("/v1/embeddings", {"input": ["the red mill", "a queen of the river, by"]})
    assert_same(native, real, apart_from=["data[].embedding"])
    assert_same_vectors(
        [entry["embedding"] for entry in native["data"]], [entry["embedding"] for entry in real["data"]]
    )
