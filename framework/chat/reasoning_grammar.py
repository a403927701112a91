"""A grammar for a whole reply, out of one for what follows the reasoning.

Called by nativeserver.chat_request: a grammar holds from the first token, and models may think before that.
"""

from __future__ import annotations

import re

from framework.chat.gbnf import ROOT, Rules, add_until, quote

_ROOT_LINE = re.compile(rf"^{ROOT} ::= ", re.MULTILINE)
_REPLY = "after-reasoning"


def after_reasoning(grammar: str, start: str, end: str, *, is_open: bool) -> str:
    """Free text up to `end` before the grammar: always when reasoning is open already, else if `start` comes.

    The grammar is one that was made here: its root stands at the start of a line and nothing refers to it.
    """
    rules = Rules()
    blanks = rules.add("reasoning-space", r"[ \n]{0,8}")
    thought = f"{add_until(rules, 'reasoning-text', end)} {quote(end)} {blanks}"
    rules.root(f"{thought if is_open else f'({quote(start)} {thought})?'} {_REPLY}")
    return rules.text() + _ROOT_LINE.sub(f"{_REPLY} ::= ", grammar, count=1)
