"""Is a GBNF text one that the engine may be given? Grammars of clients are hostile.

The engine's own parser recurses with every bracket, copies what is repeated, its search for left recursion
recurses with every rule, and its sampler follows every way to read a text, on a thread whose end would be the
server's. So all of that is bounded here first. Called for every grammar, those made here included; a large
one belongs into a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from framework.chat.gbnf import MAX_GRAMMAR_CHARS, ROOT, GrammarError
from framework.chat.gbnf_reader import MAX_DEPTH, MAX_RULES, Node, RuleTable, read_grammar
from framework.chat.gbnf_stacks import Stacks
from framework.chat.gbnf_ways import refuse_many_ways

__all__ = ["MAX_DEPTH", "MAX_RULES", "check_grammar"]

Rules = list[list[list[Node]]]


# A grammar is looked at by each layer it passes, and clients send the same one with every request.
@lru_cache(maxsize=16)
def check_grammar(text: str) -> None:
    """Raises GrammarError, naming the line or the rule, when the engine can't read the text or shouldn't."""
    size = len(text.encode(errors="replace"))
    if size > MAX_GRAMMAR_CHARS:
        raise GrammarError(f"the grammar has {size} bytes; {MAX_GRAMMAR_CHARS} are allowed")
    if "\0" in text:
        raise GrammarError("the grammar holds a NUL character")
    table = read_grammar(text)
    if ROOT not in table.numbers:
        raise GrammarError(f"the grammar has no rule named {ROOT}")
    rules = _defined(table)
    empty = _empty_rules(rules)
    _refuse_left_recursion(rules, empty, table.names)
    refuse_many_ways(Stacks(rules, empty, table.counted), table.numbers[ROOT], table.names)


def _defined(table: RuleTable) -> Rules:
    """The rules, each of which has to be there."""
    rules: Rules = []
    for name, ways in zip(table.names, table.rules, strict=True):
        if ways is None:
            raise GrammarError(f"the grammar uses {name}, which is not defined")
        rules.append(ways)
    return rules


def _empty_rules(rules: Rules) -> list[bool]:
    """Which rules match the empty text: each alternative counts the parts that are not known to."""
    missing: list[int] = []
    owners: list[int] = []
    users: dict[int, list[int]] = {}
    for number, ways in enumerate(rules):
        for way in ways:
            if all(isinstance(node, int) for node in way):
                for node in way:
                    users.setdefault(node, []).append(len(missing))  # type: ignore[arg-type]
                missing.append(len(way))
                owners.append(number)
    empty = [False] * len(rules)
    found = [owner for owner, count in zip(owners, missing, strict=True) if count == 0]
    while found:
        number = found.pop()
        if empty[number]:
            continue
        empty[number] = True
        for way_at in users.get(number, ()):
            missing[way_at] -= 1
            if missing[way_at] == 0:
                found.append(owners[way_at])
    return empty


def _refuse_left_recursion(rules: Rules, empty: list[bool], names: list[str]) -> None:
    """A rule that starts with itself would be entered for ever."""
    done: set[int] = set()
    for start in range(len(rules)):
        trail: dict[int, Iterator[int]] = {}
        if start not in done:
            trail[start] = _first_rules(rules[start], empty)
        while trail:
            number = next(reversed(trail))
            following = next(trail[number], None)
            if following is None:
                trail.pop(number)
                done.add(number)
            elif following in trail:
                raise GrammarError(
                    f"rule {names[following]} starts with itself (left recursion),"
                    " or repeats without an end what can be empty"
                )
            elif following not in done:
                trail[following] = _first_rules(rules[following], empty)


def _first_rules(ways: list[list[Node]], empty: list[bool]) -> Iterator[int]:
    """Rules that can be the first thing of an alternative."""
    for way in ways:
        for node in way:
            if not isinstance(node, int):
                break
            yield node
            if not empty[node]:
                break
