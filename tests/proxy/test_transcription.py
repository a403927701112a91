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
