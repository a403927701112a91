"""Arguments and environment become options (12 §19-20, 15 §1-2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framework.nativeserver.command_line import parse, read
from framework.nativeserver.flags.table import ALL, BY_SPELLING
from framework.nativeserver.options import ServerOptions

MODEL = ("-m", "/models/tiny.gguf")


def options(*argv: str, **environ: str) -> ServerOptions:
    return parse((*MODEL, *argv), environ)


def engine(*argv: str, **environ: str) -> dict[str, Any]:
    return dict(options(*argv, **environ).engine)


def defaults(*argv: str, **environ: str) -> dict[str, Any]:
    return dict(options(*argv, **environ).request_defaults)


def test_without_flags_the_core_keeps_its_own_defaults() -> None:
    assert engine() == {
        "model_path": "/models/tiny.gguf",
        "model_name": "tiny.gguf",
        "context_given": False,
        "slots_debug": False,
    }
    assert defaults() == {}


def test_no_spelling_belongs_to_two_flags() -> None:
    assert sum(len(flag.spellings) for flag in ALL) == len(BY_SPELLING)


def test_every_attribute_of_the_core_that_a_flag_sets_exists() -> None:
    header = (Path(__file__).parents[2] / "native/src/core/params.h").read_text()
    names = {flag.target.removeprefix("engine.") for flag in ALL if flag.target.startswith("engine.")}
    assert names
    assert not [name for name in names if f" {name}" not in header]


@pytest.mark.parametrize(
    "argv", [("-c", "512"), ("--ctx-size", "512"), ("--ctx_size", "512"), ("--ctx-size=512",), ("-c=512",)]
)
def test_a_value_stands_behind_a_blank_or_an_equals_sign(argv: tuple[str, ...]) -> None:
    assert engine(*argv)["n_ctx"] == 512


def test_the_last_occurrence_wins() -> None:
    assert engine("-c", "1", "--ctx-size", "2")["n_ctx"] == 2
    assert engine("--no-mmap", "--mmap")["use_mmap"] is True
    assert options("-v", "-lv", "2").verbosity == 2


def test_a_context_of_zero_is_one_that_was_given() -> None:
    assert engine("-c", "0")["context_given"] is True


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("auto", {}),
        ("all", {"n_gpu_layers": -1, "layers_given": True}),
        ("-7", {"n_gpu_layers": -1, "layers_given": True}),
        ("0", {"n_gpu_layers": 0, "layers_given": True}),
    ],
)
def test_layers_are_a_number_or_a_word(value: str, expected: dict[str, Any]) -> None:
    found = engine("-ngl", value)
    assert {name: found[name] for name in ("n_gpu_layers", "layers_given") if name in found} == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("on", 1), ("enabled", 1), ("true", 1), ("1", 1), ("off", 0), ("disabled", 0), ("0", 0), ("auto", -1)],
)
def test_flash_attention_knows_the_words_of_llama_server(word: str, expected: int) -> None:
    assert engine("-fa", word)["flash_attention"] == expected


def test_lists_collect() -> None:
    found = engine("--lora", "a.gguf", "--lora-scaled", '"b,c.gguf:-0.5",d:2', "-ot", "x=CPU", "-cmoe")
    assert found["loras"] == (("a.gguf", 1.0), ("b,c.gguf", -0.5), ("d", 2.0))
    assert found["tensor_placements"][0] == ("x", "CPU")
    assert found["tensor_placements"][1][1] == "CPU"
    assert options("-a", "one,two", "-a", "three").aliases == ("one", "two", "three")


def test_the_first_alias_is_the_name_of_the_model() -> None:
    assert engine("-a", "one, two")["model_name"] == "one"


def test_experts_of_the_first_layers_are_one_placement() -> None:
    ((pattern, buffer),) = engine("-ncmoe", "2")["tensor_placements"]
    assert pattern.startswith(r"blk\.(0|1)\.ffn_")
    assert buffer == "CPU"
    assert "tensor_placements" not in engine() or engine("-ncmoe", "0")["tensor_placements"] == ()


def test_metadata_and_shares_have_their_types() -> None:
    found = engine("--override-kv", "a.b=bool:true,c=int:-5,d=str:x=y", "-ts", "3,1", "-fitt", "100,900")
    assert found["metadata_overrides"] == (("a.b", "bool", "true"), ("c", "int", "-5"), ("d", "str", "x=y"))
    assert found["tensor_split"] == [3.0, 1.0]
    assert found["fit_target_mib"] == 900


def test_rope_is_scaled_by_growth_or_by_frequency() -> None:
    assert engine("--rope-scale", "4")["rope_freq_scale"] == 0.25
    assert engine("--rope-scale", "4", "--rope-freq-scale", "0.5")["rope_freq_scale"] == 0.5


def test_separate_caches_without_a_number_of_slots_are_four() -> None:
    assert engine("--no-kv-unified")["n_parallel"] == 4
    assert "n_parallel" not in engine("--kv-unified")


def test_sampling_flags_are_defaults_of_request_fields() -> None:
    found = defaults("--temp", "0", "--top-k", "5", "-s", "-1", "-l", "5-inf", "-l", "7+1.5", "-n", "9")
    assert found == {
        "temperature": 0.0,
        "top_k": 5,
        "seed": -1,
        "logit_bias": ((5, False), (7, 1.5)),
        "n_predict": 9,
    }
    assert engine("-n", "9")["n_predict"] == 9


def test_samplers_are_named_as_people_name_them() -> None:
    chain = defaults("--samplers", "top-k;nucleus;typical;temp")["samplers"]
    assert chain == ["top_k", "top_p", "typ_p", "temperature"]
    assert defaults("--sampler-seq", "kpt")["samplers"] == "kpt"


def test_escapes_are_read_unless_they_are_switched_off() -> None:
    assert defaults("-r", r"a\nb\"", "--dry-sequence-breaker", r"\t") == {
        "stop": ['a\nb"'],
        "dry_sequence_breakers": ["\t"],
    }
    assert defaults("-r", r"a\nb", "--no-escape")["stop"] == [r"a\nb"]
    assert defaults("--dry-sequence-breaker", "none")["dry_sequence_breakers"] == []


def test_of_several_constraints_the_last_one_counts(tmp_path: Path) -> None:
    grammar = tmp_path / "answer.gbnf"
    grammar.write_text('root ::= "yes"')
    assert defaults("-j", "{}", "--grammar-file", str(grammar)) == {"grammar": 'root ::= "yes"'}
    assert defaults("--grammar", "x", "-j", '{"type": "object"}') == {"json_schema": {"type": "object"}}


def test_the_template_comes_from_a_file(tmp_path: Path) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text("{{ messages }}")
    found = options(
        "--chat-template-file", str(template), "--chat-template-kwargs", '{"a": [1]}', "-rea", "off"
    )
    assert found.chat.template == "{{ messages }}"
    assert found.chat.template_kwargs == {"a": [1]}
    assert found.chat.reasoning == "off"


def test_a_template_may_be_named() -> None:
    template = options("--chat-template", "chatml").chat.template
    assert template is not None
    assert "<|im_start|>" in template


def test_the_server_group_reaches_its_options(tmp_path: Path) -> None:
    found = options(
        *("--host", "::1", "--port", "0", "--api-prefix", "/x/", "--metrics", "--props", "--no-slots"),
        *("--slot-save-path", str(tmp_path), "--no-cors-credentials", "--sse-ping-interval", "-1"),
    )
    assert (found.host, found.port, found.api_prefix) == ("::1", 0, "/x")
    assert (found.metrics, found.props, found.slots) == (True, True, False)
    assert (found.slot_save_path, found.sse_ping_interval_s) == (tmp_path, -1)
    assert found.cors.credentials is False


def test_reranking_needs_embeddings_and_the_pooling_of_ranks() -> None:
    found = engine("--rerank", "--pooling", "mean")
    assert (found["embeddings"], found["reranking"], found["pooling"]) == (True, True, "rank")


def test_a_variable_gives_way_to_the_line() -> None:
    settings = read((*MODEL, "-c", "7"), {"LLAMA_ARG_CTX_SIZE": "5", "LLAMA_ARG_THREADS": "3"})
    assert (settings.options.engine["n_ctx"], settings.options.engine["n_threads"]) == (7, 3)
    assert [warning for warning in settings.warnings if "LLAMA_ARG_CTX_SIZE" in warning and "-c" in warning]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"LLAMA_ARG_MMAP": "off"}, False),
        ({"LLAMA_ARG_MMAP": "enabled"}, True),
        ({"LLAMA_ARG_NO_MMAP": "0"}, False),
        ({"LLAMA_ARG_NO_MMAP": "", "LLAMA_ARG_MMAP": "on"}, False),
    ],
)
def test_a_negative_variable_counts_whatever_it_says(environ: dict[str, str], expected: bool) -> None:
    assert engine(**environ)["use_mmap"] is expected


def test_a_switch_that_a_variable_leaves_off_stays_off() -> None:
    assert options(LLAMA_ARG_ENDPOINT_METRICS="0").metrics is False
    assert options(LLAMA_ARG_ENDPOINT_METRICS="1").metrics is True


def test_keys_of_all_sources_add_up(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("# ours\n\nthird\n")
    found = options("--api-key", "second", "--api-key-file", str(keys), LLAMA_API_KEY="first,other")
    assert found.api_keys == ("first", "other", "second", "third")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("first\nsecond\n", encoding="utf-8-sig")
    assert options("--api-key-file", str(keys)).api_keys == ("first", "second")


def test_slots_show_their_prompts_when_the_variable_says_so() -> None:
    assert engine(LLAMA_SERVER_SLOTS_DEBUG="1")["slots_debug"] is True


def test_the_model_may_come_from_the_environment() -> None:
    assert parse((), {"LLAMA_ARG_MODEL": "/a/b.gguf"}).engine["model_path"] == "/a/b.gguf"


def test_flags_without_effect_warn_once_each() -> None:
    settings = read((*MODEL, "--threads-http", "4", "--threads-http", "5", "--no-webui"), {})
    assert [warning.split()[0] for warning in settings.warnings] == ["--threads-http", "--no-webui"]


def test_a_projector_is_left_to_the_load_which_refuses_it() -> None:
    assert read((*MODEL, "--mmproj", "/p.gguf"), {}).projector == "/p.gguf"


@pytest.mark.parametrize(
    ("argv", "action"),
    [
        (("-h",), "help"),
        (("--version", "--nonsense"), "version"),
        (("-c", "1", "--list-devices"), "list-devices"),
    ],
)
def test_some_flags_ask_for_something_else_than_serving(argv: tuple[str, ...], action: str) -> None:
    assert read(argv, {"LLAMA_ARG_CTX_SIZE": "broken"}).action == action


def test_the_line_that_the_manager_writes_is_read(tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text("x")
    argv = (
        *(
            "--host",
            "127.0.0.1",
            "--port",
            "1",
            "--parallel",
            "2",
            "--flash-attn",
            "auto",
            "--no-context-shift",
        ),
        *("-c", "4096", "--alias", "m", "--fit", "on", "--metrics", "--kv-unified", "--fit-ctx", "4096"),
        *("--fit-target", "512", "--threads", "2", "--jinja", "--batch-size", "512", "--ubatch-size", "64"),
        *("--cache-type-k", "q8_0", "--cache-type-v", "q8_0", "--cache-ram", "0", "--swa-full"),
        *("--chat-template-file", str(template), "--chat-template-kwargs", '{"enable_thinking":false}'),
        *("--device", "none", "--gpu-layers", "3", "--n-cpu-moe", "1", "--split-mode", "tensor"),
        *("--tensor-split", "1,2", "--log-verbosity", "4"),
    )
    settings = read((*MODEL, *argv), {"LLAMA_API_KEY": "k"})
    assert settings.warnings == ()
    assert settings.options.engine["devices"] == ["none"]
