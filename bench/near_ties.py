"""Where two answers at temperature 0 part: how near the two tokens were, and whether drafts had a part in it.

A model's arithmetic depends on how many rows it computes at once. Where two tokens are nearly equal, that
alone settles which one is greater. The place is therefore computed again without any draft, with the last
rows of the text together in batches of several widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from rich.console import Console
from rich.table import Table

from tests.support.engine_pair import RunningServer

# Rows decoded at once: of depths 0, 1, 2, 4, 8 and 16 in one slot, and of several slots.
WIDTHS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 32)
NEAR = 1e-3
N_LIKELIEST = 1024
"""As many as the engine lists."""


@dataclass(frozen=True)
class NearTie:
    """A place where an answer left the undrafted one.

    Logits are given as log-probabilities; `span`: from the greatest to the least of the 1024 greatest, which
    is less than the range of all.
    """

    position: int
    undrafted: int
    drafted: int
    undrafted_logit: float
    drafted_logit: float
    span: float
    other_widths: tuple[int, ...]
    """Batch widths at which the model takes another token than the undrafted answer has, without drafts."""

    @property
    def is_near(self) -> bool:
        """Whether the two are as good as equal."""
        return abs(self.undrafted_logit - self.drafted_logit) <= NEAR * self.span


def near_tie(server: RunningServer, prompt: str, wanted: Sequence[int], found: Sequence[int]) -> NearTie:
    """The first place where `found` differs from `wanted`, computed again by the server without drafts."""
    at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(wanted, found, strict=False)))
    begun: list[int] = server.post("/tokenize", {"content": prompt, "add_special": True}).json()["tokens"]
    text = [*begun, *wanted[:at]]
    base = {"temperature": 0, "id_slot": 0, "speculative": {"type": "none"}, "cache_prompt": True}
    chances = _chances(server, {**base, "prompt": text, "n_predict": 1, "n_probs": N_LIKELIEST})
    others = []
    for width in WIDTHS:
        server.post("/completion", {**base, "prompt": text[:-width], "n_predict": 1, "n_probs": 0})
        answer = server.post("/completion", {**base, "prompt": text, "n_predict": 1, "return_tokens": True})
        if answer.json()["tokens"][0] != wanted[at]:
            others.append(width)
    return NearTie(
        position=at,
        undrafted=wanted[at],
        drafted=found[at],
        undrafted_logit=chances[wanted[at]],
        drafted_logit=chances[found[at]],
        span=max(chances.values()) - min(chances.values()),
        other_widths=tuple(others),
    )


def _chances(server: RunningServer, body: dict[str, object]) -> dict[int, float]:
    """Log-probability of each token for the next place."""
    record = server.post("/completion", body).json()["completion_probabilities"][0]
    return {entry["id"]: entry["logprob"] for entry in record["top_logprobs"] if entry["logprob"] > -1e9}


def print_ties(console: Console, ties: Sequence[NearTie]) -> None:
    """A line for each place; nothing when all texts were the same."""
    if not ties:
        return
    table = Table(title="where texts left the undrafted ones", title_justify="left")
    for column in (
        "at token",
        "undrafted",
        "drafted",
        "logit",
        "logit",
        "gap / range",
        "other without drafts",
    ):
        table.add_column(column, justify="right")
    for tie in ties:
        gap = abs(tie.undrafted_logit - tie.drafted_logit) / tie.span
        widths = ", ".join(map(str, tie.other_widths))
        table.add_row(
            str(tie.position),
            str(tie.undrafted),
            str(tie.drafted),
            f"{tie.undrafted_logit:.4f}",
            f"{tie.drafted_logit:.4f}",
            f"{gap:.1e}{'' if tie.is_near else ' not near'}",
            f"at {widths} rows" if widths else "at no width",
        )
    console.print(table)
