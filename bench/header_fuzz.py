"""Damage real headers at random, and show them to all that a header reaches: reader, facts, memory, JSON.

    python -m bench.header_fuzz [--rounds N] [--seed N]

Not part of `make bench`: it looks for faults, and takes minutes. Prints what failed, with the seed and the
round that make it again, and what took longer than a second; ends with 1 where anything did.
"""

from __future__ import annotations

import argparse
import io
import random
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson

from bench.sparse_gguf import write_sparse_gguf
from framework.api.inspect_notes import InspectSettings
from framework.api.inspection import Inspection, estimate_memory
from framework.api.shapes import inspect_json
from framework.models.companions import Companions
from framework.models.facts import assemble
from framework.models.file_set import FileSet
from framework.models.gguf_tensors import TensorResult, parse_tensors
from framework.models.header_cache import decode, encode
from framework.models.sparse_header import read_part
from framework.models.split_set import set_fault
from framework.values.engine import FileId
from tests.support.memory_rows import measured_models

ROUNDS = 50_000
SLOW_S = 1.0
TOKENS = 8
TENSORS = 60
# Of the whole file that a header is said to be of: large enough for whatever its tensors claim.
WHOLE_BYTES = 2**50
PATH = Path("/fuzz/model.gguf")
ABSURD = (0, 1, 127, 2**8, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**60, 2**62, 2**63, 2**64 - 1)


def headers() -> Iterator[bytes]:
    """Headers of every measured model, with a small vocabulary and their first tensors."""
    with tempfile.TemporaryDirectory(prefix="paddock-fuzz-") as folder:
        path = Path(folder) / "m.gguf"
        for model in measured_models().values():
            tensors = model.tensors[:TENSORS]
            write_sparse_gguf(path, model.architecture, TOKENS, model.facts, tensors)
            with path.open("rb") as file:
                whole = parse_tensors(file, path.stat().st_size)
                file.seek(0)
                yield file.read(whole.data_start)


def damaged(header: bytes, dice: random.Random) -> bytes:
    """The header with some bytes changed, inserted, removed, or cut off."""
    data = bytearray(header)
    for _ in range(dice.choice((1, 1, 1, 2, 4, 8))):
        place = dice.randrange(8, len(data) - 8)
        match dice.randrange(6):
            case 0:
                data[place] = dice.randrange(256)
            case 1:
                data[place] ^= 1 << dice.randrange(8)
            case 2:
                data[place : place + 8] = struct.pack("<Q", dice.choice(ABSURD))
            case 3:
                data[place : place + 4] = struct.pack("<I", dice.choice(ABSURD) % 2**32)
            case 4:
                del data[place : place + dice.randrange(1, 9)]
            case _:
                data[place:place] = dice.randbytes(dice.randrange(1, 9))
    return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.05 else data)


def show(data: bytes) -> str:
    """Everything that is done with a header; returns the status of reading it."""
    found = parse_tensors(io.BytesIO(data), len(data), total_bytes=WHOLE_BYTES)
    if "\n" in found.detail:
        raise ValueError(f"more than one line: {found.detail!r}")
    read_part(data, WHOLE_BYTES)
    if found.status == "ok":
        show_facts(found)
    return found.status


def show_facts(found: TensorResult) -> None:
    """What comes after reading."""
    file = FileId(PATH, WHOLE_BYTES, 1)
    set_fault([PATH], [found])
    if decode(encode(file, found), file) != found:
        raise ValueError("facts from the cache are others")
    facts = assemble(FileSet(PATH, (), (file,)), [found])
    memory = estimate_memory(facts, InspectSettings())
    orjson.dumps(inspect_json(Inspection(facts, Companions(), memory)))


def main() -> int:
    """Fuzz, and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    dice = random.Random(given.seed)
    every = list(headers())
    statuses: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for number in range(given.rounds):
        data = damaged(dice.choice(every), dice)
        started_s = time.process_time()
        try:
            statuses[show(data)] += 1
        except Exception as error:  # noqa: BLE001  this is what it looks for
            last = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
            if kind not in faults:
                print(f"seed {given.seed}, round {number}: {kind}: {error}", file=sys.stderr)
            faults[kind] += 1
        if time.process_time() - started_s > SLOW_S:
            print(f"seed {given.seed}, round {number}: slow", file=sys.stderr)
            faults["slow"] += 1
    print(f"{given.rounds} headers: {dict(statuses)}; faults: {dict(faults) or 'none'}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
