"""Builds of other times are understood, and get lines that they accept (06 §4, §6, 14 §2)."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.engines.command_line import Directions, LineInputs, build_sections, fill_line
from framework.values.request import ModelRequest
from tests.engines.eras import caps_of
from tests.engines.requests import a_request
from tests.fake_engine.command_line import parse
from tests.fake_engine.eras import Name

ENTRY, GGUF = Path("/opt/llama/llama-server"), Path("/m/demo.gguf")
NAMES: tuple[Name, ...] = get_args(Name)


@pytest.mark.parametrize(
    ("era", "version", "mtp", "ngram", "depth", "default", "types"),
    [
        ("plain", "b5604", None, None, None, False, ""),
        ("old", "b8900", None, "legacy", "--draft-max", False, "none ngram-cache ngram-simple ngram-mod"),
        ("renamed", "b9010", None, "new", "--spec-draft-n-max", False, "none draft eagle3 ngram-mod"),
        ("lists", "b9200", "draft-mtp", "new", "--spec-draft-n-max", True, "draft-simple draft-eagle3"),
        ("new", "b1", "draft-mtp", "new", "--spec-draft-n-max", True, "draft-dflash ngram-cache"),
        ("newest", "0.4.2-dev", "draft-mtp", "new", "--spec-draft-n-max", True, "draft-dspark"),
        ("fork", "b4113", "mtp", None, None, False, "none draft mtp ngram-mod suffix"),
    ],
)
def test_what_a_build_can_draft_with(
    era: Name, version: str, mtp: str | None, ngram: str | None, depth: str | None, default: bool, types: str
) -> None:
    caps = caps_of(era)
    assert caps.conclusive
    assert (caps.version, caps.mtp_token, caps.ngram_flavour) == (version, mtp, ngram)
    assert (caps.depth_flag, caps.has("--spec-default")) == (depth, default)
    assert set(types.split()) <= set(caps.spec_types)
    assert caps.drafter_flag == (None if era == "plain" else "--model-draft")


@pytest.mark.parametrize("era", ["renamed", "lists", "new", "newest"])
def test_renamed_flags_left_stubs(era: Name) -> None:
    assert {"--draft-max", "--draft-min", "--spec-ngram-size-n"} <= caps_of(era).removed.keys()


@pytest.mark.parametrize("era", ["plain", "old", "fork"])
def test_before_the_renames_there_were_no_stubs(era: Name) -> None:
    assert caps_of(era).removed == {}


def test_memory_mapping_has_other_flags_in_the_newest_builds() -> None:
    new, newest = caps_of("new"), caps_of("newest")
    assert (new.has("--no-mmap"), new.has("--load-mode")) == (True, False)
    assert (newest.has("--no-mmap"), newest.has("--load-mode")) == (False, True)
    assert "-dio" in new.short_flags - newest.short_flags


@pytest.mark.parametrize("era", NAMES)
def test_what_the_engine_needs_of_every_build(era: Name) -> None:
    assert {"--model", "--host", "--port", "--parallel", "--ctx-size", "--gpu-layers"} <= caps_of(era).flags


@pytest.mark.parametrize(
    ("era", "level"), [("plain", None), ("old", None), ("lists", None), ("new", 4), ("newest", 4)]
)
def test_levels_were_renumbered(era: Name, level: int | None) -> None:
    assert caps_of(era).trace_level == level


@pytest.mark.parametrize(("era", "form"), [("plain", "pair"), ("fork", "pair"), ("new", "colon")])
def test_scaled_adapters_are_written_in_two_ways(era: Name, form: str) -> None:
    assert caps_of(era).adapter_form == form


def test_only_a_help_that_is_written_by_hand_may_leave_flags_out() -> None:
    assert [era for era in NAMES if caps_of(era).is_partial] == ["fork"]


@pytest.mark.parametrize(
    ("era", "asked", "tokens"),
    [
        pytest.param("new", "auto", "--flash-attn auto", id="a word"),
        pytest.param("fork", "off", "--flash-attn off", id="a word of the fork"),
        pytest.param("plain", "on", "--flash-attn", id="a switch"),
        pytest.param("plain", "auto", "--flash-attn", id="a switch for auto, as the plan takes it"),
        pytest.param("plain", "off", "", id="no switch"),
    ],
)
def test_flash_attention_was_a_switch(era: Name, asked: str, tokens: str) -> None:
    assert " ".join(section("flash", era, a_request(flash_attn=asked))) == tokens


@pytest.mark.parametrize(
    ("era", "tokens"),
    [
        ("new", "--device none --fit off"),
        ("fork", "--device none"),
        ("plain", "--device none"),
    ],
)
def test_everything_on_the_host(era: Name, tokens: str) -> None:
    assert " ".join(section("placement", era, a_request(), cpu_only=True)) == tokens


def test_a_build_that_knows_no_devices_is_told_by_layers() -> None:
    caps = caps_of("plain")
    without = replace(caps, flags=caps.flags - {"--device"})
    line = LineInputs(a_request(), without, ENTRY, GGUF, slots=1, cpu_only=True)
    (placement,) = [s.tokens for s in build_sections(line) if s.name == "placement"]
    assert placement == ("--gpu-layers", "0")


def test_a_switch_named_like_the_fit_step_is_not_taken_for_it() -> None:
    caps = caps_of("fork")
    with_fit = replace(caps, flags=caps.flags | {"--fit"}, switches=caps.switches | {"--fit"})
    line = LineInputs(a_request(), with_fit, ENTRY, GGUF, slots=1)
    assert not line.fit


REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "n_ctx": st.sampled_from([0, 512, 100_000]),
        "slots": st.sampled_from([1, 4]),
        "flash_attn": st.sampled_from(["on", "off", "auto"]),
        "swa_full": st.booleans(),
        "threads": st.sampled_from([None, 3]),
        "batch": st.just(512),
        "memory_mode": st.sampled_from(["auto", "manual"]),
        "gpu_layers": st.sampled_from([-1, 0, 7]),
        "template_kwargs": st.just({"enable_thinking": True}),
        "adapters": st.sampled_from([(), ((Path("/m/a.gguf"), 0.5), (Path("/m/b.gguf"), 1.0))]),
    },
)
DIRECTIONS = st.none() | st.builds(
    Directions,
    devices=st.sampled_from([(), ("Vulkan0",), ("CUDA0", "CUDA1")]),
    layers=st.sampled_from([None, 0, 33]),
    shares=st.sampled_from([(), (3, 1)]),
    cache_ram_mib=st.sampled_from([None, 512]),
)


@given(
    st.sampled_from(NAMES),
    REQUESTS,
    DIRECTIONS,
    st.booleans(),
    st.sampled_from([(None, None), ("q8_0", "q8_0")]),
)
def test_every_build_accepts_the_line_it_gets(
    era: Name,
    fields: dict[str, Any],
    directions: Directions | None,
    cpu_only: bool,
    cache_types: tuple[str | None, str | None],
) -> None:
    """What a build of the time would refuse ends this test, as it would end the start."""
    caps = caps_of(era)
    if caps.adapter_form is None:
        fields = {**fields, "adapters": ()}
    request = a_request(**fields)
    line = LineInputs(
        request,
        caps,
        ENTRY,
        GGUF,
        slots=request.slots,
        context=request.n_ctx,
        cache_types=cache_types,
        cpu_only=cpu_only,
        projector=Path("/m/mmproj.gguf"),
        template=True,
        directions=directions,
    )
    argv = fill_line(build_sections(line), port=8080, template_path=Path("/run/template.jinja"))
    given = parse(argv[1:], era)
    assert given["--model"] == str(GGUF)
    assert given["--parallel"] == str(request.slots)


def section(name: str, era: Name, request: ModelRequest, **fields: Any) -> tuple[str, ...]:
    """Tokens of one section of a line for the build of an era."""
    sections = build_sections(LineInputs(request, caps_of(era), ENTRY, GGUF, slots=1, **fields))
    return tuple(chain.from_iterable(one.tokens for one in sections if one.name == name))
