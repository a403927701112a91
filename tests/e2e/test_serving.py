"""A real model behind real clients: chat, streams, slots, swap, disconnect, access (08)."""

from __future__ import annotations

import json
import os
import signal
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import psutil
import pytest

from tests.conftest import StartPaddock
from tests.e2e.clients import CHAT, NO_EARLY_END, Stream, chat, error_of, model_table, openai_client
from tests.support.paddock import RunningPaddock

pytestmark = pytest.mark.engine

LONG = {"max_tokens": 4000, "temperature": 0.9, **NO_EARLY_END}
# Small batches: a cancelled prompt ends with its batch (15 §5).
SMALL = {"batch": {"logical": 64, "physical": 64}}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Iterator[RunningPaddock]:
    """One manager for the module: `plain` loads at start, `other` on demand with n-gram speculation."""
    from tests.support.paddock import start_paddock

    folder = tmp_path_factory.mktemp("serving")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PADDOCK_STATE_DIR": str(folder / "state"),
    }
    tables = (
        '[speculation.repeats]\nmode = "ngram"\n[speculation.none]\nmode = "off"\n'
        + model_table("plain", smollm2, aliases=["gpt-4o-mini"], speculation="none", **SMALL)
        + model_table("other", smollm2, load="on-demand", context=2048, speculation="repeats", **SMALL)
    )
    paddock = start_paddock(folder, tables, environment)
    paddock.wait_state("plain", "ready")
    yield paddock
    paddock.close()
    assert paddock.survivors() == []


def slots_busy(paddock: RunningPaddock, name: str) -> int:
    """Slots of the first instance that the engine says are working, as the status shows them."""
    slots = paddock.model(name)["instances"][0]["slots"]
    return sum(slot["state"] != "idle" for slot in slots)


def test_the_official_client_chats_by_alias(real: RunningPaddock) -> None:
    with openai_client(real) as client:
        answer = client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[{"role": "user", "content": "Say hello."}],
            max_tokens=8,
            temperature=0,
        )
    assert answer.choices[0].message.content
    assert answer.model == "gpt-4o-mini"
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


