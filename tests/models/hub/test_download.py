"""Fetching with the real client: whole, in parts, broken, damaged (02 §10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import scan_cache_dir

from framework.models.hub.places import snapshots
from framework.values.reason import Refused
from tests.models.hub.conftest import REPO, Client, gguf_bytes
from tests.support.hub_stand_in import HubStandIn, sha256

FILE = "Tiny-Q4_K_M.gguf"
MIB = 2**20


@pytest.fixture
def data(hub: HubStandIn, tmp_path: Path) -> bytes:
    """A model of two megabytes, published."""
    data = gguf_bytes(tmp_path, padding=2 * MIB)
    hub.add(REPO, {FILE: data, "README.md": b"hello"})
    return data


def test_a_listing_has_sizes_checksums_and_the_commit(client: Client, data: bytes) -> None:
    answer = client.do("list")
    assert answer["revision"] == "a" * 40
    assert {"path": FILE, "size_bytes": len(data), "sha256": sha256(data)} in answer["files"]


def test_names_of_a_listing_that_lead_out_are_dropped(client: Client, hub: HubStandIn) -> None:
    hub.add(REPO, dict.fromkeys(("../x.gguf", "/y.gguf", "a\\..\\b.gguf", "ok/z.gguf"), b"z"))
    assert [file["path"] for file in client.do("list")["files"]] == ["ok/z.gguf"]


def test_a_fetched_file_lies_in_the_cache_as_the_client_would_have_put_it(
    client: Client, cache: Path, data: bytes
) -> None:
    answer = client.do(variant="q4_k_m")
    (path,) = map(Path, answer["files"])
    assert path.read_bytes() == data
    assert path.parent == snapshots(cache, REPO)[0]
    assert path.resolve().name == sha256(data)
    assert (cache / "models--org--Tiny-GGUF" / "refs" / "main").read_text() == "a" * 40
    assert (answer["fetched_bytes"], answer["label"]) == (len(data), "Q4_K_M")
    assert client.unfinished == []


def test_the_clients_own_tools_find_the_cache_in_order(
    client: Client, hub: HubStandIn, cache: Path, data: bytes
) -> None:
    client.do()
    hub.add("org/broken", {"m-Q8_0.gguf": data + b"x"})
    hub.faults.break_after, hub.faults.content_first, hub.faults.content_status = [MIB], 1, 503
    client.refused(repo="org/broken", variant="Q8_0")
    found = scan_cache_dir(cache)
    assert {(repo.repo_id, repo.size_on_disk) for repo in found.repos if repo.nb_files} == {(REPO, len(data))}
    assert [file.size_on_disk for file in found.incomplete_files] == [MIB]
    assert found.warnings == []


def test_a_second_fetch_moves_nothing(client: Client, hub: HubStandIn, data: bytes) -> None:
    client.do(variant="Q4_K_M")
    hub.seen.clear()
    assert client.do(variant="Q4_K_M")["fetched_bytes"] == 0
    assert hub.served("/content") == []


def test_every_shard_is_fetched_into_one_snapshot(client: Client, hub: HubStandIn, tmp_path: Path) -> None:
    names = [f"m-Q8_0-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    hub.add(REPO, {name: gguf_bytes(tmp_path, name=name, padding=MIB) for name in names})
    answer = client.do(file=names[1])
    assert [Path(path).name for path in answer["files"]] == names
    assert len({Path(path).parent for path in answer["files"]}) == 1
    assert list(dict.fromkeys(note.file for note in client.notes)) == names


def test_progress_never_falls_and_ends_at_the_total(client: Client, hub: HubStandIn, data: bytes) -> None:
    hub.faults.bytes_per_s = 4 * MIB
    client.do(variant="Q4_K_M")
    loaded = [note.loaded_bytes for note in client.notes]
    assert loaded == sorted(loaded)
    assert len(set(loaded)) > 3
    assert loaded[-1] == client.notes[-1].total_bytes == len(data)


def test_a_broken_connection_is_taken_up_where_it_broke(client: Client, hub: HubStandIn, data: bytes) -> None:
    hub.faults.break_after = [MIB]
    (path,) = client.do(variant="Q4_K_M")["files"]
    assert Path(path).read_bytes() == data
    ranges = [seen.headers.get("range") for seen in hub.served("/content")]
    assert ranges == [None, f"bytes={MIB}-"]


def test_what_an_earlier_try_fetched_is_not_fetched_again(
    client: Client, hub: HubStandIn, data: bytes
) -> None:
    hub.faults.break_after, hub.faults.content_first, hub.faults.content_status = [MIB], 1, 503
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("download_failed", True)
    assert [path.stat().st_size for path in client.unfinished] == [MIB]
    hub.faults.content_status = 0
    hub.seen.clear()
    answer = client.do(variant="Q4_K_M")
    assert Path(answer["files"][0]).read_bytes() == data
    assert [seen.headers["range"] for seen in hub.served("/content")] == [f"bytes={MIB}-"]
    assert answer["fetched_bytes"] == len(data) - MIB


def test_a_server_that_ignores_ranges_sends_all_of_it_again(
    client: Client, hub: HubStandIn, data: bytes
) -> None:
    hub.faults.break_after = [MIB]
    hub.faults.ignore_range = True
    (path,) = client.do(variant="Q4_K_M")["files"]
    assert Path(path).read_bytes() == data


def test_a_body_that_is_too_short_is_refused_and_kept(client: Client, hub: HubStandIn, data: bytes) -> None:
    hub.faults.announce_less = 100
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("download_failed", True)
    assert FILE in reason.message
    assert [path.stat().st_size for path in client.unfinished] == [len(data) - 100]


def test_a_damaged_body_is_refused_and_dropped(client: Client, hub: HubStandIn, data: bytes) -> None:
    hub.faults.flip_a_byte = True
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("download_failed", True)
    assert "checksum" in reason.message
    assert client.unfinished == []
    assert list(client.cache.rglob("blobs/*")) == []


def test_an_unfinished_file_that_is_no_beginning_is_found_out(client: Client, data: bytes) -> None:
    blobs = client.cache / "models--org--Tiny-GGUF" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{sha256(data)}.paddock.incomplete").write_bytes(b"\0" * MIB)
    assert "checksum" in client.refused(variant="Q4_K_M")[0].message
    assert Path(client.do(variant="Q4_K_M")["files"][0]).read_bytes() == data


def test_a_cut_off_file_in_the_cache_is_replaced(client: Client, data: bytes) -> None:
    path = Path(client.do(variant="Q4_K_M")["files"][0])
    path.resolve().write_bytes(data[:MIB])
    assert Path(client.do(variant="Q4_K_M")["files"][0]).read_bytes() == data


def test_a_stand_in_costs_one_range_request(
    client: Client, hub: HubStandIn, data: bytes, tmp_path: Path
) -> None:
    answer = client.do("headers", variant="Q4_K_M", header_bytes=8 * MIB, target=str(tmp_path))
    assert Path(answer["files"][0]).stat().st_size == len(data)
    assert (answer["paths"], answer["sizes"]) == ([FILE], [len(data)])
    assert [seen.headers["range"] for seen in hub.served("/content")] == [f"bytes=0-{8 * MIB - 1}"]
    assert not client.cache.exists()


@pytest.mark.usefixtures("data")
def test_a_longer_header_is_asked_for_again(client: Client, hub: HubStandIn, tmp_path: Path) -> None:
    answer = client.do("headers", file=FILE, header_bytes=100, target=str(tmp_path))
    assert Path(answer["files"][0]).exists()
    assert len(hub.served("/content")) > 1


@pytest.mark.usefixtures("data")
def test_what_is_stood_in_for_is_not_fetched_again(client: Client, hub: HubStandIn, tmp_path: Path) -> None:
    first, second = (
        client.do("headers", file=FILE, header_bytes=MIB, target=str(tmp_path)) for _ in range(2)
    )
    assert (second["files"], second["fetched_bytes"]) == (first["files"], 0)
    assert len(hub.served("/content")) == 1


def test_a_header_is_cut_where_ranges_are_ignored(
    client: Client, hub: HubStandIn, data: bytes, tmp_path: Path
) -> None:
    hub.faults.ignore_range = True
    answer = client.do("headers", file=FILE, header_bytes=MIB, target=str(tmp_path))
    assert (answer["fetched_bytes"], answer["sizes"]) == (MIB, [len(data)])


def test_no_stand_in_is_made_for_what_is_no_model(client: Client, hub: HubStandIn, tmp_path: Path) -> None:
    hub.add(REPO, {FILE: b"short"})
    with pytest.raises(Refused) as caught:
        client.do("headers", file=FILE, header_bytes=1000, target=str(tmp_path))
    assert (caught.value.failure.reason.code, list(tmp_path.rglob("*.gguf"))) == ("bad_model_file", [])


def test_the_token_goes_to_the_hub_and_not_to_where_content_lies(
    client: Client, hub: HubStandIn, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[REPO].private = True
    monkeypatch.setenv("HF_TOKEN", hub.token)
    client.do(variant="Q4_K_M")
    assert {seen.headers.get("authorization") for seen in hub.served("/resolve/")} == {f"Bearer {hub.token}"}
    assert {seen.headers.get("authorization") for seen in hub.served("/content")} == {None}
