"""Who waits how long when many models share GPUs: our policy, eviction by count, and none. Simulated.

python -m bench.pool_policies
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from bench.pool_traces import Trace, agents, at_random, bursts, conversations, everyday, roomy, rotation
from framework.planning.pools.cards import Card
from framework.planning.pools.policies import Policy, keep_all, lru_by_count, ours
from framework.planning.pools.simulation import Report, SimulatedModel, replay
from framework.values.units_text import duration

# Waits that differ by less are as good as each other.
TIE_SHARE = 0.02
COLUMNS = "trace, policy, hits, refused, swaps, p50 wait, p95 wait, longest, replay"


def traces() -> list[Trace]:
    """What is compared."""
    return [
        everyday(20_000),
        bursts(10_000),
        conversations(200),
        agents(24, 200),
        rotation(40),
        at_random(),
        roomy(20_000),
    ]


def safe_count(models: Sequence[SimulatedModel], cards: Sequence[Card]) -> int:
    """The largest count that an operator can write without ever running out of memory: so many of the largest
    models fit at once."""
    free = [card.bytes for card in cards]
    for number, model in enumerate(sorted(models, key=lambda model: -model.bytes)):
        need = model.bytes
        while need > 0:
            best = max(range(len(free)), key=free.__getitem__)
            if free[best] < min(need, cards[best].bytes):
                return max(1, number)
            taken = min(need, free[best])
            free[best] -= taken
            need -= taken
    return len(models)


def policies(trace: Trace) -> list[Policy]:
    """Ours and the others. By count three times: so that memory can never run out; the largest count that
    goes well, known only by having replayed this very trace; and by the average size of a model."""
    average = sum(model.bytes for model in trace.models) / len(trace.models)
    hopeful = min(len(trace.models), max(1, int(sum(card.bytes for card in trace.cards) / average)))
    safe = safe_count(trace.models, trace.cards)
    counts = sorted({safe, _best_count(trace, safe, hopeful), hopeful})
    return [ours(), *(lru_by_count(count) for count in counts), keep_all()]


def _best_count(trace: Trace, low: int, high: int) -> int:
    """The largest count, to within a twelfth, with which nothing is refused."""
    while high - low > 1 + low // 12:
        middle = (low + high) // 2
        refused = replay(trace.clients, trace.cards, trace.models, lru_by_count(middle)).refused
        low, high = (low, middle) if refused else (middle, high)
    return low


def main() -> None:
    """Print the table; status 1 if a policy that refuses nothing is better than ours anywhere."""
    columns = COLUMNS.split(", ")
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    beaten = []
    for trace in traces():
        reports: dict[str, Report] = {}
        for policy in policies(trace):
            begun_s = time.process_time()
            report = replay(trace.clients, trace.cards, trace.models, policy)
            reports[policy.name] = report
            print(_row(trace.name, policy.name, report, time.process_time() - begun_s), flush=True)
        mine = reports.pop("ours")
        beaten += [
            f"{trace.name}: {name} ({what})" for name, r in reports.items() for what in _better(r, mine)
        ]
    for line in beaten:
        print(f"\nbetter than ours: {line}")
    sys.exit(bool(beaten))


def _better(other: Report, mine: Report) -> list[str]:
    """In what the other policy is better. One that refuses requests has not done the work."""
    if other.refused > mine.refused:
        return []
    found = {
        "hits": other.hit_rate > mine.hit_rate,
        "swaps": other.swaps < mine.swaps,
        "p95 wait": other.p95_wait_s < (1 - TIE_SHARE) * mine.p95_wait_s,
    }
    return [what for what, is_better in found.items() if is_better]


def _row(trace: str, policy: str, r: Report, took_s: float) -> str:
    waits = " | ".join(
        "refused" if wait_s == float("inf") else duration(wait_s)
        for wait_s in (r.p50_wait_s, r.p95_wait_s, r.longest_wait_s)
    )
    return (
        f"| {trace} | {policy} | {r.hit_rate:.1%} | {r.refused / r.requests:.1%} | {r.swaps:,}"
        f" | {waits} | {took_s:.2f} s |"
    )


if __name__ == "__main__":
    main()
