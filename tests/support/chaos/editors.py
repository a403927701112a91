"""Every way in which editors and tools write a file, and texts that people save by mistake."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

Way = Callable[[Path, str, random.Random], None]
LONGEST_PAUSE_S = 0.15


def in_place(path: Path, text: str, _: random.Random) -> None:
    """Over what is there, then cut."""
    with path.open("r+", encoding="utf-8") as file:
        file.write(text)
        file.truncate()


def in_pieces(path: Path, text: str, dice: random.Random) -> None:
    """Truncated first, then piece by piece. No piece ends between two lines, so none is a manifest."""
    cuts = sorted(dice.sample(range(len(text) // 4, len(text)), 3))
    # In the middle of the word before an equals sign.
    cuts = [text.rfind(" = ", 0, cut) - 1 for cut in cuts]
    edges = [0, *cuts, len(text)]
    with path.open("w", encoding="utf-8") as file:
        for start, end in pairwise(edges):
            file.write(text[start:end])
            file.flush()
            time.sleep(dice.uniform(0.0, LONGEST_PAUSE_S) if end < len(text) else 0.0)


def renamed(path: Path, text: str, _: random.Random) -> None:
    """A temporary file takes its place."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def with_backup(path: Path, text: str, dice: random.Random) -> None:
    """The old file is renamed, then a new one written."""
    path.replace(path.with_name(f"{path.name}~"))
    time.sleep(dice.uniform(0.0, LONGEST_PAUSE_S))
    path.write_text(text, encoding="utf-8")


def made_anew(path: Path, text: str, dice: random.Random) -> None:
    """Deleted, and there again a moment later."""
    path.unlink()
    time.sleep(dice.uniform(0.0, LONGEST_PAUSE_S))
    path.write_text(text, encoding="utf-8")


def by_link(path: Path, text: str, _: random.Random) -> None:
    """The name becomes, or is, a symbolic link, which then points to another file."""
    target = path.with_name(f"{path.name}.{time.monotonic_ns()}")
    target.write_text(text, encoding="utf-8")
    link = path.with_name(f".{path.name}.link")
    link.symlink_to(target.name)
    link.replace(path)


WAYS: Mapping[str, Way] = {
    "in place": in_place,
    "in pieces": in_pieces,
    "renamed": renamed,
    "with backup": with_backup,
    "made anew": made_anew,
    "by link": by_link,
}


def broken(text: str, dice: random.Random) -> str:
    """A manifest with a mistake in it; never one that is valid by accident."""
    mistakes: tuple[Callable[[], str], ...] = (
        lambda: text[: text.rfind(" = ", 0, dice.randrange(len(text) // 4, len(text))) - 1],
        lambda: text.replace("context = 1024", "contex = 1024"),
        lambda: text.replace("context = 1024", 'context = "many"'),
        lambda: text + text[text.rindex("\n[models.") :],
        lambda: text.replace("[speculation.plain]", "[speculation.plain", 1),
        lambda: text.replace('speculation = "plain"', 'speculation = "none of these"'),
        lambda: text.replace("\n[models.", "\n[models.\0", 1),
        lambda: "<<<<<<< HEAD\n" + text,
    )
    return dice.choice(mistakes)()
