"""`paddock events`: what was decided, started, refused and failed, with its cause (13 §6)."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from framework.commands import parsers
from framework.commands.context import connect
from framework.commands.failure import OK
from framework.commands.moments import local_time
from framework.commands.options import JsonOption, ManifestOption, UrlOption
from framework.commands.output import note, print_json, print_json_line, safe, with_code

DEFAULT_COUNT = 50
MOST_EVENTS = 1000

FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events as they come.")]
CountOption = Annotated[
    int,
    typer.Option(
        "--lines",
        "-n",
        metavar="N",
        parser=parsers.whole_number("--lines", 1, MOST_EVENTS),
        help="So many of the last ones.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", parser=parsers.text("--model"), help="Of this model only."),
]
KindOption = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", parser=parsers.text("--kind"), help="Of this kind only."),
]


def command(
    follow: FollowOption = False,
    count: CountOption = DEFAULT_COUNT,
    model: ModelOption = None,
    kind: KindOption = None,
    manifest: ManifestOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> int:
    """Print the last events, oldest first.

    With --follow, --json prints one event a line.
    """
    client = connect(manifest, url)
    answer = client.get("/events", model=model, kind=kind, limit=count)
    if as_json and not follow:
        print_json(answer)
        return OK
    show = print_json_line if as_json else _print
    for event in answer["events"]:
        show(event)
    if fault := answer.get("storage_fault"):
        note(with_code(f"{fault['message']} {fault['remedy']}", fault))
    if follow:
        # Events between the two questions are not lost: the stream begins after the last one shown.
        last = answer["events"][-1]["id"] if answer["events"] else None
        for data in client.stream("/events/stream", model=model, kind=kind, since=last):
            show(json.loads(data))
    return OK


def _print(event: dict[str, Any]) -> None:
    owner = f"{event['model']}: " if event["model"] else ""
    text = with_code(f"{owner}{event['message']}", event["reason"])
    print(safe(f"{local_time(event['at'])}  {event['kind']:<17} {text}"), flush=True)
    reason = event["reason"] or {}
    if reason.get("remedy") and reason.get("severity") != "info":
        print(safe(f"  → {reason['remedy']}"), flush=True)
