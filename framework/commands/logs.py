"""`paddock logs`: the output of a model's engine, now or as it comes."""

from __future__ import annotations

from typing import Annotated

import typer

from framework.commands import parsers
from framework.commands.client import model_path
from framework.commands.context import connect
from framework.commands.failure import OK
from framework.commands.options import ManifestOption, ModelArgument, UrlOption
from framework.commands.output import note, safe

DEFAULT_LINES = 200
MOST_LINES = 20_000
MOST_REPLICA = 999

FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines as they come.")]
LinesOption = Annotated[
    int,
    typer.Option(
        "--lines",
        "-n",
        metavar="N",
        parser=parsers.whole_number("--lines", 0, MOST_LINES),
        help="So many of the last lines.",
    ),
]
ReplicaOption = Annotated[
    int,
    typer.Option(
        "--replica",
        metavar="N",
        parser=parsers.whole_number("--replica", 0, MOST_REPLICA),
        help="Of this replica.",
    ),
]


def command(
    model: ModelArgument,
    follow: FollowOption = False,
    lines: LinesOption = DEFAULT_LINES,
    replica: ReplicaOption = 0,
    manifest: ManifestOption = None,
    url: UrlOption = None,
) -> int:
    """Print what the engine of a model wrote."""
    client = connect(manifest, url)
    path = model_path(model, "logs")
    if not follow:
        text = client.get_text(path, lines=lines, replica=replica)
        if not text and lines:
            note(f"{model}: its engine has written nothing; it was not started since `paddock up`.")
        for line in text.removesuffix("\n").split("\n") if text else ():
            print(safe(line))
        return OK
    for line in client.stream(path, lines=lines, replica=replica, follow=1):
        print(safe(line), flush=True)
    return OK
