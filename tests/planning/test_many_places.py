"""Many launches one after the other: what is promised never exceeds what there is (FM-27)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from framework.planning.launch_place import place_launch
from framework.planning.launch_site import Site
from framework.values.pool import Resident
from framework.values.reason import Refused
from tests.support.launches import DENSE, EXPERTS, GIB, a_card, a_launch, a_pool, host

CARDS = st.lists(st.sampled_from([6.0, 12.0, 24.0, 48.0]), min_size=1, max_size=3)
WANTED = st.lists(
    st.tuples(
        st.sampled_from([DENSE, EXPERTS]),
        st.sampled_from([0, 4096, 65_536]),
        st.sampled_from(["whole", "shrunk", "offloaded"]),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40, deadline=None)
@given(CARDS, WANTED, st.sampled_from([None, 5, 10]))
def test_together_they_stay_within_every_device(
    sizes: list[float], wanted: list[tuple[str, int, str]], budget_gib: int | None
) -> None:
    # The cards always list everything as free, as some drivers do: only our own books can tell.
    cards = tuple(a_card(place, gib, total_gib=gib) for place, gib in enumerate(sizes))
    devices = (*cards, host(48.0, total_gib=48.0))
    pool = a_pool("auto", budget_bytes=budget_gib * GIB if budget_gib else None)
    residents: tuple[Resident, ...] = ()
    for number, (model, context, freedom) in enumerate(wanted):
        try:
            plan = place_launch(
                a_launch(model, n_ctx=context, pool=pool),
                Site(devices, residents),
                freedom,  # type: ignore[arg-type]
            )
        except Refused as refusal:
            assert refusal.failure.reason.code == "does_not_fit"
            continue
        sums: Counter[str] = Counter()
        for line in plan.fit.lines:
            sums[line.device] += line.bytes
        assert dict(sums) == dict(plan.fit.total_bytes)
        needs = plan.placement.needs_bytes
        residents = (*residents, Resident(f"m{number}.0.1", f"m{number}", 0, "p", "resident", needs))
    held: Counter[str] = Counter()
    for resident in residents:
        held.update(resident.bytes)
    for device in devices:
        most = device.total_bytes if budget_gib is None or device.name == "CPU" else budget_gib * GIB
        assert held[device.name] <= min(most, device.total_bytes)
