"""What each access key has used of its limits: requests at once, requests and tokens per time (08 §2.9).

Called by `routes` for every request of a key, in constant time. Limits are read from the manifest in force;
what was used is kept by the name of the access table, so that a reload, or a new key under the name,
changes nothing of it. Tokens are known when a request ends: one that has begun is finished, and what it
takes beyond the limit counts against those that come after.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.proxy.errors import ProxyError
from framework.proxy.recent_requests import MOST, RecentRequests
from framework.proxy.sliding_window import SlidingWindow
from framework.values.manifest import AccessKey
from framework.values.rate import Rate
from framework.values.units_text import HOUR_S, MINUTE_S, counted, duration

# Nobody knows when one of the running requests ends; clients that come back each second do no harm.
CONCURRENCY_RETRY_S = 1.0
# What a prompt is taken for where its client left before the engine counted it: English has about so many.
BYTES_PER_TOKEN = 4


@dataclass(slots=True, eq=False)
class KeyUse:
    """What one access key uses. A window is there once its limit was looked at."""

    running: int = 0
    recent: RecentRequests | None = None
    requests: SlidingWindow | None = None
    """Of rates of more requests than `recent` remembers."""
    tokens: SlidingWindow | None = None


@dataclass
class Allowances:
    """All keys of one endpoint. Belongs to one event loop; times are on the clock of its callers."""

    uses: dict[str, KeyUse] = field(default_factory=dict)
    changed: bool = False
    """Whether tokens were used since `as_json`."""

    def enter(self, key: AccessKey, now: float) -> KeyUse:
        """Begin a request; `leave` ends it. Raises ProxyError 429 with the time to wait, and counts
        nothing."""
        use = self.uses.get(key.name)
        if use is None:
            use = self.uses[key.name] = KeyUse()
        if key.concurrency is not None and use.running >= key.concurrency:
            raise ProxyError(
                "concurrency_limited",
                f"This access key may have {counted(key.concurrency, 'request')} at once "
                f"(access.{key.name}.concurrency); send this one again when another has ended.",
                retry_after_s=CONCURRENCY_RETRY_S,
            )
        if key.tokens is not None:
            use.tokens = _window(use.tokens, key.tokens, now)
            _refuse_beyond(use.tokens, key.tokens, now, "tokens_limited", f"access.{key.name}.tokens")
        if key.rate is not None:
            _count_request(use, key.rate, now, f"access.{key.name}.rate")
        use.running += 1
        return use

    def leave(self, use: KeyUse, tokens: int, now: float) -> None:
        """A request has ended, however it did, with so many tokens of prompt and answer."""
        use.running -= 1
        if use.tokens is not None and tokens:
            use.tokens.add(tokens, now)
            self.changed = True

    def tokens_left(self, keys: Iterable[AccessKey], now: float) -> dict[str, int]:
        """Tokens that keys with a limit may still use now, by name; below 0 after one that took too many."""
        left = {}
        for key in keys:
            if key.tokens is not None:
                use = self.uses.get(key.name)
                used = use.tokens.used(now) if use is not None and use.tokens is not None else 0.0
                left[key.name] = key.tokens.count - round(used)
        return left

    def as_json(self, now: float, wall: float) -> dict[str, Any]:
        """Used tokens by key, to be read by a later process; `wall` is `now` in seconds since 1970."""
        self.changed = False
        windows = {name: use.tokens for name, use in self.uses.items() if use.tokens is not None}
        return {
            name: {
                "period_s": window.period_s,
                "began": window.began_s - now + wall,
                "count": window.count,
                "before": window.before,
            }
            for name, window in windows.items()
            if window.used(now) > 0
        }

    def restore(self, kept: Mapping[str, Any], now: float, wall: float) -> None:
        """Go on with what `as_json` of an earlier process said. Whatever is no such value counts as
        nothing."""
        for name, one in kept.items():
            window = _restored(one, now, wall)
            if window is not None:
                self.uses.setdefault(name, KeyUse()).tokens = window


def _count_request(use: KeyUse, rate: Rate, now: float, field_name: str) -> None:
    """One more request. Raises ProxyError 429 where the rate does not allow it, and counts nothing."""
    if rate.count <= MOST:
        recent = use.recent = use.recent or RecentRequests()
        _refuse(recent.wait_s(rate.count, rate.period_s, now), rate, "rate_limited", field_name, "")
        recent.add(now)
        return
    use.requests = _window(use.requests, rate, now)
    _refuse_beyond(use.requests, rate, now, "rate_limited", field_name)
    use.requests.add(1, now)


def _window(window: SlidingWindow | None, limit: Rate, now: float) -> SlidingWindow:
    """The window of a limit; one of another period is left with what it holds as its use so far."""
    if window is not None and window.period_s == limit.period_s:
        return window
    used = 0 if window is None else round(window.used(now))
    return SlidingWindow(limit.period_s, now, used)


def _refuse_beyond(window: SlidingWindow, limit: Rate, now: float, code: str, field_name: str) -> None:
    _refuse(
        window.wait_s(limit.count, now), limit, code, field_name, ", counted over the last period by estimate"
    )


def _refuse(wait_s: float, limit: Rate, code: str, field_name: str, counted_how: str) -> None:
    if wait_s <= 0:
        return
    what = "tokens" if code == "tokens_limited" else "requests"
    raise ProxyError(
        code,
        f"This access key has used its {what}: it may have {limit} ({field_name}){counted_how};"
        f" the next may come in {_wait_text(wait_s)}.",
        retry_after_s=wait_s,
    )


def _wait_text(wait_s: float) -> str:
    """`28 h 50 min`, `1 min 9 s`: rounded up, so that whoever waits for so long is not refused again."""
    if wait_s < HOUR_S:
        return duration(math.ceil(wait_s))
    hours, minutes = divmod(math.ceil(wait_s / MINUTE_S), HOUR_S // MINUTE_S)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _restored(one: Any, now: float, wall: float) -> SlidingWindow | None:
    try:
        period_s, began = float(one["period_s"]), float(one["began"])
        count, before = int(one["count"]), int(one["before"])
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    # A clock that was set back must not leave a key without tokens for longer than a period.
    age_s = wall - began
    if period_s <= 0 or count < 0 or before < 0 or not -period_s <= age_s <= 2 * period_s:
        return None
    return SlidingWindow(period_s, now - max(0.0, age_s), count, before)
