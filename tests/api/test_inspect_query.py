"""The settings of an inspection in an address."""

from __future__ import annotations

import pytest

from framework.api.errors import ApiError
from framework.api.inspect_notes import InspectSettings
from framework.api.inspect_query import INSPECT_QUERY, read_settings


def test_nothing_asks_for_the_defaults_of_the_engine() -> None:
    assert read_settings({}) == InspectSettings()


def test_empty_fields_of_a_form_count_as_absent() -> None:
    assert read_settings(dict.fromkeys(INSPECT_QUERY, "")) == InspectSettings()


def test_everything_that_the_command_takes_can_be_asked_for() -> None:
    query = {"context": "4096", "slots": "2", "kv_cache": "q8_0:f16", "ubatch": "256", "unified": "off"}
    query |= {"flash_attn": "off", "swa_full": "on", "offload": "0", "device": " CUDA0 "}
    assert read_settings(query) == InspectSettings(
        4096, 2, ("q8_0", "f16"), 256, False, False, True, 0, "CUDA0"
    )


def test_one_cache_type_is_that_of_both() -> None:
    assert read_settings({"kv_cache": "q8_0"}).cache_types == ("q8_0", "q8_0")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("context", "0"),
        ("context", "-1"),
        ("context", "many"),
        ("context", "9" * 400),
        ("context", "\u0664"),
        ("slots", "257"),
        ("ubatch", "1e3"),
        ("offload", "65537"),
        ("kv_cache", "q9_9"),
        ("kv_cache", "f16:q9_9"),
        ("unified", "maybe"),
        ("flash_attn", "1"),
        ("device", "x" * 101),
        ("device", "CUDA0\x1b[2J"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_does(name: str, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_settings({name: text})
    assert (refused.value.status, refused.value.param) == (400, name)
    assert "allowed is" in refused.value.message
    assert len(refused.value.message) < 300
