"""Sound to text, by a model that hears (09 §6).

No model with ears is small enough to be here; a scripted engine answers for one.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framework.proxy.errors import ProxyError
from framework.proxy.form_body import parse_form
from tests.proxy.asgi_client import AsgiCall
from tests.proxy.http_server import served
from tests.proxy.scripted_engine import Call, closing, finish, piece
from tests.proxy.world import World, model
from tests.support.waiting import eventually

WAV = b"RIFF\x24\x00\x00\x00WAVEfmt rest"
BOUNDARY = "xyz"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def form(file: bytes | None = WAV, **fields: str) -> bytes:
    """A form as clients write it."""
    parts = [f'Content-Disposition: form-data; name="{n}"\r\n\r\n{v}'.encode() for n, v in fields.items()]
    if file is not None:
        parts.append(b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + file)
    edge = f"--{BOUNDARY}".encode()
    return b"".join(edge + b"\r\n" + part + b"\r\n" for part in parts) + edge + b"--\r\n"


async def say(call: Call) -> None:
    await call.start_stream()
    await call.events(piece(" Hel"), piece("lo "), piece(" you "), finish(), closing())
    await call.end()


@pytest.fixture
def hearing(world: World) -> World:
    """A model that hears."""
    world.declare(model("smol", aliases=("gpt",), projector=Path("/p.gguf")))
    world.fleet.audio = True
    world.engine.default = say
    return world


async def transcribed(world: World, body: bytes, content_type: str = TYPE) -> AsgiCall:
    headers = {"content-type": content_type}
    return await world.ask("/v1/audio/transcriptions", chunks=[body], headers=headers)


async def test_a_recording_becomes_text(hearing: World) -> None:
    call = await transcribed(hearing, form(model="gpt", language="en", prompt="Names: Ada."))
    usage = {"type": "tokens", "input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    assert call.json() == {"text": "Hello  you", "usage": usage}
    sent = hearing.engine.calls[0]
    assert (sent.path, sent.body["temperature"]) == ("/v1/chat/completions", 0)
    text, sound = sent.body["messages"][0]["content"]
    assert text["text"] == "Transcribe this audio. The language is en. Names: Ada."
    assert sound["input_audio"] == {"data": base64.b64encode(WAV).decode(), "format": "wav"}
    assert (hearing.records[0].route, hearing.records[0].generated_tokens) == ("/v1/audio/transcriptions", 2)


async def test_a_recording_becomes_bare_text(hearing: World) -> None:
    call = await transcribed(hearing, form(response_format="text"))
    assert (call.body, call.headers["content-type"]) == (b"Hello  you", "text/plain; charset=utf-8")


async def test_a_recording_becomes_a_stream(hearing: World) -> None:
    call = await transcribed(hearing, form(stream="true"))
    events = call.events()
    assert [event["type"] for event in events] == ["transcript.text.delta"] * 3 + ["transcript.text.done"]
    assert "".join(event["delta"] for event in events[:-1]) == events[-1]["text"] == "Hello  you"
    assert call.payloads()[-1] == "[DONE]"


async def test_the_client_that_people_use(hearing: World) -> None:
    async with (
        served(hearing.app) as address,
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        answer = await client.audio.transcriptions.create(model="gpt", file=("a.wav", WAV), language="en")
        assert answer.text == "Hello  you"
        stream = await client.audio.transcriptions.create(model="gpt", file=("a.wav", WAV), stream=True)
        assert [event.type async for event in stream][-1] == "transcript.text.done"


@pytest.mark.parametrize(
    ("body", "content_type", "status", "code"),
    [
        (form(b"OggS...."), TYPE, 400, "audio_format_not_supported"),
        (form(None), TYPE, 400, "invalid_body"),
        (form(b""), TYPE, 400, "invalid_body"),
        (form(response_format="srt"), TYPE, 400, "invalid_body"),
        (form(stream="maybe"), TYPE, 400, "invalid_body"),
        (form(temperature="nan"), TYPE, 400, "invalid_body"),
        (form(chunking_strategy="auto"), TYPE, 400, "invalid_body"),
        (form(model="smole"), TYPE, 404, "model_not_found"),
        (b"{}", "application/json", 415, "unsupported_media_type"),
        (b"{}", "multipart/form-data", 400, "invalid_body"),
        (b"no parts", TYPE, 400, "invalid_body"),
    ],
)
async def test_forms_that_are_refused(
    hearing: World, body: bytes, content_type: str, status: int, code: str
) -> None:
    call = await transcribed(hearing, body, content_type)
    assert (call.status, call.error()["code"]) == (status, code)
    assert hearing.fleet.acquired == []


async def test_a_model_without_ears_is_not_loaded_for_it(world: World) -> None:
    call = await transcribed(world, form(model="smol"))
    assert (call.status, call.error()["code"]) == (400, "transcription_not_supported")
    assert "has no projector" in call.error()["message"]
    assert world.fleet.acquired == []


async def test_a_projector_that_only_sees_is_not_enough(hearing: World) -> None:
    hearing.fleet.audio = False
    call = await transcribed(hearing, form(model="smol"))
    assert (call.status, call.error()["code"]) == (400, "transcription_not_supported")
    assert hearing.engine.calls == []


async def test_a_recording_above_the_limit_of_bodies(hearing: World) -> None:
    manifest = hearing.current.manifest
    hearing.current.manifest = replace(manifest, server=replace(manifest.server, max_body_bytes=100))
    call = await transcribed(hearing, form(WAV * 100))
    assert (call.status, call.error()["code"]) == (413, "body_too_large")


async def test_sound_in_a_chat_gets_its_true_format(hearing: World) -> None:
    part: dict[str, Any] = {
        "type": "input_audio",
        "input_audio": {"data": base64.b64encode(b"ID3 rest").decode(), "format": "wav"},
    }
    await hearing.chat(messages=[{"role": "user", "content": [part]}])
    assert hearing.engine.calls[0].body["messages"][0]["content"][0]["input_audio"]["format"] == "mp3"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200), st.sampled_from([TYPE, "multipart/form-data; boundary=", "multipart/form-data"])
)
async def test_no_bytes_break_the_form(raw: bytes, content_type: str) -> None:
    for body in (raw, form() + raw, form()[:-9] + raw):
        try:
            await parse_form(body, content_type)
        except ProxyError as error:
            assert error.status in {400, 415}


# Another program


@pytest.fixture
def elsewhere(world: World) -> World:
    """A model without ears, for which another program transcribes."""
    world.declare(model("smol", aliases=("gpt",), transcription=world.engine.url))
    return world


async def test_a_form_goes_to_the_program_as_it_came(elsewhere: World) -> None:
    async def play(call: Call) -> None:
        await call.json(200, {"text": "hello"})

    elsewhere.engine.default = play
    body = form(model="gpt", response_format="verbose_json")
    call = await elsewhere.ask(
        "/v1/audio/transcriptions",
        chunks=[body],
        headers={"content-type": TYPE, "authorization": "Bearer client-key"},
    )
    assert (call.status, call.json()) == (200, {"text": "hello"})
    sent = elsewhere.engine.calls[0]
    assert (sent.path, sent.received, sent.headers["content-type"]) == (
        "/v1/audio/transcriptions",
        body,
        TYPE,
    )
    assert "authorization" not in sent.headers
    assert elsewhere.fleet.acquired == []


async def test_its_stream_is_passed_on(elsewhere: World) -> None:
    async def play(call: Call) -> None:
        await call.start_stream()
        await call.events({"type": "transcript.text.delta", "delta": "x"})
        await call.end()

    elsewhere.engine.default = play
    call = await transcribed(elsewhere, form(stream="true"))
    assert call.events() == [{"type": "transcript.text.delta", "delta": "x"}]
    assert call.payloads()[-1] == "[DONE]"


REFUSALS = [(400, 400, "invalid_body"), (500, 502, "upstream_error")]


@pytest.mark.parametrize(("status", "answered", "code"), REFUSALS)
async def test_its_refusals_are_told(elsewhere: World, status: int, answered: int, code: str) -> None:
    async def play(call: Call) -> None:
        await call.json(status, {"detail": "no such thing"})

    elsewhere.engine.default = play
    call = await transcribed(elsewhere, form())
    assert (call.status, call.error()["code"]) == (answered, code)
    assert "no such thing" in call.error()["message"]


async def test_a_redirect_is_not_followed(elsewhere: World) -> None:
    async def play(call: Call) -> None:
        await call.send(b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")

    elsewhere.engine.default = play
    call = await transcribed(elsewhere, form())
    assert (call.status, call.error()["code"]) == (502, "upstream_error")
    assert len(elsewhere.engine.calls) == 1


async def test_a_program_that_is_not_there(world: World) -> None:
    world.declare(model("smol", transcription="http://127.0.0.1:9"))
    call = await transcribed(world, form())
    assert (call.status, call.error()["code"]) == (502, "connection_lost")


async def test_a_client_that_leaves_ends_the_call(elsewhere: World) -> None:
    async def play(call: Call) -> None:
        await call.closed.wait()

    elsewhere.engine.default = play
    call = elsewhere.call("/v1/audio/transcriptions", chunks=[form()], headers={"content-type": TYPE})
    await eventually(lambda: elsewhere.engine.calls)
    call.gone.set()
    await call.finished()
    await eventually(lambda: elsewhere.engine.calls[0].closed.is_set())
    assert elsewhere.records[0].status == 499
