"""`paddock key`: a key for the client, and what the manifest needs of it."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from framework.manifest.load import check_text
from framework.proxy.access import authorise
from tests.commands.conftest import Paddock


def test_what_it_prints_opens_an_endpoint_with_what_it_says_to_write(paddock: Paddock, place: object) -> None:
    ended = paddock("key", "my laptop")
    table = ended.err[ended.err.index("[access") :]
    loaded = check_text(Path("/nowhere/serve.toml"), table, {})
    assert loaded.manifest is not None
    found = authorise({"x-api-key": ended.out.strip()}, loaded.manifest)
    assert found is not None
    assert found.name == "my laptop"


def test_the_key_alone_is_on_standard_output(paddock: Paddock, place: object) -> None:
    ended = paddock("key")
    assert len(ended.out.strip()) > 40
    assert ended.out.strip() not in ended.err


def test_every_key_is_another_one(paddock: Paddock, place: object) -> None:
    assert paddock("key").out != paddock("key").out


def test_programs_get_it_as_json(paddock: Paddock, place: object) -> None:
    found = json.loads(paddock("key", "--json").out)
    assert found["sha256"] == sha256(found["key"].encode()).hexdigest()
