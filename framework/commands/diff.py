"""`paddock diff`: what the running server would do with the manifest as the file is now (13 §4)."""

from __future__ import annotations

import json
from typing import Any

from framework.commands.context import connect
from framework.commands.failure import BAD_INPUT, OK
from framework.commands.options import JsonOption, ManifestOption, UrlOption
from framework.commands.output import complain, print_json, print_reason, problem_text, say

STYLES = {"start": "green", "replace": "yellow", "stop": "red", "live": "cyan"}


def command(manifest: ManifestOption = None, url: UrlOption = None, as_json: JsonOption = False) -> int:
    """Show what the file as it is now would change."""
    answer = connect(manifest, url).post("/manifest/diff")
    errors = [problem for problem in answer["problems"] if problem["severity"] == "error"]
    if as_json:
        print_json(answer)
    else:
        _print(answer)
    for problem in errors:
        complain(problem_text(problem))
    return BAD_INPUT if errors else OK


def _print(answer: dict[str, Any]) -> None:
    acting = [action for action in answer["actions"] if action["kind"] != "none"]
    for action in acting:
        replica = "" if action["replica"] is None else f", replica {action['replica']}"
        say(f"{action['kind']} {action['model']}{replica}", STYLES.get(action["kind"], ""))
        for change in action["changes"]:
            say(f"  {change['field']}: {_value(change['from'])} → {_value(change['to'])}")
            say(f"    {change['effect']}: {change['why']}")
        for reason in action["reasons"]:
            print_reason(reason, indent="  ")
    for notice in answer["notices"]:
        say(notice, "yellow")
    if not acting and not answer["problems"]:
        say("Nothing would change.")


def _value(value: Any) -> str:
    return "none" if value is None else json.dumps(value)
