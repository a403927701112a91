"""Metrics of engines are text of strangers: what is taken, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.api.metrics.engines import engines
from framework.runtime.engine_metrics import EngineSample
from framework.runtime.foreign_metrics import LONGEST_TEXT_BYTES, MOST_SAMPLES, read_metrics
from framework.telemetry.exposition import render
from tests.telemetry.test_exposition import parsed

REAL = b"""# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 123456789012
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
llamacpp:spec_depth{slot="0"} 3.5
"""


def shown(raw: bytes, model: str = "chat") -> dict[str, list[tuple[dict[str, str], float]]]:
    """What a scraper gets of an engine that says `raw`."""
    return parsed(render(engines([EngineSample(model, 0, 0.0, read_metrics(raw))])))


def test_an_engine_keeps_its_names_and_gains_model_and_replica() -> None:
    found = shown(REAL)
    who = {"model": "chat", "replica": "0"}
    assert found["llamacpp:prompt_tokens_total"] == [(who, 123456789012.0)]
    assert found["llamacpp:spec_depth"] == [({**who, "slot": "0"}, 3.5)]


def test_engines_that_say_the_same_share_a_family() -> None:
    said = [EngineSample(model, 0, 0.0, read_metrics(REAL)) for model in ("a", "b")]
    text = render(engines(said))
    assert text.count("# TYPE llamacpp:requests_processing gauge\n") == 1
    assert [labels["model"] for labels, _ in parsed(text)["llamacpp:requests_processing"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"paddock_requests_total 7", "foreign_name"),
        (b'llamacpp:x{model="a"', "malformed"),
        (b"llamacpp:x", "malformed"),
        (b"llamacpp:x 1 2 3", "malformed"),
        (b"llamacpp:x-y 1", "foreign_name"),
        (b"llamacpp:x NaN", "bad_value"),
        (b"llamacpp:x 1e999", "bad_value"),
        (b"llamacpp:x 1_000", "bad_value"),
        (b'llamacpp:x{a="b" "c"} 1', "bad_labels"),
        (b'llamacpp:x{__name__="paddock_up"} 1', "bad_labels"),
        (b'llamacpp:x{a="\x1b[2J"} 1', "bad_labels"),
        (b'llamacpp:x{a="1",a="2"} 1', "bad_labels"),
        (b"llamacpp:x{" + b",".join(b'l%d="v"' % n for n in range(20)) + b"} 1", "bad_labels"),
        (b'llamacpp:x{a="' + b"v" * 500 + b'"} 1', "bad_labels"),
        (b"llamacpp:x{" + b"a" * 5000 + b"} 1", "malformed"),
        (b"\xff\xfe\x00", "malformed"),
    ],
)
def test_a_line_that_is_not_plainly_a_sample_is_left_out_and_counted(line: bytes, reason: str) -> None:
    found = shown(line + b"\n" + REAL)
    refused = [(labels["reason"], value) for labels, value in found["paddock_engine_metrics_refused"]]
    assert refused == [(reason, 1.0)]
    assert "paddock_requests_total" not in found
    assert "llamacpp:prompt_tokens_total" in found


def test_an_engine_cannot_pass_for_another_model() -> None:
    found = shown(b'llamacpp:x{model="other",replica="9"} 1\n')
    expected = {"model": "chat", "replica": "0", "exported_model": "other", "exported_replica": "9"}
    assert found["llamacpp:x"] == [(expected, 1.0)]


def test_series_without_end_are_cut() -> None:
    raw = b"".join(b'llamacpp:x{n="%d"} 1\n' % n for n in range(MOST_SAMPLES + 50))
    found = shown(raw)
    assert len(found["llamacpp:x"]) == MOST_SAMPLES
    assert found["paddock_engine_metrics_refused"][0][1] == 50.0


def test_an_answer_that_is_too_large_is_not_read() -> None:
    assert read_metrics(REAL + b"#" * LONGEST_TEXT_BYTES).families == {}


def test_builds_that_disagree_about_a_type_leave_it_open() -> None:
    said = [
        EngineSample(model, 0, 0.0, read_metrics(b"# TYPE llamacpp:x %s\nllamacpp:x 1\n" % kind))
        for model, kind in (("a", b"gauge"), ("b", b"counter"))
    ]
    assert "# TYPE llamacpp:x untyped\n" in render(engines(said))


@given(st.binary(max_size=300))
def test_whatever_an_engine_says_the_text_stays_readable(noise: bytes) -> None:
    for raw in (
        noise,
        b"llamacpp:" + noise,
        b'llamacpp:x{a="' + noise,
        b"# HELP llamacpp:x " + noise + b"\n" + REAL,
    ):
        shown(raw)


def test_what_was_not_said_lately_is_marked() -> None:
    said = [EngineSample("old", 0, 40.0, read_metrics(REAL)), EngineSample("mute", 0, None)]
    found = parsed(render(engines(said)))
    stale = {labels["model"]: value for labels, value in found["paddock_engine_metrics_stale"]}
    assert stale == {"old": 1.0, "mute": 1.0}
    assert [labels["model"] for labels, _ in found["paddock_engine_metrics_age_seconds"]] == ["old"]
