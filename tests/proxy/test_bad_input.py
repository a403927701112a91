"""Bad requests end here: no lease is taken, no engine asked (cases BI-01, BI-03, BI-05, BI-09)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.runtime.lease import LeaseRefused
from framework.values.instance import LoadProgress
from framework.values.manifest import ServerSettings
from tests.proxy.test_media import PNG, picture, user
from tests.proxy.world import HELLO, World, model


@pytest.mark.parametrize(
    ("chunks", "headers", "status"),
    [
        pytest.param([b""], {}, 400, id="empty"),
        pytest.param([b"{"], {}, 400, id="open"),
        pytest.param([b"[" * 1_000_000] * 10, {}, 400, id="ten-million-brackets"),
        pytest.param([b"[]"], {}, 400, id="list"),
        pytest.param([b'{"temperature": NaN}'], {}, 400, id="nan"),
        pytest.param([b'{"temperature": 1e400}'], {}, 400, id="infinite"),
        pytest.param([b"{}"], {"content-type": "text/plain"}, 415, id="text"),
        pytest.param([b"\x1f\x8b"], {"content-encoding": "gzip"}, 415, id="gzip"),
        pytest.param([b"{}"], {"content-length": str(2**30)}, 413, id="says-too-large"),
        pytest.param([b"x" * 2**20] * 17, {}, 413, id="is-too-large"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"])
async def test_bodies(
    world: World, path: str, chunks: list[bytes], headers: dict[str, str], status: int
) -> None:
    world.declare(model("smol"), server=ServerSettings(max_body_bytes=16 * 2**20))
    call = await world.ask(path, chunks=chunks, headers=headers)
    assert call.status == status
    assert call.error()["type"] == "invalid_request_error"
    assert world.fleet.acquired == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"model": 5}, "invalid_body", id="model-number"),
        pytest.param({"model": "smol\u0000"}, "invalid_body", id="model-control"),
        pytest.param({"model": "SMOL"}, "model_not_found", id="model-case"),
        pytest.param({"model": "smol", "stream": "yes"}, "invalid_body", id="stream-text"),
        pytest.param({"model": "smol", "stream": 1}, "invalid_body", id="stream-number"),
    ],
)
async def test_fields_that_we_read_ourselves(world: World, body: dict[str, Any], code: str) -> None:
    world.declare(model("smol"), model("other"))
    call = await world.ask("/v1/chat/completions", body)
    assert call.error()["code"] == code
    assert world.fleet.acquired == []


async def test_a_request_without_a_model_needs_one_where_there_are_several(world: World) -> None:
    world.declare(model("smol"), model("other"))
    call = await world.ask("/v1/chat/completions", {"messages": []})
    assert (call.status, call.error()["code"]) == (400, "model_required")


async def test_a_picture_for_a_text_model_wakes_nothing(world: World) -> None:
    world.declare(model("smol"), model("eye", projector=Path("/p.gguf")))
    call = await world.chat(messages=[user([picture(PNG)])])
    assert (call.status, call.error()["code"]) == (400, "image_not_supported")
    assert call.error()["message"].endswith("Models with a projector: eye.")
    assert world.fleet.acquired == []


async def test_a_picture_for_a_projector_that_does_not_run_is_not_sent(world: World) -> None:
    world.declare(model("smol", projector=Path("/p.gguf")))
    call = await world.chat(messages=[user([picture(PNG)])])
    assert (call.status, call.error()["code"]) == (400, "image_not_supported")
    assert world.engine.calls == []
    assert world.fleet.open_leases == 0


async def test_a_picture_reaches_a_model_that_sees(world: World) -> None:
    world.declare(model("smol", projector=Path("/p.gguf")))
    world.fleet.vision = True
    assert (await world.chat(image=PNG)).status == 200
    sent = world.engine.calls[0].body
    assert sent["messages"][0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert "image" not in sent


async def test_remote_media_are_refused(world: World) -> None:
    world.declare(model("smol", projector=Path("/p.gguf")))
    call = await world.chat(messages=[user([picture("http://169.254.169.254/")])])
    assert call.error()["code"] == "remote_media_disabled"
    assert world.fleet.acquired == []


async def test_a_client_that_leaves_while_it_sends_gets_no_answer(world: World) -> None:
    call = world.call("/v1/chat/completions", chunks=[b"{"])
    call.gone.set()
    await call.finished()
    refused = world.records[0]
    assert refused.status in {400, 499}


async def test_a_foreign_page_is_refused_before_anything_is_read(world: World) -> None:
    call = await world.ask("/v1/chat/completions", HELLO, headers={"origin": "https://evil.example"})
    assert (call.status, call.error()["code"]) == (403, "origin_not_allowed")
    rebound = await world.ask("/v1/models", method="GET", headers={"host": "evil.example"})
    assert (rebound.status, rebound.error()["code"]) == (403, "host_not_allowed")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_a_refused_lease_is_answered_with_what_is_known(world: World, streamed: bool) -> None:
    progress = LoadProgress("mapping", 1, 4, 0.25, "a.gguf", 3.0)
    world.fleet.refusal = LeaseRefused("model_loading", "It loads.", retry_after_s=2.5, progress=progress)
    call = await world.chat(stream=streamed)
    assert (call.status, call.headers["retry-after"]) == (503, "3")
    assert (call.error()["code"], call.error()["progress"]["fraction"]) == ("model_loading", 0.25)


async def test_nothing_secret_is_in_an_answer(world: World) -> None:
    async def play(call: Any) -> None:
        await call.json(500, {"error": {"message": f"bad key {call.headers['authorization']}"}})

    world.engine.default = play
    call = await world.chat()
    assert call.status == 502
    assert b"launch-key" not in call.body
