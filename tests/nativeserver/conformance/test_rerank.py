"""`/rerank` on models that rank: a decoder with a template for it, and an encoder."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.support.engine_pair import EnginePair, running_pair
from tests.support.rank_models import write_decoder_ranker, write_encoder_ranker

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

QUERY = "colour of the mill"
DOCUMENTS = ["the mill by the river", "a red mill", "green", "the king and the queen, 1 2 3.", "{query}"]
WRITERS = {"decoder": write_decoder_ranker, "encoder": write_encoder_ranker}


@pytest.fixture(scope="module", params=WRITERS)
def rankers(
    request: pytest.FixtureRequest, engine_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EnginePair]:
    """Both, with a model that ranks."""
    folder = tmp_path_factory.mktemp(request.param)
    model = WRITERS[request.param](folder / "ranker.gguf")
    with running_pair(engine_binary, model, folder, "-c", "1024", "-np", "2", "--reranking") as running:
        yield running


def scores(answer: Any) -> dict[int, float]:
    """By the index of the document."""
    entries = answer["results"] if isinstance(answer, dict) else answer
    return {
        entry["index"]: entry["relevance_score" if "relevance_score" in entry else "score"]
        for entry in entries
    }


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/reranking", "/v1/reranking"])
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"documents": DOCUMENTS}, id="documents"),
        pytest.param({"documents": DOCUMENTS, "top_n": 2}, id="best"),
        pytest.param({"documents": DOCUMENTS, "top_n": 99}, id="more-than-there-are"),
        pytest.param({"documents": DOCUMENTS, "return_text": True, "model": "x"}, id="documents-with-text"),
        pytest.param({"texts": DOCUMENTS}, id="texts"),
        pytest.param({"texts": DOCUMENTS, "top_n": 3, "return_text": True}, id="texts-with-text"),
        pytest.param({"documents": ["red"]}, id="one"),
    ],
)
def test_a_ranking_is_the_same(rankers: EnginePair, path: str, fields: dict[str, Any]) -> None:
    real, native = rankers.post(path, {"query": QUERY, **fields})
    assert_same(native, real)
    assert list(scores(native)) == list(scores(real))
    assert scores(native) == pytest.approx(scores(real), rel=1e-3)


def test_the_scores_depend_on_the_texts(rankers: EnginePair) -> None:
    _, native = rankers.post("/rerank", {"query": QUERY, "documents": DOCUMENTS})
    found = sorted(scores(native).values())
    gaps = [high - low for low, high in itertools.pairwise(found)]
    assert min(gaps) > 1e-3
    _, native = rankers.post("/rerank", {"query": "king", "documents": DOCUMENTS})
    assert scores(native) != pytest.approx(dict(enumerate(found)), rel=1e-3)


def test_documents_without_words_are_ranked_the_same(rankers: EnginePair) -> None:
    real, native = rankers.post("/rerank", {"query": "", "documents": ["", "red", " "]})
    assert_same(native, real)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"documents": ["a"]}, id="no-query"),
        pytest.param({"query": 5, "documents": ["a"]}, id="query-a-number"),
        pytest.param({"query": "a"}, id="no-documents"),
        pytest.param({"query": "a", "documents": []}, id="empty"),
        pytest.param({"query": "a", "texts": []}, id="empty-texts"),
        pytest.param({"query": "a", "documents": "b"}, id="a-text"),
        pytest.param({"query": "a", "documents": {"text": "b"}}, id="an-object"),
        pytest.param({"query": "a", "documents": ["word " * 2000]}, id="too-long"),
    ],
)
def test_broken_requests_get_the_same_status(rankers: EnginePair, body: dict[str, Any]) -> None:
    real, native = (server.post("/rerank", body) for server in (rankers.real, rankers.native))
    assert native.status_code == real.status_code, (native.text, real.text)
    assert set(native.json()["error"]) == set(real.json()["error"])
    assert native.json()["error"]["type"] == real.json()["error"]["type"]


# A decoder generates beside ranking; what this one writes is noise.
@pytest.mark.parametrize("rankers", ["encoder"], indirect=True)
def test_nothing_is_generated(rankers: EnginePair) -> None:
    for path, body in (
        ("/completion", {"prompt": "a"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    ):
        real, native = (server.post(path, body) for server in (rankers.real, rankers.native))
        assert native.status_code == real.status_code >= 400, (path, native.text, real.text)