def test_the_official_client_streams(real: RunningPaddock) -> None:
    with openai_client(real) as client:
        stream = client.chat.completions.create(
            model="plain",
            messages=[{"role": "user", "content": "Count to five."}],
            max_tokens=16,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text
    assert chunks[-1].usage is not None
    assert any(chunk.choices and chunk.choices[0].finish_reason for chunk in chunks)


def test_the_official_client_completes_text(real: RunningPaddock) -> None:
    with openai_client(real) as client:
        answer = client.completions.create(
            model="plain", prompt="Once upon a time", max_tokens=8, temperature=0
        )
    assert answer.choices[0].text


def test_embeddings_of_a_chat_model_are_refused_clearly(real: RunningPaddock) -> None:
    with openai_client(real) as client, pytest.raises(openai.APIStatusError) as refused:
        client.embeddings.create(model="plain", input="hello")
    assert refused.value.status_code == 501
    assert "embedding" in refused.value.message


def test_both_models_are_listed_and_listing_loads_nothing(real: RunningPaddock) -> None:
    before = real.pids()
    with openai_client(real) as client:
        listed = {model.id for model in client.models.list()}
    assert listed == {"plain", "other"}
    assert real.pids() == before


def test_a_request_loads_an_on_demand_model(real: RunningPaddock) -> None:
    assert chat(real, "other").status_code == 200
    running = real.model("other")["instances"][0]["running"]
    assert running["context"] == 2048
    assert running["speculation"] == "ngram-mod"


def test_a_prompt_longer_than_the_context_names_both_numbers(real: RunningPaddock) -> None:
    answer = chat(real, "plain", messages=[{"role": "user", "content": "word " * 3000}])
    assert answer.status_code == 400
    error = error_of(answer)
    assert error["code"] == "context_length_exceeded"
    assert error["n_prompt_tokens"] > error["n_ctx"]


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
def test_a_client_that_leaves_frees_the_slot(real: RunningPaddock, streaming: bool) -> None:
    body = json.dumps(
        {
            "model": "plain",
            "messages": [{"role": "user", "content": "Tell a long story."}],
            "stream": streaming,
            **LONG,
        }
    ).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", real.port)) as client:
        client.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        real.wait(lambda: slots_busy(real, "plain") == 1, 60, "the slot to work")
    real.wait(lambda: slots_busy(real, "plain") == 0, 30, "the slot to be free")
    assert real.model("plain")["instances"][0]["inflight"] == 0


def test_slots_show_what_a_stream_does(real: RunningPaddock) -> None:
    stream = Stream(real, "plain", {"max_tokens": 120, **NO_EARLY_END})
    slot = real.wait(
        lambda: next(
            (s for s in real.model("plain")["instances"][0]["slots"] if s["state"] == "generating"), None
        ),
        60,
        "a slot that generates",
    )
    assert slot["generated"] > 0
    assert slot["context_limit"] >= 1024
    stream.join()


def test_a_killed_child_is_replaced_and_answers_again(real: RunningPaddock) -> None:
    pid = real.pids()["plain"][0]
    others = real.pids().get("other")
    assert "llama-server" in " ".join(psutil.Process(pid).cmdline())
    os.kill(pid, signal.SIGKILL)
    real.wait(lambda: real.pids().get("plain", [pid]) != [pid], 60, "a new process")
    real.wait_state("plain", "ready")
    assert chat(real, "plain").status_code == 200
    assert real.pids().get("other") == others
    exited = real.events(kind="exited", model="plain")
    assert "SIGKILL" in exited[-1]["message"]


def test_the_key_of_a_child_is_not_in_its_command_line_and_it_refuses_strangers(real: RunningPaddock) -> None:
    instance = real.model("plain")["instances"][0]
    process = psutil.Process(instance["pid"])
    key = process.environ()["LLAMA_API_KEY"]
    assert key not in " ".join(process.cmdline())
    stranger = httpx.post(
        f"http://127.0.0.1:{instance['port']}/completion", json={"prompt": "x"}, trust_env=False
    )
    assert stranger.status_code == 401


def test_hot_edit_of_one_real_model_leaves_the_stream_of_the_other(real: RunningPaddock) -> None:
    chat(real, "other")
    before = real.pids()
    stream = Stream(real, "plain", {"max_tokens": 200, **NO_EARLY_END})
    real.wait(lambda: len(stream.pieces) > 2, 60, "the stream to flow")
    real.edit("context = 2048", "context = 1536")
    real.wait_replaced("other", before["other"][0])
    stream.join()
    assert stream.raw.endswith(b"data: [DONE]\n\n")
    assert real.pids()["plain"] == before["plain"]
    assert real.wait_state("other", "ready")["instances"][0]["running"]["context"] == 1536


def test_absurd_sampling_values_hurt_nobody(real: RunningPaddock) -> None:
    pid = real.pids()["plain"]
    for fields in ({"temperature": 999999}, {"top_p": -1}, {"repeat_penalty": 0}, {"temperature": "0.7"}):
        assert chat(real, "plain", **fields).status_code in (200, 400), fields
    assert chat(real, "plain").status_code == 200
    assert real.pids()["plain"] == pid
    real.wait(lambda: slots_busy(real, "plain") == 0, 30, "all slots to be free")


def test_an_image_for_a_text_model_is_refused_by_name(real: RunningPaddock) -> None:
    png = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
    content = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}]
    answer = chat(real, "plain", messages=[{"role": "user", "content": content}])
    assert answer.status_code == 400
    error = error_of(answer)
    assert error["code"] == "image_not_supported"
    assert "plain" in error["message"]


def test_keys_of_the_manifest_open_the_endpoint(paddock_up: StartPaddock, smollm2: Path) -> None:
    tables = '[access.tests]\nkey = "env:TEST_KEY"\nmodels = ["m"]\n' + model_table(
        "m", smollm2, load="on-demand"
    )
    paddock = paddock_up(
        tables + model_table("hidden", smollm2, load="manual"), environment={"TEST_KEY": "s3cret"}
    )
    with openai_client(paddock, "wrong") as client, pytest.raises(openai.AuthenticationError):
        client.models.list()
    with openai_client(paddock, "s3cret") as client:
        assert [model.id for model in client.models.list()] == ["m"]
        with pytest.raises(openai.PermissionDeniedError):
            client.completions.create(model="hidden", prompt="x")
        assert client.completions.create(model="m", prompt="Hi", max_tokens=2).choices
    child = psutil.Process(paddock.pids()["m"][0])
    assert "TEST_KEY" not in child.environ()
    assert "s3cret" not in paddock.log_text()
