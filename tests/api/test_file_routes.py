"""`/files` and `/files/ID/inspect`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.api.model_folder import MARKUP, fill, model_files
from tests.api.world import World, key, make_world

FILE_KEYS = {
    "id", "path", "bytes", "parts", "role", "used_by", "read", "name", "architecture", "file_type",
    "context_train", "fault",
}  # fmt: skip


def world_of(folder: Path) -> World:
    world = make_world()
    return replace(world, services=replace(world.services, files=model_files(fill(folder))))


async def get(world: World, path: str, status: int = 200) -> Any:
    async with world.client() as client:
        answer = await client.get(f"/api/v1{path}")
    assert answer.status_code == status, answer.text
    return answer.json()


async def id_of(world: World, name: str) -> str:
    files = (await get(world, "/files"))["files"]
    return str(next(file["id"] for file in files if file["path"].endswith(name)))


async def test_the_list_has_its_shape(tmp_path: Path) -> None:
    document = await get(world_of(tmp_path), "/files")
    assert document.keys() == {"folders", "complete", "files"}
    assert all(file.keys() == FILE_KEYS for file in document["files"])
    assert [file["fault"]["code"] for file in document["files"] if file["fault"]] == [
        "incomplete_set",
        "bad_model_file",
    ]


async def test_a_file_answers_with_the_shape_of_inspect(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    file_id = await id_of(world, "tiny-F32.gguf")
    document = await get(world, f"/files/{file_id}/inspect?context=2048&slots=2&kv_cache=q8_0&device=CUDA0")
    assert document.keys() == {"facts", "files", "template", "companions", "memory", "reasons"}
    assert {line["device"] for line in document["memory"]["lines"]} == {"CUDA0", "CPU"}


async def test_hostile_text_comes_as_text(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    document = await get(world, f"/files/{await id_of(world, 'markup <b>.gguf')}/inspect")
    assert document["facts"]["tokenizer"] == MARKUP


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param(b"a\xff\xfe.gguf", "a\\xff\\xfe.gguf", id="no-utf-8"),
        pytest.param(b"new\nline.gguf", "new\nline.gguf", id="two-lines"),
        pytest.param(b"\x1b[31m.gguf", "\x1b[31m.gguf", id="control"),
    ],
)
async def test_a_file_may_have_any_name(tmp_path: Path, name: bytes, shown: str) -> None:
    world = world_of(tmp_path)
    odd = tmp_path / "models" / os.fsdecode(name)
    odd.write_bytes((tmp_path / "models" / "tiny-F32.gguf").read_bytes())
    file_id = await id_of(world, shown)
    document = await get(world, f"/files/{file_id}/inspect")
    assert Path(document["files"][0]["path"]).name == shown


@pytest.mark.parametrize(
    ("name", "code"), [("broken.gguf", "bad_model_file"), ("big-00001-of-00003.gguf", "incomplete_set")]
)
async def test_a_file_that_no_engine_could_load_is_refused_with_its_reason(
    tmp_path: Path, name: str, code: str
) -> None:
    world = world_of(tmp_path)
    error = (await get(world, f"/files/{await id_of(world, name)}/inspect", 422))["error"]
    assert (error["code"], error["param"]) == (code, "id")
    assert name in error["message"] or "missing" in error["message"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/files/0123456789abcdef/inspect", 404, "file_not_found"),
        ("/files/..%2F..%2Fetc%2Fpasswd/inspect", 404, "route_not_found"),
        ("/files/%2e%2e/inspect", 404, "file_not_found"),
        ("/files/x", 404, "route_not_found"),
        ("/files?path=/etc", 400, "invalid_body"),
        ("/files/x/inspect?context=0", 400, "invalid_body"),
        ("/files/x/inspect?path=/etc/passwd", 400, "invalid_body"),
    ],
)
async def test_what_cannot_be_asked(tmp_path: Path, path: str, status: int, code: str) -> None:
    assert (await get(world_of(tmp_path), path, status))["error"]["code"] == code


async def test_looking_needs_no_more_than_the_role_to_look(tmp_path: Path) -> None:
    world = world_of(tmp_path)
    world.declare(key("watcher", "w", "view"), key("user", "u", "none"))
    for secret, status in (("w", 200), ("u", 403), ("nobody", 401)):
        async with world.client(secret) as client:
            assert (await client.get("/api/v1/files")).status_code == status
