"""Replay of requests over a pool that does not exist: who waits how long under which policy. Pure.

Called by bench/pool_policies.py and by tests of the policy. A request is a hit if its model is ready when it
comes. An engine serves as many requests at once as it has slots; others wait inside it. Who serves is never
cut off: told to end, it answers first. Time is simulated, so that a day passes in a moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf

from framework.planning.pools.cards import Card, Cards, Spot
from framework.planning.pools.decision import SOONEST_S, Evict, Refuse, Start, Wait
from framework.planning.pools.policies import Policy
from framework.values.pool import Applicant, Claim, Holding, Resident

POOL = "default"
# From the order to end until the memory is back.
END_S = 1.0


@dataclass(frozen=True)
class SimulatedModel:
    """A model of the fictive inventory."""

    name: str
    bytes: int
    load_s: float
    slots: int = 4
    priority: int = 0
    pinned: bool = False
    turn_after_s: float = 30.0


@dataclass(frozen=True)
class Ask:
    """One request of a client, so many seconds after the answer to its one before."""

    model: str
    serve_s: float
    pause_s: float


@dataclass(frozen=True)
class Report:
    """What came of a trace. A refused request, or one that is left in the end, has waited for ever."""

    requests: int
    refused: int
    hit_rate: float
    starts: int
    swaps: int
    """Instances that made room for others."""
    p50_wait_s: float
    p95_wait_s: float
    longest_wait_s: float
    """Among those that were served."""
    peak_bytes: Mapping[str, int]
    """Most that was ever held of each card."""


@dataclass(eq=False)
class _Request:
    client: int
    ask: Ask
    at_s: float


@dataclass(eq=False)
class _Instance:
    name: str
    model: SimulatedModel
    holding: Holding = "promised"
    is_loading: bool = False
    """Whether its start has begun; a promise before that only keeps memory for it."""
    leases: int = 0
    running: int = 0
    idle_since_s: float = 0.0
    ready_at_s: float = 0.0
    queue: deque[_Request] = field(default_factory=deque)
    victims: set[str] = field(default_factory=set)
    """Who has to end before its start can begin."""


def replay(
    clients: Sequence[Sequence[Ask]],
    cards: Sequence[Card],
    models: Sequence[SimulatedModel],
    policy: Policy,
) -> Report:
    """What the policy makes of the requests.

    `clients` each wait for an answer before they ask again; requests that come whatever happens are clients
    with one request each, whose pause is the time at which it comes.
    """
    run = _Replay(clients, cards, models, policy)
    run.run()
    return run.report()


class _Replay:
    def __init__(
        self,
        clients: Sequence[Sequence[Ask]],
        cards: Sequence[Card],
        models: Sequence[SimulatedModel],
        policy: Policy,
    ) -> None:
        self.policy = policy
        self.models = {model.name: model for model in models}
        self.cards = Cards(cards)
        self.scripts = [iter(script) for script in clients]
        self.now_s = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = count()
        self.instances: dict[str, _Instance] = {}
        self.of_model: dict[str, _Instance] = {}
        self.waiting: dict[str, deque[_Request]] = {}
        self.claims: dict[str, Claim] = {}
        """What models wait for, as it was decided last."""
        self.fresh: set[str] = set()
        """Models that began to wait since the last decision."""
        self.is_changed = False
        """Whether somebody started, ended or fell idle since the last decision."""
        self.look_at_s = -inf
        self.seen: list[Resident] | None = None
        """Residents as decisions see them; None once that is no longer true."""
        self.waits: list[float] = []
        self.hits = self.refused = self.starts = self.swaps = 0

    def run(self) -> None:
        for client in range(len(self.scripts)):
            self._next_request(client)
        while self.events:
            self.now_s, _, happens = heappop(self.events)
            happens()
            if self.fresh or self.is_changed:
                self._dispatch()
        # Nobody may be left waiting; a policy that does so has refused.
        self.refused += sum(len(requests) for requests in self.waiting.values())

    def report(self) -> Report:
        waits = sorted(self.waits) + [inf] * self.refused
        total = len(waits)

        def part(share: float) -> float:
            return waits[ceil(share * total) - 1] if total else 0.0

        return Report(
            total,
            self.refused,
            self.hits / total if total else 0.0,
            self.starts,
            self.swaps,
            part(0.5),
            part(0.95),
            max(self.waits, default=0.0),
            self.cards.peak_bytes(),
        )

    def _after(self, seconds: float, happens: Callable[[], None]) -> None:
        heappush(self.events, (self.now_s + seconds, next(self.numbers), happens))

    def _next_request(self, client: int) -> None:
        ask = next(self.scripts[client], None)
        if ask is not None:
            request = _Request(client, ask, self.now_s + ask.pause_s)
            self._after(ask.pause_s, partial(self._ask, request))

    # What happens

    def _ask(self, request: _Request) -> None:
        instance = self.of_model.get(request.ask.model)
        if instance is not None and instance.holding == "resident":
            self.hits += 1
            self._lease(instance, request)
            return
        queue = self.waiting.setdefault(request.ask.model, deque())
        queue.append(request)
        if instance is None and len(queue) == 1:
            self.fresh.add(request.ask.model)

    def _lease(self, instance: _Instance, request: _Request) -> None:
        instance.leases += 1
        instance.queue.append(request)
        self._serve(instance)

    def _serve(self, instance: _Instance) -> None:
        while instance.queue and instance.running < instance.model.slots:
            request = instance.queue.popleft()
            instance.running += 1
            self.waits.append(self.now_s - request.at_s)
            self._after(request.ask.serve_s, partial(self._answered, instance, request))

    def _answered(self, instance: _Instance, request: _Request) -> None:
        instance.leases -= 1
        instance.running -= 1
        self._serve(instance)
        self._next_request(request.client)
        if instance.leases:
            return
        instance.idle_since_s = self.now_s
        if instance.holding == "leaving":
            self._after(END_S, partial(self._ended, instance))
        else:
            self.is_changed = bool(self.waiting)

    def _loaded(self, instance: _Instance) -> None:
        instance.holding = "resident"
        instance.idle_since_s = instance.ready_at_s = self.now_s
        for request in self.waiting.pop(instance.model.name, ()):
            self._lease(instance, request)
        self.is_changed = True

    def _ended(self, instance: _Instance) -> None:
        self._forget(instance)
        self.is_changed = True
        for other in self.instances.values():
            other.victims.discard(instance.name)

    def _look_by(self, at_s: float) -> None:
        """Decide again by then: somebody may have been idle long enough, or waited too long."""
        if not self.now_s < self.look_at_s <= at_s:
            self.look_at_s = at_s
            heappush(self.events, (at_s, next(self.numbers), self._look))

    def _look(self) -> None:
        self.is_changed = bool(self.waiting)

    # What is decided

    def _dispatch(self) -> None:
        """Ask for all that wait or, if nothing but new ones came, for those."""
        asked = set(self.waiting) if self.is_changed else set(self.fresh)
        self.fresh.clear()
        self.is_changed = False
        self.seen = None
        open_models = [model for model in self.waiting if self._is_open(model)]
        before: list[Claim] = []
        for asker in self.policy.order(self._applicant(model) for model in open_models):
            if asker.model in asked:
                self._decide(asker, before)
            if asker.model in self.waiting and asker.model not in self.of_model:
                # One that only waits for its turn keeps its place, and no memory.
                claim = self.claims.get(asker.model, Claim(asker, {}, frozenset()))
                before.append(replace(claim, applicant=asker))

    def _is_open(self, model: str) -> bool:
        """Whether something has to be decided: nobody starts it, or all have ended that had to."""
        instance = self.of_model.get(model)
        return instance is None or not (instance.is_loading or instance.victims)

    def _decide(self, asker: Applicant, before: Sequence[Claim]) -> None:
        promise = self.of_model.get(asker.model)
        if promise is not None:
            # Its victims have ended. Whatever comes of it, others may have to look again.
            self._forget(promise)
            self._look_by(self.now_s + SOONEST_S)
            before = ()
        need = self.models[asker.model].bytes
        if self.seen is None:
            self.seen = [self._resident(instance) for instance in self.instances.values()]
        decision = self.policy.choose(
            asker, self.seen, before, lambda gone, _, kept: self.cards.place(need, gone, kept)
        )
        self.claims.pop(asker.model, None)
        if isinstance(decision, Start):
            self._start(asker.model, decision.plan)
        elif isinstance(decision, Evict):
            self._evict(asker.model, decision)
        elif isinstance(decision, Refuse):
            self._refuse(asker.model)
        else:
            self._wait(asker.model, decision)

    def _start(self, model: str, plan: Spot) -> None:
        instance = self._promise(model, plan, counts=True)
        instance.is_loading = True
        self.starts += 1
        self._after(instance.model.load_s, partial(self._loaded, instance))

    def _evict(self, model: str, decision: Evict[Spot]) -> None:
        for victim in decision.victims:
            instance = self.instances[victim.instance]
            instance.holding, self.seen = "leaving", None
            self.swaps += 1
            self.of_model.pop(victim.model)
            if not instance.leases:
                self._after(END_S, partial(self._ended, instance))
        self._promise(model, decision.plan).victims.update(v.instance for v in decision.victims)

    def _wait(self, model: str, decision: Wait[Spot]) -> None:
        if decision.claim is not None:
            self.claims[model] = decision.claim
        if decision.again_in_s is not None:
            self._look_by(self.now_s + decision.again_in_s)

    def _refuse(self, model: str) -> None:
        for request in self.waiting.pop(model):
            self.refused += 1
            self._next_request(request.client)

    def _promise(self, model: str, plan: Spot, *, counts: bool = False) -> _Instance:
        instance = _Instance(f"{model}#{next(self.numbers)}", self.models[model])
        self.instances[instance.name] = self.of_model[model] = instance
        self.cards.hold(instance.name, plan.needs_bytes, counts=counts)
        self.seen = None
        return instance

    def _forget(self, instance: _Instance) -> None:
        del self.instances[instance.name]
        self.seen = None
        self.cards.release(instance.name)
        if self.of_model.get(instance.model.name) is instance:
            del self.of_model[instance.model.name]

    def _applicant(self, model: str) -> Applicant:
        requests, facts = self.waiting[model], self.models[model]
        return Applicant(
            model,
            0,
            POOL,
            facts.priority,
            waiting=len(requests),
            oldest_wait_s=self.now_s - requests[0].at_s,
            turn_after_s=facts.turn_after_s,
        )

    def _resident(self, instance: _Instance) -> Resident:
        return Resident(
            instance.name,
            instance.model.name,
            0,
            POOL,
            instance.holding,
            self.cards.held(instance.name),
            instance.model.priority,
            instance.model.pinned,
            leases=instance.leases,
            idle_s=0.0 if instance.leases else self.now_s - instance.idle_since_s,
            ready_s=self.now_s - instance.ready_at_s,
            start_s=instance.model.load_s,
        )
