"""Static files: named by content, kept for ever, nothing outside of the directory."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from framework.dashboard.assets import Assets
from tests.dashboard.client import browser
from tests.dashboard.fake_system import STATIC, make_system


def files(tmp_path: Path, *names: str) -> Path:
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"/* {name} */", encoding="utf-8")
    return tmp_path


def test_the_address_changes_with_the_content(tmp_path: Path) -> None:
    before = Assets(files(tmp_path, "app.css")).url("app.css")
    (tmp_path / "app.css").write_text("changed", encoding="utf-8")
    assert Assets(tmp_path).url("app.css") != before


def test_without_the_fetched_scripts_no_script_is_loaded(tmp_path: Path) -> None:
    assert Assets(files(tmp_path, "app.js", "vendor/htmx-2.0.10.min.js")).scripts == ()


def test_htmx_comes_before_what_builds_on_it(tmp_path: Path) -> None:
    names = ("app.js", "vendor/htmx-ext-sse-2.2.4.min.js", "vendor/htmx-2.0.10.min.js")
    loaded = [url.partition("?")[0] for url in Assets(files(tmp_path, *names)).scripts]
    assert loaded == [
        "/static/vendor/htmx-2.0.10.min.js",
        "/static/vendor/htmx-ext-sse-2.2.4.min.js",
        "/static/app.js",
    ]


def test_another_major_version_of_htmx_is_not_taken(tmp_path: Path) -> None:
    names = ("app.js", "vendor/htmx-4.0.0.min.js", "vendor/htmx-ext-sse-2.2.4.min.js")
    assert Assets(files(tmp_path, *names)).scripts == ()


async def test_a_file_asked_for_by_its_hash_is_kept_for_a_year() -> None:
    async with browser(make_system()) as client:
        answer = await client.get(Assets(STATIC).url("app.css"))
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith("text/css")


async def test_an_outdated_hash_is_not_kept() -> None:
    async with browser(make_system()) as client:
        answer = await client.get("/static/app.css?h=000000000000")
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["..%2f..%2fpyproject.toml", "%2e%2e/app.css", "vendor", "nothing.css", ""])
async def test_nothing_else_can_be_read(path: str) -> None:
    async with browser(make_system()) as client:
        answer: httpx.Response = await client.get(f"/static/{path}")
    assert answer.status_code == 404
