"""The manager runs the native engine by the same path as any llama-server (06 §2.8, 12 §1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.clients import chat, model_table, openai_client
from tests.support.paddock import RunningPaddock, start_paddock
from tests.support.scrapes import Samples, samples, scrape

pytestmark = [pytest.mark.engine, pytest.mark.timeout(240)]

POLICY = """[engines.own]
kind = "native"
[speculation.adapts]
mode = "ngram"
controller = "fringe"
ngram = { match = 4, min = 2, max = 8 }
loop_guard = { mode = "stop" }
"""
SMALL = {"batch": {"logical": 64, "physical": 64}}


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Iterator[RunningPaddock]:
    """One manager with one model of the native engine."""
    folder = tmp_path_factory.mktemp("native")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PADDOCK_STATE_DIR": str(folder / "state"),
    }
    tables = POLICY + model_table("m", smollm2, engine="own", context=2048, speculation="adapts", **SMALL)
    paddock = start_paddock(folder, tables, environment)
    paddock.wait_state("m", "ready")
    yield paddock
    paddock.close()
    assert paddock.survivors() == []


def test_its_model_answers_the_official_client(managed: RunningPaddock) -> None:
    with openai_client(managed) as client:
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Say hello."}], max_tokens=12, temperature=0
        )
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 12


def test_a_stream_ends_with_its_usage(managed: RunningPaddock) -> None:
    with openai_client(managed) as client:
        chunks = list(
            client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "Count to five."}],
                max_tokens=16,
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    assert chunks[-1].usage is not None
    assert any(chunk.choices and chunk.choices[0].delta.content for chunk in chunks)


def test_the_status_names_the_engine_and_its_slots(managed: RunningPaddock) -> None:
    shown = managed.model("m")["instances"][0]
    assert shown["state"] == "ready"
    assert shown["slots"]
    assert any("paddock-native-server" in part for part in psutil.Process(shown["pid"]).cmdline())


def test_a_reload_moves_to_a_new_process(managed: RunningPaddock) -> None:
    before = managed.model("m")["instances"][0]["pid"]
    managed.command("reload", "m")
    managed.wait_state("m", "ready")
    assert chat(managed, "m", max_tokens=4).status_code == httpx.codes.OK
    assert managed.model("m")["instances"][0]["pid"] != before


def test_it_drafts_as_the_policy_says(managed: RunningPaddock) -> None:
    shown = managed.model("m")["instances"][0]
    line = psutil.Process(shown["pid"]).cmdline()
    assert line[line.index("--spec-type") + 1] == "ngram-mod"
    assert line[line.index("--spec-dm-controller") + 1] == "fringe"
    assert line[line.index("--reasoning-loop-guard") + 1] == "stop"
    content = "Repeat: " + "one two three four five six, " * 12
    answer = chat(managed, "m", messages=[{"role": "user", "content": content}], max_tokens=64)
    assert answer.status_code == httpx.codes.OK


def test_all_its_metrics_are_in_the_scrape(managed: RunningPaddock) -> None:
    assert chat(managed, "m").status_code == 200

    def said() -> Samples | None:
        found = samples(scrape(managed))
        return found if "llamacpp:tokens_predicted_total" in found else None

    found: Samples = managed.wait(said, 30, "the engine's own metrics")
    assert "paddock_engine_metrics_refused" not in found
    ((labels, _),) = found["llamacpp:spec_decode_num_drafts_total"]
    assert labels == {"model": "m", "replica": "0"}


def test_its_responses_and_messages_come_through(managed: RunningPaddock) -> None:
    with openai_client(managed) as client:
        with client.responses.stream(model="m", input="Say hello.", max_output_tokens=6) as stream:
            events = list(stream)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert events[-1].type in {"response.completed", "response.incomplete"}
        assert events[-1].response.output_text
    body = {"model": "m", "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 6}
    url = managed.base_url
    message = httpx.post(f"{url}/v1/messages", json=body, timeout=60, trust_env=False).json()
    assert (message["model"], message["content"][0]["type"]) == ("m", "text")
    assert message["usage"]["output_tokens"] <= 6
    whole = {"prompt": "Once", "n_predict": 4}
    completion = httpx.post(f"{url}/m/m/completion", json=whole, timeout=60, trust_env=False).json()
    assert completion["tokens_predicted"] == 4
