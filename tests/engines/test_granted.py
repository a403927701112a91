"""Slots and cache types that a build can give (06 §6.5, 03 §2)."""

from __future__ import annotations

import pytest

from framework.engines.granted import grant
from framework.values.engine import Capabilities
from framework.values.reason import Refused
from tests.engines.requests import a_request, caps_with, real_caps


def test_several_slots_share_one_cache() -> None:
    granted = grant(a_request(slots=4), real_caps(), {})
    assert (granted.slots, granted.unified, granted.reasons) == (4, True, ())


def test_without_a_shared_cache_there_is_one_slot_and_a_reason() -> None:
    granted = grant(a_request(slots=4), caps_with("--metrics"), {})
    assert (granted.slots, granted.unified) == (1, False)
    assert [reason.code for reason in granted.reasons] == ["slots_no_unified_kv"]
    assert granted.reasons[0].evidence["asked"] == 4


def test_one_slot_needs_nothing() -> None:
    granted = grant(a_request(slots=1), Capabilities(), {})
    assert (granted.slots, granted.unified, granted.reasons) == (1, False, ())


@pytest.mark.parametrize(
    ("slots", "variable", "extra", "unified"),
    [
        pytest.param(1, "1", (), True, id="variable"),
        pytest.param(4, "0", (), True, id="managed default outranks the variable"),
        pytest.param(4, "", ("-no-kvu",), False, id="argument outranks both"),
        pytest.param(4, "", ("--no-kv-unified", "-kvu"), True, id="last argument wins"),
    ],
)
def test_unified(slots: int, variable: str, extra: tuple[str, ...], unified: bool) -> None:
    request = a_request(slots=slots, extra_args=extra)
    assert grant(request, real_caps(), {"LLAMA_ARG_KV_UNIFIED": variable}).unified is unified


@pytest.mark.parametrize(
    ("configured", "extra", "granted"),
    [
        pytest.param((None, None), (), (None, None), id="nothing asked"),
        pytest.param(("Q8_0", "q4_1"), (), ("q8_0", "q4_1"), id="lower-cased, per axis"),
        pytest.param(("q8_0", None), ("-ctv", "q4_0"), ("q4_0", "q4_0"), id="the user's axis goes for both"),
        pytest.param((None, None), ("-ctk", "q4_0", "-ctv", "f32"), ("f32", "f32"), id="the heavier one"),
        pytest.param(("q9_9", None), (), (None, None), id="unknown type"),
    ],
)
def test_cache_types(
    configured: tuple[str | None, str | None],
    extra: tuple[str, ...],
    granted: tuple[str | None, str | None],
) -> None:
    request = a_request(cache_type=configured, extra_args=extra)
    assert grant(request, real_caps(), {}).cache_types == granted


@pytest.mark.parametrize(
    ("fields", "env"),
    [
        pytest.param({"cache_type": ("q8_0", "q8_0")}, {}, id="configured"),
        pytest.param({}, {"LLAMA_ARG_CACHE_TYPE_V": "Q8_0"}, id="variable"),
        pytest.param({"extra_args": ("-ctk", "q8_0")}, {}, id="taken over from the user's K"),
    ],
)
def test_a_quantised_v_cache_without_flash_attention_becomes_f16(
    fields: dict[str, object], env: dict[str, str]
) -> None:
    granted = grant(a_request(flash_attn="off", **fields), real_caps(), env)
    assert granted.cache_types[1] == "f16"
    assert [reason.code for reason in granted.reasons] == ["v_cache_f16"]


def test_a_quantised_k_cache_needs_no_flash_attention() -> None:
    granted = grant(a_request(flash_attn="off", cache_type=("q8_0", None)), real_caps(), {})
    assert (granted.cache_types, granted.reasons) == (("q8_0", None), ())


def test_arguments_that_crash_the_engine_are_refused() -> None:
    request = a_request(extra_args=("-fa", "off", "-ctv", "q8_0"))
    with pytest.raises(Refused) as refused:
        grant(request, real_caps(), {})
    failure = refused.value.failure
    assert (failure.reason.code, failure.retryable) == ("user_flag_rejected", False)


def test_removed_arguments_are_refused_with_the_engines_hint() -> None:
    with pytest.raises(Refused) as refused:
        grant(a_request(extra_args=("--draft-max", "4")), real_caps(), {})
    assert "--spec-draft-n-max" in refused.value.failure.reason.remedy
