"""Files besides the model that change what its slots hold: adapters and control vectors (07 §11.4). Pure.

Called by planning.slot_saving.fingerprint. Over-inclusive on purpose: a name too many costs a look at no
file, a name too few would give a conversation the state of another adapter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from framework.engines.args import values_of

FLAGS = ("--lora", "--lora-scaled", "--control-vector", "--control-vector-scaled")
SCALED = "-scaled"
# From the right, so that the letter of a drive survives.
SCALE = re.compile(r":[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")


def sidecars(adapters: Iterable[Path], args: Sequence[str]) -> tuple[str, ...]:
    """Names of all files that adapters and arguments may mean, each once, in order.

    A value is taken as a whole, and each of its parts between commas; of scaled ones also what stands before
    the scale. Older builds take file and scale as two tokens, of which the first is the value.
    """
    found = [str(path) for path in adapters]
    for flag in FLAGS:
        for value in values_of(args, (flag,)):
            found += _candidates(value, is_scaled=flag.endswith(SCALED))
    return tuple(dict.fromkeys(found))


def _candidates(value: str, *, is_scaled: bool) -> Iterator[str]:
    pieces = value.split(",")
    for name in (value, *(pieces if len(pieces) > 1 else ())):
        if name:
            yield name
            scale = name.rfind(":")
            if is_scaled and scale > 0 and SCALE.fullmatch(name[scale:]):
                yield name[:scale]
