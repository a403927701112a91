"""Live pages of requests: rows as they are written, for as long as the viewer may see them."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from framework.dashboard.live import Pace
from framework.proxy.inflight import InFlight
from framework.proxy.records import ActiveRequest
from framework.telemetry.events import utc_now
from framework.values.manifest import AccessKey
from tests.dashboard import samples
from tests.dashboard.fake_system import FakeSystem, make_system, set_access
from tests.dashboard.test_live import Stream, listening
from tests.telemetry.samples import Life, life, record

QUICK = Pace(interval_s=0.0, heartbeat_s=5.0)
BOSS = AccessKey("boss", sha256(b"b").hexdigest(), dashboard="operate")


def system_of(one: Life, mode: str = "metadata", **options: object) -> FakeSystem:
    system = make_system(samples.model("chat"), kept=one, **options)  # type: ignore[arg-type]
    system.services.request_log.adopt(mode)  # type: ignore[arg-type]
    return system


def end(system: FakeSystem, number: int, **fields: object) -> None:
    """A request ends, as the manager tells it."""
    system.services.request_log.keep(record(number, at=utc_now(), **fields))
    system.services.changes.mark()


def begin(system: FakeSystem, request_id: str) -> ActiveRequest:
    active = ActiveRequest(request_id, utc_now() - timedelta(seconds=3), "/v1/completions", 0.0, model="chat")
    in_flight = system.services.requests
    assert isinstance(in_flight, InFlight)
    in_flight.add(active)
    return active


async def until(stream: Stream, wanted: str) -> list[str]:
    """Everything that was sent up to the element or list with this name."""
    seen: list[str] = []
    while wanted not in seen:
        seen += await stream.next_ids()
    return seen


async def test_a_request_that_ends_is_put_on_top_with_its_speed_in_the_chart(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        system = system_of(one)
        end(system, 1, generation_tokens_per_s=40.0)
        one.until(lambda: one.store.find_requests(limit=1), "the first request")
        async with listening(system, {"page": "requests", "model": "chat"}) as stream:
            await until(stream, "requests")
            end(system, 2, model="other", generation_tokens_per_s=99.0)
            end(system, 3, generation_tokens_per_s=44.0)
            seen = await until(stream, "afterbegin:#request-rows")
            assert "speeds-chart" in seen
            assert "requests" not in seen


async def test_running_requests_come_age_and_go(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        system = system_of(one)
        async with listening(system, {"page": "requests"}) as stream:
            await until(stream, "running")
            active = begin(system, "req-live")
            system.services.changes.mark()
            await until(stream, "running")
            ages = await until_age(stream)
            assert len(ages) == 1
            system.services.requests.remove(active)  # type: ignore[attr-defined]
            system.services.changes.mark()
            await until(stream, "running")


async def until_age(stream: Stream) -> list[str]:
    while True:
        found = [name for name in await stream.next_ids() if name.endswith("-age")]
        if found:
            return found


async def test_the_stream_ends_when_its_key_may_only_view(tmp_path: Path) -> None:
    with life(tmp_path) as one:
        system = system_of(one, access=(BOSS,))
        async with listening(system, {"page": "requests"}) as stream:
            await until(stream, "requests")
            set_access(system, AccessKey("boss", BOSS.key_sha256, dashboard="view"))
            end(system, 1)
            with pytest.raises(StopAsyncIteration):
                while True:
                    assert not [name for name in await stream.next_ids() if "request" in name]


@pytest.mark.parametrize(
    ("mode", "text"), [("metadata", "Where its time went"), ("off", "nothing of it was kept")]
)
async def test_the_page_of_a_running_request_becomes_that_of_what_it_was(
    tmp_path: Path, mode: str, text: str
) -> None:
    with life(tmp_path) as one:
        system = system_of(one, mode)
        active = begin(system, "req-7")
        async with listening(system, {"page": "request", "id": "req-7"}, have="") as stream:
            await until(stream, "request")
            system.services.requests.remove(active)  # type: ignore[attr-defined]
            end(system, 7)
            while text not in (told := "".join(element.text for element in await stream.next())):
                assert "is kept" not in told
