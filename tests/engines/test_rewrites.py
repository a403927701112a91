"""What recovery takes out of a line (06 §13, vectors of §16.5 and §16.6 in the manifest's one spelling)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines import rewrites
from framework.values.plan import Section


def user(line: str) -> tuple[Section, ...]:
    return (Section("user", tuple(line.split()), "user"),)


def line_of(sections: tuple[Section, ...]) -> str:
    return " ".join(token for section in sections for token in section.tokens)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        (
            "--flash-attn on -ctv q8_0 --cache-type-k q8_0",
            "--flash-attn off -ctv f16 --cache-type-k q8_0",
        ),
        ("-fa", "-fa off"),
        ("-fa --port 1", "-fa off --port 1"),
        ("--flash-attn auto --cache-type-v q4_0", "--flash-attn off --cache-type-v f16"),
        ("-fa off --flash-attn", "-fa off --flash-attn off"),
        ("-fa 1 -ctvd bf16", "-fa off -ctvd bf16"),
        ("-fa ON", "-fa off"),
        ("-fa -1", "-fa off"),
        ("-fa enabled --spec-draft-type-v iq4_nl", "-fa off --spec-draft-type-v f16"),
        ("-fa on --cache-type-v-draft Q8_0", "-fa off --cache-type-v-draft f16"),
    ],
)
def test_flash_attention_is_switched_off_and_the_value_caches_follow(line: str, changed: str) -> None:
    assert rewrites.has_flash_attention(user(line))
    assert line_of(rewrites.without_flash_attention(user(line))) == changed


@pytest.mark.parametrize("line", ["--flash-attn on -fa off", "-c 1", "", "-fa disabled", "-fa banana"])
def test_flash_attention_that_is_not_on_cannot_be_switched_off(line: str) -> None:
    assert not rewrites.has_flash_attention(user(line))


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("-c 1 --flash-attn -fa", "-c 1"),
        ("-fa -ctv q8_0", "-ctv f16"),
        ("--flash-attn --port 1", "--port 1"),
    ],
)
def test_a_switch_is_taken_away_without_what_follows_it(line: str, changed: str) -> None:
    assert rewrites.has_flash_attention(user(line), is_switch=True)
    off = rewrites.without_flash_attention(user(line), is_switch=True)
    assert line_of(off) == changed
    assert not rewrites.has_flash_attention(off, is_switch=True)


def test_the_last_flag_of_all_sections_decides() -> None:
    ours = Section("flash", ("--flash-attn", "on"))
    assert not rewrites.has_flash_attention((ours, *user("-fa off")))
    assert rewrites.has_flash_attention((ours, *user("-fa off -fa on")))


@pytest.mark.parametrize(
    ("line", "variable", "quantised"),
    [
        ("-ctv q8_0", "", True),
        ("--spec-draft-type-v q4_0", "", True),
        ("-ctk q8_0 -ctv f16", "", False),
        ("", "q8_0", True),
        ("", " bf16 ", False),
        ("-ctv", "", False),
    ],
)
def test_a_quantised_value_cache_is_seen_on_the_line_and_in_variables(
    line: str, variable: str, quantised: bool
) -> None:
    env = {"LLAMA_ARG_CACHE_TYPE_V": variable} if variable else {}
    assert rewrites.has_quantised_values(user(line), env) is quantised
    plain = rewrites.with_plain_values(user(line)), rewrites.without_quantised_values(env)
    assert not rewrites.has_quantised_values(*plain)


def test_variables_of_other_types_stay() -> None:
    env = {
        "LLAMA_ARG_CACHE_TYPE_V": "f16",
        "LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V": "q8_0",
        "LLAMA_ARG_CACHE_TYPE_K": "q8_0",
    }
    kept = rewrites.without_quantised_values(env)
    assert kept == {"LLAMA_ARG_CACHE_TYPE_V": "f16", "LLAMA_ARG_CACHE_TYPE_K": "q8_0"}


def test_text_only_takes_every_projector_with_its_value() -> None:
    assert line_of(rewrites.text_only(user("a --mmproj p b --mmproj=x --mmproj"))) == "a b"
    assert line_of(rewrites.text_only(user("-mm p --no-mmproj -mmu https://x -c 1"))) == "--no-mmproj -c 1"
    sections = (Section("projector", ("--mmproj", "/p.gguf")), *user("-c 1"))
    assert rewrites.text_only(sections) == user("-c 1")
    assert rewrites.without_projector({"LLAMA_ARG_MMPROJ": "/p", "A": "b"}) == {"A": "b"}


def test_a_fitted_line_keeps_its_devices() -> None:
    placed = "--rpc h:1 --device CUDA0,RPC0 --gpu-layers 31 --fit off --n-cpu-moe 2 --tensor-split 1,2"
    sections = (Section("placement", tuple(placed.split())), *user("-ngl 3"))
    assert line_of(rewrites.fitted(sections)) == "--rpc h:1 --device CUDA0,RPC0 --fit on -ngl 3"


@pytest.mark.parametrize(
    ("line", "runs"), [("", True), ("--fit on", True), ("--fit off", False), ("--fit off -fit 1", True)]
)
def test_the_fit_step_runs_unless_the_line_says_otherwise(line: str, runs: bool) -> None:
    assert rewrites.has_fit_step(user(line)) is runs


def test_the_fit_step_is_switched_off_in_its_place() -> None:
    sections = (Section("placement", ("--device", "CUDA0", "--fit", "on")), *user("-c 1"))
    assert line_of(rewrites.unfitted(sections)) == "--device CUDA0 --fit off -c 1"
    nowhere = (Section("model", ("-m", "x")), *user("-c 1"))
    assert line_of(rewrites.unfitted(nowhere)) == "-m x --fit off -c 1"


TOKENS = st.sampled_from(
    ["-fa", "--flash-attn", "on", "off", "ON", "auto", "-ctv", "q8_0", "f16", "--mmproj", "p", "-c", "1", ""]
)


@given(st.lists(st.lists(TOKENS, max_size=6), max_size=3))
def test_what_was_taken_out_is_out_whatever_the_line(lines: list[list[str]]) -> None:
    sections = tuple(Section("user", tuple(tokens), "user") for tokens in lines)
    assert not rewrites.has_projector(rewrites.text_only(sections), {})
    for is_switch in (False, True):
        off = rewrites.without_flash_attention(sections, is_switch=is_switch)
        assert not rewrites.has_flash_attention(off, is_switch=is_switch)
    assert not rewrites.has_quantised_values(rewrites.with_plain_values(sections), {})
