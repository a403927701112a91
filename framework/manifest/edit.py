"""Change single values of a manifest's text; comments, order and everything else stay as they are. Pure.

The result is read again: an edit that came to anything but what was asked is refused, not shown.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomli
import tomlkit
from tomlkit.exceptions import TOMLKitError

from framework.manifest.key_paths import dotted

Path = tuple[str, ...]


class EditImpossible(Exception):
    """The text cannot be changed so; the message is a sentence that says why and what to do."""


@dataclass(frozen=True)
class Change:
    """A value to set at a path of tables. None takes it out."""

    path: Path
    value: Any


# tomlkit takes quadratic time over dotted keys: seconds for so many characters, a minute for a million.
MOST_CHARACTERS = 2**18


def edited(text: str, changes: Sequence[Change]) -> str:
    """The text with these values. Raises EditImpossible."""
    names = ", ".join(dotted(change.path) for change in changes)
    by_hand = f"{names} cannot be changed by itself here; change it by hand."
    if len(text) > MOST_CHARACTERS:
        raise EditImpossible(f"The file has more than {MOST_CHARACTERS:,} characters. {by_hand}")
    try:
        wanted = copy.deepcopy(tomli.loads(text))
        document = tomlkit.parse(text)
        for change in changes:
            _put(wanted, change, dict)
            _put(document, change, tomlkit.inline_table)
        result = tomlkit.dumps(document)
        found = tomli.loads(result)
    except (TOMLKitError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise EditImpossible(by_hand) from error
    if found != wanted:
        raise EditImpossible(by_hand)
    return result


def _put(
    node: MutableMapping[str, Any], change: Change, new_table: Callable[[], MutableMapping[str, Any]]
) -> None:
    *tables, name = change.path
    for table in tables:
        if table not in node:
            if change.value is None:
                return
            node[table] = new_table()
        node = node[table]
        if not isinstance(node, MutableMapping):
            raise TypeError(table)
    if change.value is None:
        node.pop(name, None)
    else:
        node[name] = _inline(change.value, new_table)


def _inline(value: Any, new_table: Callable[[], MutableMapping[str, Any]]) -> Any:
    """A table as value stands on the line of its key."""
    if not isinstance(value, Mapping):
        return value
    table = new_table()
    table.update(value)
    return table
