"""Give a command to a model of the running server and report how it went. Used by load, unload and so on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from framework.commands.client import model_path
from framework.commands.context import connect
from framework.commands.failure import NOT_SO, OK
from framework.commands.output import complain, note, print_json, say, with_code
from framework.commands.status import print_reasons
from framework.commands.waiting import Command, wait_for


def give(
    command: Command,
    name: str,
    *,
    manifest: Path | None,
    url: str | None,
    wait: bool,
    as_json: bool,
    body: Mapping[str, object] | None = None,
) -> int:
    """The exit code. `as_json` prints the model of 13 §5, or without waiting the acceptance of 13 §8."""
    client = connect(manifest, url)
    accepted = client.post(model_path(name, command), body)
    if not wait:
        if as_json:
            print_json(accepted)
        else:
            say(f"{name}: {command} accepted; `paddock events` tells how it goes")
        return OK
    outcome = wait_for(client, name, command, accepted["event_id"])
    if as_json:
        print_json(outcome.model)
    elif outcome.ok:
        say(f"{name}: {outcome.message}", "green")
        if command != "unload":
            print_reasons(outcome.model)
    if outcome.ok:
        return OK
    if outcome.reason is None:
        complain(f"{command} of {name} failed: {outcome.message}")
    else:
        told = f"{outcome.reason['message']} {outcome.reason['remedy']}".rstrip()
        complain(f"{command} of {name} failed: {with_code(told, outcome.reason)}")
    if outcome.stays_queued:
        note(f"It stays in the queue and is loaded once there is room; `paddock unload {name}` takes it out.")
    return NOT_SO
