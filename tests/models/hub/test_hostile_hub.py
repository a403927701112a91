"""Hubs that are broken, changed under our hands or hostile: bounded, and one line says what is wrong."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from framework.models.hub import client as hub_client
from framework.models.hub import http, transfer
from tests.models.hub.conftest import REPO, Client, gguf_bytes
from tests.support.hub_stand_in import HubStandIn, sha256

FILE = "Tiny-Q4_K_M.gguf"
SHARDS = [f"m-Q8_0-0000{index}-of-00002.gguf" for index in (1, 2)]
MIB = 2**20
OTHER_COMMIT = "b" * 40


@pytest.fixture
def data(hub: HubStandIn, tmp_path: Path) -> bytes:
    """A model of two megabytes, published."""
    data = gguf_bytes(tmp_path, padding=2 * MIB)
    hub.add(REPO, {FILE: data})
    return data


@pytest.fixture
def shards(hub: HubStandIn, tmp_path: Path) -> dict[str, bytes]:
    """A model of two shards, published."""
    shards = {name: gguf_bytes(tmp_path, name=name, padding=MIB) for name in SHARDS}
    hub.add(REPO, shards)
    return shards


def test_a_page_where_a_listing_should_be_is_named(client: Client, hub: HubStandIn, data: bytes) -> None:
    hub.faults.api_body = b"<html>Please log in to the Wi-Fi of the hotel.</html>"
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("download_failed", True)
    assert "no JSON" in reason.message
    assert hub.url in reason.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"sha": 5, "siblings": 7}', id="other types"),
        pytest.param(b'{"sha": "x", "siblings": [{"size": 1}]}', id="no names"),
        pytest.param(b'{"siblings": []}', id="no commit"),
        pytest.param(b"[" * 100_000, id="nested"),
    ],
)
def test_a_listing_of_another_shape_is_refused(
    client: Client, hub: HubStandIn, data: bytes, body: bytes
) -> None:
    hub.faults.api_body = body
    reason, _ = client.refused(variant="Q4_K_M")
    assert reason.code in ("download_failed", "model_missing")
    assert "\n" not in reason.message


@pytest.mark.parametrize("size", [-5, 2**80, "many", None, 1.5])
def test_what_is_no_size_or_checksum_in_a_listing_is_none(
    client: Client, hub: HubStandIn, data: bytes, size: object
) -> None:
    file = {"rfilename": FILE, "size": size, "lfs": {"sha256": "../../evil", "size": size, "pointerSize": 1}}
    hub.faults.api_body = json.dumps({"id": REPO, "sha": "a" * 40, "siblings": [file]}).encode()
    assert client.do("list")["files"] == [{"path": FILE, "size_bytes": None, "sha256": None}]
    (path,) = client.do(variant="Q4_K_M")["files"]
    assert Path(path).read_bytes() == data


def test_a_listing_of_very_many_files_is_read(client: Client, hub: HubStandIn, data: bytes) -> None:
    for number in range(30_000):
        hub.repos[REPO].files[f"logs/run-{number}.txt"] = b"x"
    (path,) = client.do(variant="Q4_K_M")["files"]
    assert Path(path).read_bytes() == data


def test_of_very_many_variants_only_some_are_named(client: Client, hub: HubStandIn) -> None:
    hub.add(REPO, {f"model-{number}.gguf": b"x" for number in range(5_000)})
    reason, _ = client.refused()
    assert reason.code == "variant_unclear"
    assert len(reason.message) < 1_000
    assert len(reason.evidence["candidates"]) < 1_000


@pytest.mark.parametrize(
    "etag",
    ["../../../evil", "a/b", "x" * 300, "", "sha\x7f"],
    ids=["up", "folder", "long", "none", "control"],
)
def test_content_is_never_written_under_a_name_that_leads_out(
    client: Client, hub: HubStandIn, cache: Path, data: bytes, etag: str
) -> None:
    hub.faults.etag = etag or '"'
    reason, _ = client.refused(variant="Q4_K_M")
    assert reason.code == "download_failed"
    assert [path.name for path in cache.parent.parent.rglob("*evil*")] == []


def test_content_without_an_end_stops_where_it_should_have_ended(
    client: Client, hub: HubStandIn, cache: Path, data: bytes
) -> None:
    hub.faults.endless = True
    reason, _ = client.refused(variant="Q4_K_M")
    assert reason.code == "download_failed"
    assert sum(path.stat().st_size for path in cache.rglob("blobs/*")) <= len(data)


def test_a_push_between_two_shards_does_not_mix_them(
    client: Client, hub: HubStandIn, shards: dict[str, bytes], tmp_path: Path
) -> None:
    hub.faults.commits = [OTHER_COMMIT]
    reason, retryable = client.refused(variant="Q8_0")
    assert (reason.code, retryable) == ("download_failed", True)
    assert "changed" in reason.message
    assert any(name in reason.message for name in SHARDS)
    paths = [Path(path) for path in client.do(variant="Q8_0")["files"]]
    assert [path.read_bytes() for path in paths] == list(shards.values())
    assert {path.parent.name for path in paths} == {OTHER_COMMIT}


def test_what_was_begun_of_older_content_is_not_continued_with_newer(
    client: Client, hub: HubStandIn, data: bytes
) -> None:
    hub.faults.break_after, hub.faults.content_first, hub.faults.content_status = [MIB], 1, 503
    client.refused(variant="Q4_K_M")
    hub.faults.content_status = 0
    newer = data[::-1]
    hub.add(REPO, {FILE: newer}, commit=OTHER_COMMIT)
    hub.seen.clear()
    (path,) = client.do(variant="Q4_K_M")["files"]
    assert Path(path).read_bytes() == newer
    assert [seen.headers.get("range") for seen in hub.served("/content")] == [None]


def test_a_disk_that_fills_up_under_way_is_told_and_nothing_is_lost(
    client: Client, hub: HubStandIn, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = transfer.HashedFile.write

    def full(self: transfer.HashedFile, piece: bytes) -> int:
        if self.tell() >= MIB:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, piece)

    monkeypatch.setattr(transfer.HashedFile, "write", full)
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("disk_full", False)
    assert 0 < reason.evidence["need_bytes"] <= len(data) - MIB
    monkeypatch.undo()
    hub.seen.clear()
    (path,) = client.do(variant="Q4_K_M")["files"]
    assert Path(path).read_bytes() == data
    assert [seen.headers["range"] for seen in hub.served("/content")] == [f"bytes={MIB}-"]


def test_a_file_that_is_larger_than_listed_must_fit_as_well(
    client: Client, hub: HubStandIn, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[REPO].sizes[FILE] = 10
    monkeypatch.setattr(transfer, "free_bytes", lambda _: MIB)
    reason, _ = client.refused(variant="Q4_K_M")
    assert reason.code == "disk_full"
    assert hub.served("/content") == []


@pytest.mark.parametrize(
    ("field", "value"), [("bytes_per_s", 1e5), ("break_after", [1, 1, 1, 1])], ids=["slow", "torn"]
)
def test_a_poor_line_brings_the_whole_file(
    client: Client, hub: HubStandIn, tmp_path: Path, field: str, value: Any
) -> None:
    data = gguf_bytes(tmp_path, padding=100_000)
    hub.add(REPO, {FILE: data})
    setattr(hub.faults, field, value)
    (path,) = client.do(variant="Q4_K_M")["files"]
    assert sha256(Path(path).read_bytes()) == sha256(data)


@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_an_answer_without_an_end_is_given_up(
    client: Client, hub: HubStandIn, data: bytes, status: int
) -> None:
    hub.faults.api_endless = status
    reason, _ = client.refused(variant="Q4_K_M")
    assert reason.code == "download_failed"
    assert len(reason.message) < 300


def test_an_answer_that_grows_when_it_is_unpacked_is_given_up(client: Client, hub: HubStandIn) -> None:
    hub.faults.api_body = gzip.compress(b'{"id": "' + b"x" * (2 * http.ANSWER_LIMIT_BYTES), 9)
    hub.faults.api_encoding = "gzip"
    reason, _ = client.refused(variant="Q4_K_M")
    assert "too large" in reason.message


def test_an_answer_that_drips_is_given_up(
    client: Client, hub: HubStandIn, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_client, "ANSWER_LIMIT_S", 0.5)
    hub.faults.api_drip_s = 0.05
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("download_failed", True)
    assert "in time" in reason.message


def test_a_listing_of_more_files_than_any_model_has_is_refused(
    client: Client, hub: HubStandIn, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_client, "MOST_FILES", 1000)
    hub.add(REPO, {f"model-{number}-Q4_0.gguf": b"x" for number in range(1001)})
    reason, retryable = client.refused(variant="Q4_0")
    assert (reason.code, retryable) == ("download_failed", False)
    assert "1,000 files" in reason.message


def test_redirects_in_a_circle_are_given_up(client: Client, hub: HubStandIn, data: bytes) -> None:
    hub.faults.api_redirect = f"{hub.url}/api/models/{REPO}"
    assert client.refused(variant="Q4_K_M")[0].code == "download_failed"
    assert len(hub.served("/api")) < 50
