"""The editor of the manifest over a folder: who sees what, what forms do, what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from framework.api.turns import MOST
from framework.dashboard.pages.manifest import read_way, way_form
from framework.values.manifest import AccessKey
from framework.values.manifest_edit import FieldEdit, Way
from tests.dashboard import samples
from tests.dashboard.client import SAME_ORIGIN, browser, csrf_of, page, submit
from tests.dashboard.fake_system import FakeSystem, make_system
from tests.dashboard.html import parse

MODEL = '[models.smollm2]\nsource = "a.gguf"\n'
TEXT = f'\n# mine\n{MODEL}environment = {{ HF_TOKEN = "S3CR3T" }}\n'
WAY = way_form(Way("", (FieldEdit(("slots",), 1),)))
VIEWER = AccessKey("eyes", sha256(b"look").hexdigest(), dashboard="view")


def system(folder: Path, *access: AccessKey) -> FakeSystem:
    (folder / "serve.toml").write_text(TEXT)
    return make_system(samples.model(), access=access, folder=folder)


def base(folder: Path) -> str:
    return sha256((folder / "serve.toml").read_bytes()).hexdigest()


async def test_the_text_comes_as_it_is_with_its_first_empty_line(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        tree = await page(client, "/manifest")
        html = (await client.get("/manifest")).text
        # Browsers drop the first line end behind the tag.
        field = unescape(html.partition("<textarea")[2].partition(">\n")[2].partition("</textarea>")[0])
        assert field == TEXT
        assert next(tree.all("input", name="base_sha256")).attributes["value"] == base(tmp_path)


async def test_who_may_only_look_sees_no_secret_no_form_and_no_history(tmp_path: Path) -> None:
    async with browser(system(tmp_path, VIEWER)) as client:
        await client.post("/sign-in", data={"key": "look"}, headers=SAME_ORIGIN)
        html = (await client.get("/manifest")).text
        assert "S3CR3T" not in html
        assert "readonly" in html
        assert "manifest-history" not in html
        assert (await client.get("/manifest/history/1")).status_code == 403


async def test_a_form_with_the_line_ends_of_browsers_is_written_as_the_file_was(tmp_path: Path) -> None:
    typed = (TEXT + "# more\n").replace("\n", "\r\n")
    async with browser(system(tmp_path)) as client:
        answer = await submit(client, "/manifest/apply", text=typed, base_sha256=base(tmp_path))
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/manifest?done=")
        assert (tmp_path / "serve.toml").read_text() == TEXT + "# more\n"
        tree = await page(client, "/manifest")
        assert "Version 1" in tree.text


@pytest.mark.parametrize(
    ("text", "status"), [("x = 1\n", 400), (MODEL, 409)], ids=["with-errors", "moved-on"]
)
async def test_a_refusal_keeps_what_was_typed(tmp_path: Path, text: str, status: int) -> None:
    async with browser(system(tmp_path)) as client:
        sent = base(tmp_path) if status == 400 else "0" * 64
        answer = await submit(client, "/manifest/apply", text=text, base_sha256=sent)
        assert answer.status_code == status
        assert text in answer.text.replace("&#34;", '"')
        assert (tmp_path / "serve.toml").read_text() == TEXT
        assert ("manifest-conflict" in answer.text) == (status == 409)


async def test_a_large_manifest_fits_into_the_form(tmp_path: Path) -> None:
    text = MODEL + "# %%% \u00e4\n" * 60_000
    async with browser(system(tmp_path)) as client:
        answer = await submit(client, "/manifest/apply", text=text, base_sha256=base(tmp_path))
        assert answer.status_code == 303
    assert (tmp_path / "serve.toml").read_text() == text


async def test_while_typing_only_the_findings_are_sent(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        token = next((await page(client, "/")).all("input", name="csrf_token")).attributes["value"]
        headers = {**SAME_ORIGIN, "hx-request": "true", "hx-target": "manifest-check"}
        fields = {"csrf_token": token, "text": "slot = 1\n", "base_sha256": base(tmp_path)}
        answer = await client.post("/manifest/check", data=fields, headers=headers)
        assert answer.text.strip().startswith('<section id="manifest-check"')
        assert 'data-line="1"' in answer.text


async def test_a_finding_says_what_was_meant_first_and_nothing_twice(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        text = MODEL + 'contxt = 1\nload = "sometimes"\n'
        answer = await submit(client, "/manifest/preview", text=text, base_sha256=base(tmp_path))
        rows = parse(answer.text).one(id="manifest-check").all("li")
    unknown, wrong = (row for row in rows if "tone-bad" in row.attributes["class"])
    assert unknown.text.index("did you mean context") < unknown.text.index("allowed engine")
    assert wrong.text.count('"on-demand"') == wrong.text.count('"sometimes"') == 1


async def test_a_preview_tells_new_models_from_changed_ones(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        text = '[models.other]\nsource = "a.gguf"\n'
        answer = await submit(client, "/manifest/preview", text=text, base_sha256=base(tmp_path))
        told = [row.text for row in parse(answer.text).one(id="manifest-preview").all("strong")]
    assert told == ["is removed", "is added"]


async def test_a_remedy_lands_in_the_text_and_writes_nothing(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        answer = await submit(client, "/manifest/remedy", model="smollm2", way=WAY)
        assert answer.status_code == 200
        assert "slots = 1" in answer.text
        assert "# mine" in answer.text
    assert (tmp_path / "serve.toml").read_text() == TEXT


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        pytest.param("/remedy", {"model": "nobody", "way": WAY}, 400, id="no-such-model"),
        pytest.param("/remedy", {"model": "smollm2", "way": "no json"}, 400, id="no-way"),
        pytest.param("/remedy", {"model": "smollm2", "way": "[[1, 2]]"}, 400, id="half-a-way"),
        pytest.param("/remedy", {"model": "smollm2", "way": "[" * 5000}, 400, id="too-deep"),
        pytest.param("/remedy", {"model": "smollm2"}, 400, id="nothing"),
        pytest.param("/preview", {"text": "x", "file": "/etc/passwd"}, 404, id="another-file"),
        pytest.param("/apply", {"text": "x", "file": "/etc/passwd"}, 404, id="apply-to-another-file"),
        pytest.param("/revert", {"version": "1"}, 404, id="no-version"),
        pytest.param("/revert", {"version": "x"}, 404, id="no-number"),
    ],
)
async def test_forms_that_are_none_of_ours_do_nothing(
    tmp_path: Path, path: str, fields: dict[str, str], status: int
) -> None:
    async with browser(system(tmp_path)) as client:
        assert (await submit(client, f"/manifest{path}", **fields)).status_code == status
    assert (tmp_path / "serve.toml").read_text() == TEXT


async def test_a_file_that_is_gone_is_said_and_can_be_looked_at(tmp_path: Path) -> None:
    running = system(tmp_path)
    (tmp_path / "serve.toml").unlink()
    async with browser(running) as client:
        assert "does not exist" in (await page(client, "/manifest")).text
        answer = await submit(client, "/manifest/apply", text=MODEL, base_sha256=sha256(b"").hexdigest())
        assert answer.status_code == 500
        assert "Nothing was written" in answer.text


@pytest.mark.parametrize("value", [1, "q8_0", None, {"k": "q8_0"}], ids=["number", "text", "out", "table"])
def test_a_way_comes_back_from_its_form(value: object) -> None:
    edits = (FieldEdit(("placement", "split"), value, "model"), FieldEdit(("mode",), "off", "policy"))
    assert read_way(way_form(Way("said", edits))).edits == edits


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "5", json.dumps([[[], 1, "model"]]), json.dumps([[["a"], 1, "server"]])]
)
def test_what_is_no_way_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_way(text)


async def test_a_file_whose_name_is_no_text_is_edited_as_any(tmp_path: Path) -> None:
    running = system(tmp_path)
    (tmp_path / "serve.toml").write_text('include = ["more*.toml"]\n' + TEXT)
    (tmp_path / os.fsdecode(b"more\xff.toml")).write_text('[models.b]\nsource = "b.gguf"\n')
    async with browser(running) as client:
        tree = await page(client, "/manifest")
        link = next(link for link in tree.all("a") if "more" in link.text)
        fields = (await page(client, link.attributes["href"])).all("input")
        sent = {field.attributes["name"]: field.attributes["value"] for field in fields}
        new = '[models.c]\nsource = "c.gguf"\n'
        answer = await submit(client, "/manifest/apply", **{**sent, "text": new})
    assert answer.status_code == 303, answer.text
    assert (tmp_path / os.fsdecode(b"more\xff.toml")).read_text() == new


@pytest.mark.parametrize("way", [r'[[["\ud800"], 1, "model"]]', r'[[["slots"], {"\udfff": 1}, "model"]]'])
async def test_a_remedy_with_half_a_character_is_none_of_ours(tmp_path: Path, way: str) -> None:
    async with browser(system(tmp_path)) as client:
        answer = await submit(client, "/manifest/remedy", model="smollm2", way=way)
        assert answer.status_code == 400


async def test_nobody_makes_us_read_a_text_without_the_right_to_change_it(tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"text=" + b"a" * 1000

    headers = {**SAME_ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    async with browser(system(tmp_path, VIEWER)) as client:
        answer = await client.post("/manifest/check", content=endless(), headers=headers)
        assert (answer.status_code, sent) == (303, 0)
        await client.post("/sign-in", data={"key": "look"}, headers=SAME_ORIGIN)
        answer = await client.post("/manifest/check", content=endless(), headers=headers)
        assert (answer.status_code, sent) == (403, 0)


async def test_while_everything_is_busy_a_check_is_told_so_and_an_apply_is_not(tmp_path: Path) -> None:
    running = system(tmp_path)
    async with browser(running) as client:
        form = {"csrf_token": await csrf_of(client), "text": TEXT + "# more\n", "base_sha256": base(tmp_path)}
        with ExitStack() as places:
            for number in range(MOST):
                places.enter_context(running.services.turns.place(str(number)))
            answer = await submit(client, "/manifest/check", **form)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
            assert (await client.get("/manifest/remedies?model=smollm2")).status_code == 503
            assert (await submit(client, "/manifest/apply", **form)).status_code == 303
        assert (await submit(client, "/manifest/check", **form)).status_code == 200


async def test_a_check_that_is_refused_leaves_the_page_and_its_findings_alone(tmp_path: Path) -> None:
    async with browser(system(tmp_path)) as client:
        await csrf_of(client)
        headers = {**SAME_ORIGIN, "hx-request": "true", "hx-target": "manifest-check"}
        answer = await client.post(
            "/manifest/check", data={"csrf_token": "old", "text": "a"}, headers=headers
        )
    assert (answer.status_code, answer.headers["hx-retarget"]) == (403, "#notice")
    assert "The page is out of date" in parse(answer.text).one(id="notice").text
    assert "<main" not in answer.text
