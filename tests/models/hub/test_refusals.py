"""What the hub's refusals become: a code, whether it may pass, a sentence with a remedy (02 §10.6)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from framework.models.hub.client import one_line
from tests.models.hub.conftest import PATIENCE, REPO, Client, gguf_bytes
from tests.support.hub_stand_in import HubStandIn
from tests.support.waiting import unused_port

FILE = "Tiny-Q4_K_M.gguf"


@pytest.fixture
def published(hub: HubStandIn, tmp_path: Path) -> HubStandIn:
    """The stand-in with one small model."""
    hub.add(REPO, {FILE: gguf_bytes(tmp_path)})
    return hub


def test_a_repository_that_does_not_exist(client: Client) -> None:
    reason, retryable = client.refused(variant="Q8_0")
    assert (reason.code, retryable) == ("model_missing", False)
    assert REPO in reason.message
    assert "HF_TOKEN" in reason.remedy


def test_a_private_repository_looks_the_same(client: Client, published: HubStandIn) -> None:
    published.repos[REPO].private = True
    assert client.refused(variant="Q4_K_M")[0].code == "model_missing"


def test_a_gated_repository_says_what_to_accept(client: Client, published: HubStandIn) -> None:
    published.repos[REPO].gated = True
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable, reason.evidence["cause"]) == ("download_failed", False, "gated")
    assert "terms" in reason.remedy


def test_a_token_that_may_not_read(
    client: Client, published: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    published.faults.resolve_status = 403
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable, reason.evidence["token"]) == ("download_failed", False, True)
    assert "hf_wrong" not in str(reason)


def test_a_file_that_does_not_exist_names_its_neighbours(client: Client, published: HubStandIn) -> None:
    reason, retryable = client.refused(file="Tiny-Q4_K.gguf")
    assert (reason.code, retryable) == ("model_missing", False)
    assert FILE in reason.message


def test_a_variant_that_does_not_exist_names_the_others(client: Client, published: HubStandIn) -> None:
    reason, _ = client.refused(variant="Q2_K")
    assert reason.code == "variant_unclear"
    assert "Q4_K_M" in reason.message


def test_no_variant_and_several_to_choose_from(client: Client, hub: HubStandIn) -> None:
    hub.add(REPO, {"m-Q8_0.gguf": b"x", "m-Q5_0.gguf": b"y"})
    assert client.refused()[0].code == "variant_unclear"


def test_a_set_with_a_missing_shard_costs_no_byte(client: Client, hub: HubStandIn) -> None:
    hub.add(REPO, {"m-Q8_0-00001-of-00002.gguf": b"x"})
    assert client.refused(variant="Q8_0")[0].code == "incomplete_set"
    assert hub.served("/content") == []


def test_a_short_rate_limit_is_waited_for(client: Client, published: HubStandIn) -> None:
    published.faults.content_status = 429
    published.faults.retry_after = "1"
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.evidence["retry_after_s"], retryable) == (1.0, True)
    assert len(published.served("/content")) == 3


@pytest.mark.parametrize("where", ["api_status", "resolve_status", "content_status"])
def test_a_long_rate_limit_is_refused_with_its_length(
    client: Client, published: HubStandIn, where: str
) -> None:
    setattr(published.faults, where, 429)
    published.faults.retry_after = "3600"
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("download_failed", True)
    assert "3600 s" in reason.remedy


@pytest.mark.parametrize(("status", "retryable"), [(500, True), (503, True), (418, False)])
def test_other_answers(client: Client, published: HubStandIn, status: int, retryable: bool) -> None:
    published.faults.api_status = status
    reason, passes = client.refused(variant="Q4_K_M")
    assert (reason.code, passes) == ("download_failed", retryable)
    assert str(status) in reason.message


def test_a_hub_that_is_not_there(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = f"http://127.0.0.1:{unused_port()}"
    monkeypatch.setattr(type(client.hub), "url", nobody)
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.code, retryable) == ("download_failed", True)
    assert nobody in reason.message


def test_a_disk_that_is_too_small_names_what_would_fit(
    client: Client, hub: HubStandIn, tmp_path: Path
) -> None:
    free = shutil.disk_usage(tmp_path).free
    hub.add(REPO, {"m-Q8_0.gguf": b"x", "m-Q2_K.gguf": b"y"}, sizes={"m-Q8_0.gguf": free * 2})
    reason, retryable = client.refused(variant="Q8_0")
    assert (reason.code, retryable) == ("disk_full", False)
    assert reason.evidence["need_bytes"] == free * 2
    assert "Q2_K" in reason.remedy
    assert hub.served("/content") == []


def test_a_cache_that_cannot_be_written(client: Client, published: HubStandIn, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    reason, _ = client.refused(variant="Q4_K_M")
    assert reason.code == "download_failed"
    assert str(cache) in reason.message


def test_a_file_too_large_for_plain_http_is_left_to_the_clients_own_way(
    client: Client, published: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stand-in has no chunk store, without which the client refuses such a file.
    monkeypatch.setattr(constants, "MAX_HTTP_DOWNLOAD_SIZE", 100)
    reason, _ = client.refused(variant="Q4_K_M")
    assert reason.code == "download_failed"
    assert "too large" in reason.message


def test_addresses_in_a_cause_lose_their_signature() -> None:
    cause = one_line(ValueError("no answer from\nhttps://cdn/x?Signature=abc for you."))
    assert cause == "no answer from https://cdn/x for you"


def test_a_name_that_no_hub_has(client: Client) -> None:
    assert client.refused(repo="a--b/..c", variant="Q8_0")[0].code == "model_missing"


def test_a_server_that_is_no_hub(client: Client, published: HubStandIn) -> None:
    published.repos[REPO].commit = ""
    assert client.refused(variant="Q4_K_M")[0].code in ("model_missing", "download_failed")


def test_a_short_rate_limit_of_the_listing_is_waited_for_too(client: Client, published: HubStandIn) -> None:
    published.faults.api_status, published.faults.retry_after = 429, "1"
    reason, retryable = client.refused(variant="Q4_K_M")
    assert (reason.evidence["retry_after_s"], retryable) == (1.0, True)
    assert len(published.served("/api")) == 1 + len(PATIENCE.retry_waits_s)


@pytest.mark.parametrize("asked", ["99999999999999999999", "9" * 400, "86400"])
def test_a_pause_beyond_all_patience_is_not_counted_out(
    client: Client, published: HubStandIn, asked: str
) -> None:
    published.faults.api_status, published.faults.retry_after = 429, asked
    reason, _ = client.refused(variant="Q4_K_M")
    assert "later" in reason.remedy
    assert "99" not in reason.remedy
    assert len(published.served("/api")) == 1
