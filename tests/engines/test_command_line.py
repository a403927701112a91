"""The command line, row by row (06 §6.1, §16.7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from framework.engines.command_line import Directions, LineInputs, build_sections, fill_line
from framework.values.engine import Capabilities
from framework.values.reason import Refused
from tests.engines.requests import a_request, caps_with, real_caps

ENTRY = Path("/opt/llama/llama-server")
GGUF = Path("/models/demo.gguf")


def sections(
    caps: Capabilities | None = None, *, line: dict[str, Any] | None = None, **request: Any
) -> dict[str, tuple[str, ...]]:
    """Tokens by section for a request with the given fields."""
    asked = a_request(**request)
    facts = {"slots": 4, "context": asked.n_ctx} | (line or {})
    return {
        s.name: s.tokens for s in build_sections(LineInputs(asked, caps or real_caps(), ENTRY, GGUF, **facts))
    }


def test_the_whole_line_of_a_plain_model() -> None:
    line = build_sections(LineInputs(a_request(), real_caps(), ENTRY, GGUF, slots=4))
    assert " ".join(fill_line(line, port=1234)) == (
        "/opt/llama/llama-server -m /models/demo.gguf --host 127.0.0.1 --port 1234 --parallel 4 "
        "--flash-attn on --no-context-shift --alias demo --fit on --metrics --kv-unified --fit-ctx 8192 "
        "--jinja --log-verbosity 4"
    )


def test_an_explicit_context_is_kept_by_the_fit_step() -> None:
    found = sections(n_ctx=8000)
    assert found["context"] == ("-c", "8000")
    assert (found["placement"], found["fit-ctx"]) == (("--fit", "on"), ("--fit-ctx", "8000"))
    assert "fit-target" not in found


def test_an_automatic_context_is_left_to_the_fit_step_within_reason() -> None:
    found = sections()
    assert "context" not in found
    assert found["fit-ctx"] == ("--fit-ctx", "8192")


def test_an_automatic_context_on_host_memory_is_the_native_one() -> None:
    assert sections(line={"cpu_only": True})["context"] == ("-c", "0")


def test_manual_mode_without_layers_and_context_leaves_both_to_the_fit_step() -> None:
    found = sections(memory_mode="manual")
    assert "context" not in found
    assert found["placement"] == ("--fit", "on")
    assert (found["fit-ctx"], found["fit-target"]) == (("--fit-ctx", "8192"), ("--fit-target", "512"))


def test_manual_mode_with_a_context_keeps_it() -> None:
    found = sections(memory_mode="manual", n_ctx=8000)
    assert (found["context"], found["fit-ctx"]) == (("-c", "8000"), ("--fit-ctx", "8000"))


def test_fixed_layers_switch_the_fit_step_off() -> None:
    line = {"cpu_moe": 5, "tensor_split": (3.0, 1.5)}
    found = sections(memory_mode="manual", gpu_layers=20, line=line)
    assert found["placement"] == (
        *("--gpu-layers", "20", "--fit", "off"),
        *("--n-cpu-moe", "5", "--tensor-split", "3,1.5"),
    )
    assert found.keys().isdisjoint({"fit-ctx", "fit-target"})


def test_fixed_layers_keep_an_automatic_context_explicit() -> None:
    assert sections(memory_mode="manual", gpu_layers=0)["context"] == ("-c", "0")


def test_host_memory_only_needs_no_device_and_no_fit() -> None:
    found = sections(n_ctx=4096, line={"cpu_only": True})
    assert found["placement"] == ("--device", "none", "--fit", "off")
    assert "fit-ctx" not in found


def test_a_build_without_a_fit_step_gets_no_fit_flags() -> None:
    found = sections(caps_with("--jinja"), n_ctx=4096, memory_mode="manual", gpu_layers=3)
    assert found["placement"] == ("--gpu-layers", "3")
    assert "placement" not in sections(caps_with("--jinja"))


def test_an_inconclusive_probe_leaves_the_core_of_the_line() -> None:
    found = sections(Capabilities(), n_ctx=4096)
    assert (found["placement"], found["shift"], found["jinja"]) == (
        ("--fit", "on"),
        ("--no-context-shift",),
        ("--jinja",),
    )
    assert found.keys().isdisjoint({"metrics", "unified", "fit-ctx", "verbosity"})


def test_one_slot_needs_no_unified_cache() -> None:
    found = sections(line={"slots": 1})
    assert found["slots"] == ("--parallel", "1")
    assert "unified" not in found


def test_default_batches_are_left_to_the_engine() -> None:
    assert "batch" not in sections()
    assert sections(batch=1024)["batch"] == ("--batch-size", "1024", "--ubatch-size", "512")


def test_cache_types_stand_per_axis() -> None:
    found = sections(line={"cache_types": ("q8_0", None)})
    assert found["kv"] == ("--cache-type-k", "q8_0")


@pytest.mark.parametrize(
    ("fields", "section", "tokens"),
    [
        pytest.param({"threads": 3}, "threads", ("--threads", "3"), id="threads"),
        pytest.param({"flash_attn": "auto"}, "flash", ("--flash-attn", "auto"), id="flash"),
        pytest.param({"swa_full": True}, "window", ("--swa-full",), id="window"),
        pytest.param({"extra_args": ("-t", "8")}, "user", ("-t", "8"), id="extras"),
    ],
)
def test_settings_with_a_flag_of_their_own(
    fields: dict[str, Any], section: str, tokens: tuple[str, ...]
) -> None:
    assert sections(**fields)[section] == tokens
    assert sections().get(section) != tokens


def test_the_projector_and_the_speculation_block_stand_as_given() -> None:
    found = sections(line={"projector": Path("/models/mm.gguf"), "spec_block": ("--spec-type", "ngram-mod")})
    assert found["projector"] == ("--mmproj", "/models/mm.gguf")
    assert found["spec"] == ("--spec-type", "ngram-mod")


def test_template_arguments_are_one_json_object() -> None:
    tokens = sections(template_kwargs={"b": "é", "a": False})["template-kwargs"]
    assert tokens == ("--chat-template-kwargs", '{"a":false,"b":"é"}')
    assert json.loads(tokens[1]) == {"a": False, "b": "é"}


def test_template_arguments_of_the_request_win_over_those_of_reasoning() -> None:
    thinking = {"enable_thinking": True, "preserve_thinking": False}
    tokens = sections(line={"thinking": thinking}, template_kwargs={"enable_thinking": False})
    assert json.loads(tokens["template-kwargs"][1]) == {"enable_thinking": False, "preserve_thinking": False}


def test_extras_come_last() -> None:
    line = build_sections(LineInputs(a_request(extra_args=("-lv", "1")), real_caps(), ENTRY, GGUF, slots=1))
    assert line[-1].kind == "user"


def test_flags_that_need_the_probe_are_optional_sections() -> None:
    line = build_sections(LineInputs(a_request(n_ctx=512), real_caps(), ENTRY, GGUF, slots=4, context=512))
    optional = {section.name for section in line if section.kind == "optional"}
    assert optional == {"metrics", "unified", "fit-ctx", "verbosity"}


def test_adapters_are_one_list_where_the_help_says_so() -> None:
    adapters = ((Path("/a.gguf"), 1.0), (Path('/b,"c".gguf'), 0.5))
    assert sections(adapters=adapters)["adapters"] == ("--lora-scaled", '/a.gguf:1,"/b,""c"".gguf:0.5"')


def test_adapters_are_two_values_in_older_builds() -> None:
    caps = caps_with("--lora-scaled", adapter_form="pair")
    tokens = sections(caps, adapters=((Path("/a:b.gguf"), 0.25),))["adapters"]
    assert tokens == ("--lora-scaled", "/a:b.gguf", "0.25")


@pytest.mark.parametrize(
    ("caps", "path"),
    [
        pytest.param(caps_with("--jinja"), "/a.gguf", id="no flag"),
        pytest.param(caps_with("--lora-scaled", adapter_form="colon"), "/a:b.gguf", id="colon in the path"),
    ],
)
def test_adapters_that_cannot_be_given_are_refused(caps: Capabilities, path: str) -> None:
    with pytest.raises(Refused) as refused:
        sections(caps, adapters=((Path(path), 1.0),))
    assert refused.value.failure.reason.code == "adapters_unsupported"


def test_the_template_file_is_filled_in_at_the_spawn() -> None:
    line = build_sections(
        LineInputs(a_request(template="{{ x }}"), real_caps(), ENTRY, GGUF, slots=1, template=True)
    )
    filled = fill_line(line, port=1, template_path=Path("/run/t.jinja"))
    assert filled[filled.index("--chat-template-file") + 1] == "/run/t.jinja"


def test_placeholders_in_the_users_own_tokens_stay() -> None:
    request = a_request(extra_args=("--tags", "{port}"))
    line = build_sections(LineInputs(request, real_caps(), ENTRY, Path("{template}"), slots=1))
    filled = fill_line(line, port=1, template_path=Path("/t"))
    assert (filled[2], filled[-1]) == ("{template}", "{port}")


def test_a_directed_launch_names_servers_devices_layers_experts_and_shares() -> None:
    way = Directions(("RPC0", "CUDA0"), ("10.0.0.1:50052",), layers=33, experts=4, shares=(10, 23))
    found = sections(n_ctx=8000, line={"directions": way})
    assert " ".join(found["placement"]) == (
        "--rpc 10.0.0.1:50052 --device RPC0,CUDA0 --gpu-layers 33 --fit off --n-cpu-moe 4"
        " --tensor-split 10,23"
    )
    assert found["context"] == ("-c", "8000")
    assert found.keys().isdisjoint({"fit-ctx", "fit-target", "prompt-cache"})


def test_tensors_are_divided_without_shares_where_they_are_equal() -> None:
    way = Directions(("CUDA0", "CUDA1"), layers=33, tensor=True)
    placement = " ".join(sections(line={"directions": way})["placement"])
    assert placement == "--device CUDA0,CUDA1 --gpu-layers 33 --fit off --split-mode tensor"


def test_a_launch_without_devices_stays_in_host_memory() -> None:
    found = sections(line={"directions": Directions(layers=0)})
    assert found["placement"] == ("--device", "none", "--fit", "off")


def test_devices_alone_leave_the_layers_to_the_fit_step() -> None:
    found = sections(line={"directions": Directions(("CUDA1",))})
    assert found["placement"] == ("--device", "CUDA1", "--fit", "on")


def test_a_prompt_cache_gets_its_limit() -> None:
    found = sections(line={"directions": Directions(("CUDA0",), layers=33, cache_ram_mib=0)})
    assert found["prompt-cache"] == ("--cache-ram", "0")
