"""The text format: what Prometheus' own parser makes of it, whatever stands in labels and values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from framework.telemetry.exposition import Family, Sample, number_text, render


def parsed(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by their name, as Prometheus reads them."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_label_and_any_help_comes_back_as_it_was(label: str, meaning: str) -> None:
    text = render([Family("a_total", "counter", meaning, (Sample({"model": label, "x": "y"}, 3),))])
    assert parsed(text) == {"a_total": [({"model": label, "x": "y"}, 3.0)]}


def test_one_series_is_there_once() -> None:
    twice = (Sample({"model": "m"}, 1), Sample({"model": "m"}, 2))
    assert render([Family("a", "gauge", "A.", twice)]).count("\na{") == 1


def test_a_family_without_samples_says_what_it_is() -> None:
    assert render([Family("a", "gauge", "A.", ())]) == "# HELP a A.\n# TYPE a gauge\n"


def test_a_sample_without_labels_has_no_braces() -> None:
    assert render([Family("a", "gauge", "A.", (Sample({}, 1),))]).endswith("\na 1\n")


def test_counts_keep_their_digits_and_measured_values_nine() -> None:
    assert [number_text(n) for n in (12_345_678_901_234, 0.1 + 0.2, 1e-7, 2.0)] == [
        "12345678901234",
        "0.3",
        "1e-07",
        "2",
    ]
