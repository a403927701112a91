"""`paddock key`: make an access key, and the line of the manifest that lets it in (01 §1 `[access]`)."""

from __future__ import annotations

import json
import secrets
from hashlib import sha256
from typing import Annotated

import typer

from framework.commands import parsers
from framework.commands.failure import OK
from framework.commands.options import JsonOption
from framework.commands.output import note, print_json, say

# 256 bits: nobody finds it by trying, whoever has its digest.
KEY_BYTES = 32
PREFIX = "pk-"
DEFAULT_NAME = "client"

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", parser=parsers.text("NAME"), help="Name of the access table to be."),
]


def command(name: NameArgument = DEFAULT_NAME, as_json: JsonOption = False) -> int:
    """Make an access key; only its digest goes into the manifest."""
    key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    digest = sha256(key.encode()).hexdigest()
    if as_json:
        print_json({"name": name, "key": key, "sha256": digest})
        return OK
    say(key)
    note("This is shown once. Give it to the client, and put its digest into the manifest:")
    note(f"[access.{_bare_or_quoted(name)}]")
    note(f'key = "sha256:{digest}"')
    return OK


def _bare_or_quoted(name: str) -> str:
    """A name as a key of TOML."""
    return name if name.isascii() and name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)
