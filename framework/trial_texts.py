"""What `paddock bench` asks: texts without repetition, and texts that repeat what stands in the question.

Each question is asked once: n-grams outlive a request, so an answer that was given before would be drafted
from memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Workload = Literal["prose", "edit"]
WORKLOADS: tuple[Workload, ...] = ("prose", "edit")

TOPICS = (
    "a lighthouse keeper",
    "the first bread of a village",
    "a storm over a harbour",
    "an old clockmaker",
    "a library at night",
    "the history of paper",
    "a walk through a dry river bed",
    "how bees find their way",
    "a violin that nobody plays",
    "the smell of rain",
)
NAMES = ("order", "invoice", "sensor", "ticket", "parcel", "booking", "account", "device", "route", "sample")
FIELDS = ("number", "state", "owner", "created_at", "changed_at", "total", "weight", "priority")


@dataclass(frozen=True)
class Question:
    """One request."""

    workload: Workload
    text: str


def questions(workload: Workload, count: int) -> tuple[Question, ...]:
    """So many different ones."""
    make = _prose if workload == "prose" else _edit
    return tuple(Question(workload, make(number)) for number in range(count))


def _prose(number: int) -> str:
    topic, part = TOPICS[number % len(TOPICS)], number // len(TOPICS) + 1
    return f"Write part {part} of a short essay about {topic}. Use plain sentences and no lists."


def _edit(number: int) -> str:
    """A small class in which one name is to be changed: nearly all of the answer stands in the question."""
    name, part = NAMES[number % len(NAMES)].title(), number // len(NAMES) + 1
    fields = "\n".join(f"    {name.lower()}_{field}_{part}: str" for field in FIELDS)
    lines = "\n".join(f'            "{field}": self.{name.lower()}_{field}_{part},' for field in FIELDS)
    return (
        f"Rename the class below to {name}Record and repeat all of its code unchanged otherwise.\n\n"
        f"@dataclass\nclass {name}{part}:\n{fields}\n\n    def as_dict(self) -> dict[str, str]:\n"
        f"        return {{\n{lines}\n        }}\n"
    )
