"""Options that several commands share, with the same name, meaning and help everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from framework.commands import parsers

ManifestOption = Annotated[
    Path | None,
    typer.Option(
        "--manifest",
        metavar="PATH",
        parser=parsers.path("--manifest"),
        help="The manifest; default serve.toml, or PADDOCK_MANIFEST.",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        parser=parsers.text("--url"),
        help="A running server, as http://HOST:PORT; default: found by the manifest.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the facts as JSON and nothing else.")]
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", parser=parsers.text("MODEL"), help="Name or alias of a model.")
]
WaitOption = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until it is done; without, only give the command.")
]
