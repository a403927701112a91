"""`/manifest`: files, edits, applies, history; what is refused and how."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from framework.values.plan import REDACTED
from tests.api.world import World, key, make_world

MODEL = '[models.a]\nsource = "a.gguf"\n'
TEXT = f'# mine\n{MODEL}environment = {{ HF_TOKEN = "S3CR3T" }}\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    path = tmp_path / "serve.toml"
    path.write_text(TEXT)
    return make_world(key("eyes", "look", "view"), key("hands", "act", "operate"), path=path)


def base(world: World) -> str:
    return sha256(world.services.current.manifest.path.read_bytes()).hexdigest()


async def get(world: World, path: str, credential: str = "act") -> httpx.Response:
    async with world.client(credential) as client:
        return await client.get(f"/api/v1/manifest{path}")


async def post(world: World, path: str, credential: str = "act", **body: Any) -> httpx.Response:
    async with world.client(credential) as client:
        return await client.post(f"/api/v1/manifest{path}", json=body)


async def test_who_may_operate_reads_the_file_as_it_is(world: World) -> None:
    (file,) = (await get(world, "")).json()["files"]
    assert (file["text"], file["sha256"]) == (TEXT, base(world))


async def test_who_may_only_look_reads_no_secret(world: World) -> None:
    answer = await get(world, "", "look")
    assert "S3CR3T" not in answer.text
    assert REDACTED in answer.json()["text"]


@pytest.mark.parametrize("path", ["/check", "/diff", "/edit", "/apply", "/revert"])
async def test_only_who_may_operate_sends_texts(world: World, path: str) -> None:
    assert (await post(world, path, "look")).status_code == 403


@pytest.mark.parametrize("path", ["/history", "/history/1"])
async def test_only_who_may_operate_sees_what_was_before(world: World, path: str) -> None:
    assert (await get(world, path, "look")).status_code == 403


async def test_apply_then_history_then_back(world: World) -> None:
    applied = await post(world, "/apply", text=MODEL, base_sha256=base(world))
    assert applied.status_code == 202
    document = applied.json()
    assert (document["accepted"], document["version"], document["sha256"]) == (True, 1, base(world))
    (version,) = (await get(world, "/history")).json()["versions"]
    assert (version["by"], version["id"]) == ("hands", 1)
    one = (await get(world, "/history/1")).json()
    assert one["text"] == TEXT
    assert "+ # mine" in one["diff"]
    assert (await post(world, "/revert")).status_code == 202
    assert world.services.current.manifest.path.read_text() == TEXT


async def test_a_file_that_moved_on_is_a_conflict(world: World) -> None:
    answer = await post(world, "/apply", text=MODEL, base_sha256="0" * 64)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["reason"]["code"]) == (409, *["manifest_changed"] * 2)
    assert error["reason"]["remedy"]


async def test_a_text_with_errors_comes_back_with_all_of_them(world: World) -> None:
    answer = await post(world, "/apply", text=f"{MODEL}slot = 1\nx = 2\n", base_sha256=base(world))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "manifest_invalid")
    assert [one["line"] for one in error["problems"] if one["severity"] == "error"] == [3, 4]


async def test_values_are_changed_in_the_text_and_nothing_is_written(world: World) -> None:
    edits = [{"path": ["models", "a", "slots"], "value": 1}]
    document = (await post(world, "/edit", edits=edits)).json()
    assert document["text"] == TEXT + "slots = 1\n"
    assert document["base_sha256"] == base(world)
    assert world.services.current.manifest.path.read_text() == TEXT


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"edits": []}, id="no-edit"),
        pytest.param({"edits": [{"path": ["a"], "value": 1}]}, id="no-table"),
        pytest.param({"edits": [{"path": "models.a.slots", "value": 1}]}, id="path-as-text"),
        pytest.param({"edits": [{"path": ["models", "a", 5], "value": 1}]}, id="a-number-in-the-path"),
        pytest.param({"edits": [{"path": ["models", "a", "slots"]}]}, id="no-value"),
        pytest.param({"edits": [{"path": ["models", "a", "slots"], "value": 1, "x": 2}]}, id="more"),
        pytest.param({"edits": [5]}, id="no-object"),
        pytest.param({"edits": [{"path": ["models", "a", "source", "x"], "value": 1}]}, id="below-a-value"),
        pytest.param({"edits": [{"path": ["a", "b"], "value": 1}] * 21}, id="too-many"),
    ],
)
async def test_edits_that_are_none_are_refused(world: World, body: dict[str, Any]) -> None:
    assert (await post(world, "/edit", **body)).status_code == 400


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/apply", {"base_sha256": "x"}, 400, id="no-text"),
        pytest.param("/apply", {"text": "x"}, 400, id="no-base"),
        pytest.param("/apply", {"text": 5, "base_sha256": "x"}, 400, id="no-text-but-a-number"),
        pytest.param(
            "/apply", {"text": "x", "base_sha256": "x", "file": "/etc/passwd"}, 404, id="other-file"
        ),
        pytest.param("/check", {"text": "x", "file": "/etc/passwd"}, 404, id="check-of-another-file"),
        pytest.param("/diff", {"text": "x", "file": 5}, 400, id="no-file-name"),
        pytest.param("/edit", {"edits": [], "more": 1}, 400, id="unknown-field"),
        pytest.param("/revert", {"version": 7}, 404, id="no-such-version"),
        pytest.param("/revert", {"version": True}, 400, id="no-number"),
        pytest.param("/revert", {"version": -1}, 400, id="negative"),
        pytest.param("/revert", {}, 404, id="no-version-at-all"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    world: World, path: str, body: dict[str, Any], status: int
) -> None:
    assert (await post(world, path, **body)).status_code == status
    assert world.services.current.manifest.path.read_text() == TEXT


@pytest.mark.parametrize("number", ["0", "-1", "x", "9" * 40, "7", "%2e%2e"])
async def test_a_version_that_is_not_there_is_not_found(world: World, number: str) -> None:
    assert (await get(world, f"/history/{number}")).status_code == 404


@pytest.mark.parametrize(("query", "status"), [("", 400), ("?model=nobody", 404), ("?model=chat", 200)])
async def test_remedies_are_of_a_model(world: World, query: str, status: int) -> None:
    assert (await get(world, f"/remedies{query}", "look")).status_code == status
