"""`/infill` on a model that has tokens for it. The prompts tell how it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nativeserver.conformance.comparing import assert_same
from tests.nativeserver.conformance.requests import greedy
from tests.support.engine_pair import EnginePair, running_pair
from tests.support.working_models import write_working_model

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

PREFIX, SUFFIX = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"
EXTRA = [{"text": "import os\n", "filename": "one.py"}, {"text": "x = 1\n", "filename": "two.py"}]
# Text alone: llama-server answers 500 for bytes that are no UTF-8, and those are what noise says.
LETTERS = "root ::= [a-z ]*"
FLAGS = ("-c", "1024", "-np", "1", "-b", "256")


@pytest.fixture(scope="module", params=[False, True], ids=["prefix-first", "suffix-first"])
def fillers(
    request: pytest.FixtureRequest, engine_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EnginePair]:
    """Both, with a model that fills in."""
    folder = tmp_path_factory.mktemp("infill")
    model = write_working_model(folder / "filler.gguf", fills_in=True)
    order = ("--spm-infill",) if request.param else ()
    with running_pair(engine_binary, model, folder, *FLAGS, *order) as running:
        yield running


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="plain"),
        pytest.param({"prompt": "a +"}, id="begun"),
        pytest.param({"input_extra": EXTRA}, id="other-files"),
        pytest.param({"input_extra": [{"text": "no name"}]}, id="file-without-a-name"),
        pytest.param({"input_prefix": "x" * 700}, id="long-prefix"),
        pytest.param({"input_suffix": "x" * 700}, id="long-suffix"),
        pytest.param({"input_prefix": "", "input_suffix": ""}, id="nothing-around"),
    ],
)
def test_a_gap_is_filled_the_same(fillers: EnginePair, fields: dict[str, Any]) -> None:
    body = greedy(
        **{"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 12, "grammar": LETTERS, **fields}
    )
    real, native = fillers.post("/infill", {**body, "return_tokens": True})
    assert_same(native, real, apart_from=["generation_settings.reasoning_format"])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"input_suffix": "b"}, id="no-prefix"),
        pytest.param({"input_prefix": "a"}, id="no-suffix"),
        pytest.param({"input_prefix": "a", "input_suffix": "b", "input_extra": {}}, id="files-no-list"),
        pytest.param({"input_prefix": "a", "input_suffix": "b", "input_extra": [{}]}, id="file-without-text"),
    ],
)
def test_broken_requests_are_refused(fillers: EnginePair, body: dict[str, Any]) -> None:
    real, native = (server.post("/infill", body) for server in (fillers.real, fillers.native))
    assert real.status_code in (400, 500)
    assert native.status_code == 400
    assert native.json()["error"]["type"] == "invalid_request_error"
    assert set(native.json()["error"]) == set(real.json()["error"])
