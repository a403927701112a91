"""The pages of model files over HTTP, with real files: good, broken, hostile, and gone."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from framework.dashboard.headers import CONTENT_SECURITY_POLICY
from framework.values.manifest import AccessKey
from tests.api.model_folder import MARKUP, fill
from tests.dashboard import samples
from tests.dashboard.client import browser, page
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.html import Element, parse

KEY = AccessKey("watcher", sha256(b"secret").hexdigest(), dashboard="view")


def system(folder: Path) -> FakeSystem:
    return make_system(samples.model(), folder=fill(folder))


def url_of(tree: Element, name: str) -> str:
    return next(a.attributes["href"] for a in tree.one("main").all("a") if a.text == name)


async def test_the_navigation_leads_to_the_files(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        tree = await page(client, url_of_nav(await page(client, "/")))
    assert tree.one("nav", aria_label="Pages").one("a", aria_current="page").text == "Files"
    assert [th.one("a").text for th in tree.all("th", scope="row")] == [
        "big-00001-of-00003.gguf",
        "broken.gguf",
        "markup <b>.gguf",
        "mmproj-tiny.gguf",
        "tiny-F32.gguf",
        "set-00001-of-00002.gguf",
    ]


def url_of_nav(tree: Element) -> str:
    return next(a.attributes["href"] for a in tree.one("nav").all("a") if a.text == "Files")


async def test_what_is_wrong_with_a_file_stands_in_its_row(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        rows = [body.text for body in (await page(client, "/files")).all("tbody")]
    assert "is not a GGUF file" in rows[1]
    assert "2 of 3 files of the model are missing" in rows[0]
    assert "projector" in rows[3]


async def test_a_file_shows_facts_template_weights_and_memory(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        tree = await page(client, url_of(await page(client, "/files"), "tiny-F32.gguf"))
    text = tree.one("main").text
    assert "Architecture llama" in text
    assert "Trained context 8,192 tokens" in text
    assert "mmproj-tiny.gguf" in text
    assert "8,192 tokens, 1 slot, KV cache f16" in tree.one(id="file-memory").text


async def test_the_form_is_an_ordinary_one_and_changes_the_memory(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        tree = await page(client, f"{url}?context=2048&slots=2&kv_cache=q8_0&ubatch=&offload=&device=H200")
    assert "2,048 tokens, 2 slots, KV cache q8_0" in tree.one(id="file-memory").text
    assert "H200" in tree.one(id="file-memory").text
    assert tree.one(id="f-context").attributes["value"] == "2048"
    assert tree.one(id="f-device").attributes["value"] == "H200"
    assert [o.text for o in tree.one(id="f-cache").all("option", selected="")] == ["q8_0"]
    assert tree.one("form", aria_label="Settings of a launch").attributes["method"] == "get"


async def test_a_pair_of_cache_types_of_an_address_stays_chosen(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        tree = await page(client, f"{url}?kv_cache=q8_0:f16")
    assert [o.text for o in tree.one(id="f-cache").all("option", selected="")] == ["q8_0:f16"]


async def test_a_script_gets_the_memory_alone(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        headers = {"hx-request": "true", "hx-target": "file-memory"}
        part = parse((await client.get(f"{url}?context=512", headers=headers)).text)
    assert next(part.all()).attributes["id"] == "file-memory"
    assert "512 tokens" in part.text


async def test_the_page_leads_to_the_same_as_json(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        tree = await page(client, f"{url}?context=512")
        answer = await client.get(url_of(tree, "As JSON"))
    assert answer.status_code == 200
    assert answer.json()["memory"]["context"] == 512


async def test_a_broken_file_has_a_page_that_says_why(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        tree = await page(client, url_of(await page(client, "/files"), "broken.gguf"))
    assert "is not a GGUF file" in tree.one("main").text
    assert list(tree.all("form", method="get")) == []


async def test_a_projector_is_not_launched_alone(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        tree = await page(client, url_of(await page(client, "/files"), "mmproj-tiny.gguf"))
    assert list(tree.all(id="file-memory")) == []
    assert "Sees pictures yes" in tree.one("main").text


async def test_hostile_text_of_a_file_stays_text(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        listed = await page(client, "/files")
        answer = await client.get(url_of(listed, "markup <b>.gguf"))
    tree = parse(answer.text)
    for shown in (listed, tree):
        assert list(shown.all("img")) == []
        assert [s for s in shown.all("script") if "src" not in s.attributes] == []
        assert MARKUP in shown.one("main").text
    assert "\u202e" not in answer.text
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("name", [b"\xff\xfe.gguf", b"new\nline.gguf"], ids=["no-utf-8", "two-lines"])
async def test_a_file_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    fill(tmp_path / "other")
    odd = tmp_path / "models" / os.fsdecode(name)
    async with browser(system(tmp_path)) as client:
        odd.write_bytes((tmp_path / "other" / "models" / "tiny-F32.gguf").read_bytes())
        listed = await page(client, "/files")
        urls = [link.attributes["href"] for link in listed.one("main").all("a") if ".gguf" in link.text]
        answers = [await client.get(url) for url in urls]
    assert len(urls) == 7
    assert {answer.status_code for answer in answers} == {200}


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/files/0123456789abcdef", 404, "no such model file"),
        ("/files/%2e%2e%2fserve.toml", 404, ""),
        ("/files/" + "x" * 5000, 404, "no such model file"),
        ("/files/x?context=0", 404, "no such model file"),
    ],
)
async def test_what_cannot_be_looked_into(tmp_path: Path, path: str, status: int, said: str) -> None:
    async with browser(system(tmp_path)) as client:
        answer = await client.get(path)
    assert (answer.status_code, said in answer.text) == (status, True)


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ("context=100000000", "f-context", "a whole number from 1 to 16,777,216 tokens"),
        ("context=abc", "f-context", "found 'abc'"),
        ("context=0&slots=2", "f-context", "a whole number from 1"),
        ("slots=many", "f-slots", "a whole number from 1 to 256"),
        ("ubatch=-1", "f-ubatch", "a whole number from 1 to 65,536 tokens"),
        ("offload=x", "f-offload", "a whole number from 0"),
        ("device=" + "x" * 200, "f-device", "at most 100 characters"),
        ("kv_cache=q9", "f-cache", "q8_0"),
        ("kv_cache=q8_0&flash_attn=off", "f-cache", "needs flash attention"),
        ("flash_attn=maybe", "", "allowed is on, off"),
    ],
)
async def test_a_senseless_setting_is_told_beside_its_field(
    tmp_path: Path, query: str, field: str, said: str
) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        tree = await page(client, f"{url}?{query}", 400)
    (fault,) = tree.all("span", role="alert")
    assert said in fault.text
    if field:
        control = tree.one(id=field)
        assert control.attributes["aria-invalid"] == "true"
        assert control.attributes["aria-describedby"] == fault.attributes["id"]
    assert url_of(tree, "Back to the usual settings") == url
    assert "Not worked out" in tree.one(id="file-memory").text
    assert "Trained context 8,192 tokens" in tree.one("main").text


async def test_every_senseless_setting_is_told(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        tree = await page(client, f"{url}?context=x&slots=0&unified=2&device=CPU", 400)
    assert [span.attributes["id"] for span in tree.all("span", role="alert")] == [
        "f-context-fault",
        "f-slots-fault",
        "f-unified-fault",
    ]


async def test_what_was_typed_stays_in_the_form(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        tree = await page(client, f"{url}?context=100000000&slots=3&device=CUDA0", 400)
    values = {name: tree.one(id=f"f-{name}").attributes["value"] for name in ("context", "slots", "device")}
    assert values == {"context": "100000000", "slots": "3", "device": "CUDA0"}


async def test_a_script_gets_a_senseless_setting_as_a_notice(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        headers = {"hx-request": "true", "hx-target": "file-memory"}
        answer = await client.get(f"{url}?context=abc", headers=headers)
    assert (answer.status_code, "<form" in answer.text) == (400, False)
    assert "a whole number from 1 to 16,777,216 tokens" in parse(answer.text).text


async def test_odd_settings_are_told_beside_the_memory(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        notes = (await page(client, f"{url}?context=16384&offload=5")).one(id="file-notes")
        headers = {"hx-request": "true", "hx-target": "file-memory"}
        part = parse((await client.get(f"{url}?context=16384", headers=headers)).text)
        usual = (await page(client, url)).one(id="file-notes")
    assert "above the 8,192 tokens" in notes.text
    assert "no GPU to put them on" in notes.text
    assert "above the 8,192 tokens" in part.one(id="file-notes").text
    assert ("hidden" in usual.attributes, "hidden" in notes.attributes) == (True, False)


async def test_a_file_that_is_gone_since_the_list_is_a_page_of_its_own(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        url = url_of(await page(client, "/files"), "tiny-F32.gguf")
        (tmp_path / "models" / "tiny-F32.gguf").unlink()
        assert "no such model file" in (await page(client, url, 404)).text


async def test_without_any_file_the_page_says_what_to_do(tmp_path: Path) -> None:
    async with browser(make_system(folder=tmp_path)) as client:
        tree = await page(client, "/files")
    assert "No model file was found" in tree.text
    assert "models does not exist" in " ".join(tree.text.split())
    assert str(tmp_path / "models") in tree.text


async def test_with_access_the_files_ask_for_a_key_first(tmp_path: Path) -> None:
    async with browser(make_system(access=[KEY], folder=fill(tmp_path))) as client:
        for path in ("/files", "/files/0123456789abcdef"):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers["location"].startswith("/sign-in")) == (303, True)
