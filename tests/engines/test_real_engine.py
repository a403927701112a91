"""A generated line against the real engine's own parser (15 §1)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.engines.child_env import child_environment, spawn_environment
from framework.engines.command_line import LineInputs, build_sections, fill_line
from framework.engines.discovery import find_binary
from framework.engines.library_path import library_path
from framework.engines.probe import probe
from framework.engines.process_output import ProcessOutput, process_output
from framework.values.engine import EngineRef
from framework.values.request import ModelRequest
from tests.engines.requests import a_request

pytestmark = pytest.mark.engine

EVERYTHING: dict[str, Any] = {
    "n_ctx": 2048,
    "batch": 256,
    "ubatch": 128,
    "threads": 2,
    "cache_type": ("q8_0", "q4_0"),
    "template_kwargs": {"enable_thinking": False},
    "swa_full": True,
}
LINE: dict[str, Any] = {"spec_block": ("--spec-type", "ngram-mod", "--spec-ngram-mod-n-max", "64")}
# The parser is done with the line when the engine looks for the file.
TRIES = 8
PARSED = "failed to load model, '/no/such/model.gguf'"
REFUSED = "invalid argument: --nonsense"


async def start(request: ModelRequest, port: int, **line: Any) -> ProcessOutput:
    """Run the line that is made for a model file that does not exist."""
    binary = find_binary(EngineRef(), os.environ)
    caps = await probe(binary, os.environ)
    inputs = LineInputs(
        request, caps, binary.entry, Path("/no/such/model.gguf"), slots=4, context=request.n_ctx
    )
    inputs = replace(inputs, cache_types=request.cache_type, **line)
    sections = build_sections(inputs)
    env = child_environment(request, os.environ, library_path(binary, os.environ), sections)
    argv = fill_line(sections, port=port, template_path=line.get("template"))
    # On a busy machine this build now and then ends before its log thread has written everything.
    for _ in range(TRIES):
        output = await process_output(argv, spawn_environment(env, api_key="k", mark="m"), timeout_s=30)
        if PARSED in output.stderr or REFUSED in output.stderr:
            break
    return output


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        pytest.param({}, {}, id="plain"),
        pytest.param(EVERYTHING, LINE, id="everything"),
        pytest.param({"memory_mode": "manual"}, {}, id="manual, fitted"),
        pytest.param(
            {"memory_mode": "manual", "gpu_layers": 3, "tensor_split": (3.0, 1.0)},
            {"cpu_moe": 2},
            id="manual, fixed",
        ),
        pytest.param({"n_ctx": 512}, {"cpu_only": True}, id="host memory only"),
        pytest.param({"extra_args": ("-t", "1", "--no-warmup")}, {}, id="extras"),
    ],
)
async def test_a_line_is_accepted(free_port: int, fields: dict[str, Any], line: dict[str, Any]) -> None:
    output = await start(a_request(**fields), free_port, **line)
    assert output.exit_code == 1
    assert PARSED in output.stderr, output.stderr


async def test_a_wrong_line_is_not(free_port: int) -> None:
    output = await start(a_request(extra_args=("--nonsense",)), free_port)
    assert REFUSED in output.stderr
    assert PARSED not in output.stderr


async def test_adapters_are_split_as_they_were_joined(free_port: int, tmp_path: Path) -> None:
    adapters = ((tmp_path / "a,b.gguf", 0.5), (tmp_path / "c.gguf", 1.0))
    output = await start(a_request(adapters=adapters), free_port)
    assert PARSED in output.stderr, output.stderr
