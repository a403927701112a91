"""Until when a certificate holds, and what is told before and after."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from framework.api.doctor import Surroundings, examine
from framework.certificate_dates import certificate_reason, ends_at
from framework.certificate_watch import CertificateWatch
from framework.engines.probe import CapabilityCache
from framework.manifest.load import load_manifest
from framework.telemetry.changes import Changes
from framework.telemetry.events import EventLog
from framework.tls import Certificate
from framework.values.manifest import Tls

DATA = Path(__file__).parent / "data" / "tls"
# The two ways in which certificates write a date.
UNTIL_2030 = (DATA / "until-2030.crt").read_text()
UNTIL_2126 = (DATA / "one.crt").read_text()
END = datetime(2030, 3, 14, tzinfo=UTC)


def test_the_end_is_read_as_it_is_written() -> None:
    end = ends_at(UNTIL_2030)
    assert end is not None
    assert end.date() == END.date()
    assert ends_at(UNTIL_2126) == datetime(2126, 11, 6, 20, 26, 2, tzinfo=UTC)


def test_a_chain_ends_with_the_first_of_it() -> None:
    assert ends_at(UNTIL_2126 + UNTIL_2030) == ends_at(UNTIL_2030)


@pytest.mark.parametrize("cut", range(40, len(UNTIL_2030) - 60, 97))
def test_what_is_no_certificate_has_no_end(cut: int) -> None:
    broken = UNTIL_2030[:cut] + "A" * 8 + UNTIL_2030[cut + 8 :]
    found = ends_at(broken)
    assert found is None or found == ends_at(UNTIL_2030) or found.year >= 1950


@pytest.mark.parametrize(
    "text",
    ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "\x00\xff"],
    ids=["empty", "text", "short", "bytes"],
)
def test_nothing_to_read_is_no_fault(text: str) -> None:
    assert ends_at(text) is None


@pytest.mark.parametrize(
    ("before", "code", "said"),
    [
        (timedelta(days=15), None, ""),
        (timedelta(days=14), "certificate_expires", "ends in 14 days"),
        (timedelta(days=1, hours=1), "certificate_expires", "ends tomorrow"),
        (timedelta(hours=1), "certificate_expires", "ends today"),
        (timedelta(0), "certificate_expired", "ended on 2030-03-14"),
        (timedelta(days=-400), "certificate_expired", "ended on 2030-03-14"),
    ],
    ids=["15-days", "14-days", "tomorrow", "today", "now", "long-past"],
)
def test_it_is_told_two_weeks_before(before: timedelta, code: str | None, said: str) -> None:
    reason = certificate_reason(Path("/c.pem"), END, END - before)
    assert (reason.code if reason else None) == code
    assert reason is None or (said in reason.message and "Renew it" in reason.remedy)


def test_each_stage_is_an_event_once(tmp_path: Path) -> None:
    events, now = EventLog(Changes()), [END - timedelta(days=100)]
    certificate = Certificate(_pair(tmp_path))
    certificate.ends_at = END
    watch = CertificateWatch(certificate, events, now=lambda: now[0])

    def told() -> list[str]:
        watch.look()
        watch.look()
        found = events.recent(kind="certificate", limit=100)
        return [event.reason.code if event.reason else "renewed" for event in found]

    assert told() == []
    now[0] = END - timedelta(days=3)
    assert told() == ["certificate_expires"]
    now[0] = END
    assert told() == ["certificate_expires", "certificate_expired"]
    certificate.ends_at = END + timedelta(days=90)
    assert told() == ["certificate_expires", "certificate_expired", "renewed"]


def test_a_listener_knows_the_end_of_what_it_shows(tmp_path: Path) -> None:
    assert Certificate(_pair(tmp_path)).ends_at == ends_at(UNTIL_2126)
    assert Certificate(None).ends_at is None


async def test_doctor_says_how_long_it_holds(tmp_path: Path) -> None:
    _pair(tmp_path)
    manifest = tmp_path / "serve.toml"
    manifest.write_text('[server]\ntls = { certificate = "file:chain.pem", key = "file:key.pem" }\n')
    around = Surroundings(tmp_path / "state", None, None)
    checks = await examine(load_manifest(manifest, {}), {}, CapabilityCache(), around)
    assert [(check.ok, check.reason) for check in checks if check.name == "certificate"] == [(True, None)]


def _pair(folder: Path) -> Tls:
    shutil.copy(DATA / "one.crt", folder / "chain.pem")
    shutil.copy(DATA / "one.key", folder / "key.pem")
    (folder / "key.pem").chmod(0o600)
    return Tls(folder / "chain.pem", folder / "key.pem", "1")
