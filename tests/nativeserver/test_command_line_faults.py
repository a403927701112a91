"""Every command line that cannot be used ends in one text that names the flag (12 §1.7, 15 §1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.nativeserver.command_line import read
from framework.nativeserver.flags.table import ALL, BY_SPELLING
from framework.nativeserver.usage_error import UsageError

MODEL = ("-m", "x.gguf")


def fault(*argv: str, **environ: str) -> str:
    with pytest.raises(UsageError) as caught:
        read((*MODEL, *argv), environ)
    return str(caught.value)


@pytest.mark.parametrize("token", ["--nonsense", "-zz", "stray", "--x", "--\x1b[0m"])
def test_an_unknown_argument_is_named(token: str) -> None:
    text = fault(token)
    assert text.startswith(f"error: invalid argument: {token.replace(chr(27), '?')}")
    assert "did you mean" not in text
    assert text.endswith("; --help lists the flags")


def test_an_empty_argument_can_be_seen() -> None:
    assert fault("").startswith("error: invalid argument: '': no flag that takes a value stands before it")


@pytest.mark.parametrize(
    ("token", "meant"),
    [
        ("--spec-typ", "--spec-type"),
        ("--ctx-sise=5", "--ctx-size"),
        ("--ctx", "--ctx-size"),
        ("-ctx-size", "--ctx-size"),
        ("\u2014port", "--port"),
        ("--Embedings", "--embeddings"),
        ("--theads", "--threads"),
        ("--key", "--api-key"),
        ("--no-mmapp", "--no-mmap"),
        ("--spec-ngram-mod-match", "--spec-ngram-mod-n-match"),
        ("models/chat.gguf", "-m models/chat.gguf"),
    ],
)
def test_what_was_probably_meant_is_offered(token: str, meant: str) -> None:
    assert fault(token) == f"error: invalid argument: {token}; did you mean {meant}?"


def test_nothing_is_offered_that_would_be_refused() -> None:
    assert "--rpc" not in fault("--rpcs").partition(";")[2]
    assert "--draft-max" not in fault("--draft-maxx").partition(";")[2]


def test_a_missing_value_has_the_frame_of_llama_server() -> None:
    lines = fault("-c").splitlines()
    assert lines[0] == 'error while handling argument "-c": expected value for argument'
    assert lines[2] == "usage:"
    assert lines[3].startswith("-c, --ctx-size N")
    assert lines[-1] == "to show complete usage, run with -h"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("-c", "x"), ("-c", "whole number", "'x'")),
        (("-c", "-1"), ("-c", "-1")),
        (("--port", "65536"), ("--port", "0 to 65535")),
        (("--temp", "nan"), ("--temp", "nan")),
        (("-fa", "ON"), ("-fa", "'ON'", "auto")),
        (("-fa", "--metrics"), ("-fa", "'--metrics'")),
        (("-ctk", "Q8_0"), ("-ctk", "'Q8_0'", "q8_0")),
        (("-np", "0"), ("invalid value for n_parallel", "--parallel")),
        (("--slot-save-path", "/no/such"), ("not a directory: '/no/such'",)),
        (("--grammar-file", "/no/such"), ("failed to open file '/no/such'",)),
        (("--grammar-file", "/dev/zero"), ("is not a file",)),
        (("--chat-template-kwargs", "[1]"), ("expected a JSON object",)),
        (("--chat-template-kwargs", "{"), ("not valid JSON",)),
        (("--chat-template", "nonesuch"), ("the supplied chat template is not supported", "chatml")),
        (("-j", "[" * 100_000), ("--", "JSON")),
        (("--spec-type", "mtp"), ("unknown speculative type: 'mtp'",)),
        (("--spec-type", ""), ("unknown speculative type: ''",)),
        (("-l", "5"), ("TOKEN_ID+BIAS",)),
        (("--samplers", "top_k;best"), ("'best'", "min_p")),
        (("--override-kv", "a=float:x"), ("'x'",)),
        (("--override-kv", "a:x"), ("KEY=TYPE:VALUE",)),
        (("-ot", "x"), ("PATTERN=BUFFER",)),
        (("-dev", "none,Vulkan0"), ("'none' stands alone",)),
        (("-ts", "0,0"), ("above 0",)),
        (("--api-key", ""), ("--api-key", "empty")),
        (("--ssl-key-file", "k"), ("--ssl-cert-file", "together")),
        (("--metrics=maybe",), ("--metrics", "'maybe'")),
        (("-a", "\udcff"), ("-a", "UTF-8")),
    ],
)
def test_a_bad_value_says_what_was_found_and_what_is_allowed(
    argv: tuple[str, ...], words: tuple[str, ...]
) -> None:
    text = fault(*argv)
    assert not [word for word in words if word not in text], text


def test_keys_are_not_repeated_in_a_fault() -> None:
    assert "secret" not in fault("--api-key", "secret,,b")


def test_a_quantised_v_cache_needs_flash_attention() -> None:
    text = fault("-ctv", "q8_0", "-fa", "off")
    assert "--cache-type-v q8_0" in text
    assert "--flash-attn" in text


def test_without_a_model_there_is_no_server() -> None:
    with pytest.raises(UsageError, match="--model or LLAMA_ARG_MODEL"):
        read((), {})


@pytest.mark.parametrize(
    "flag", [flag for flag in ALL if flag.role == "removed"], ids=lambda flag: flag.names[0]
)
def test_removed_flags_name_what_to_use(flag: object) -> None:
    for spelling in flag.spellings:  # type: ignore[attr-defined]
        assert f'"{spelling}": the argument has been removed. use ' in fault(spelling, "8")


@pytest.mark.parametrize("spelling", ["-hf", "-mu", "--rpc", "--tools", "--control-vector", "--models-dir"])
def test_what_the_engine_leaves_to_others_is_refused(spelling: str) -> None:
    assert fault(spelling, "x").startswith(f'error while handling argument "{spelling}": ')


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LLAMA_ARG_CTX_SIZE", ""),
        ("LLAMA_ARG_MMAP", "yes"),
        ("LLAMA_ARG_DRAFT_MAX", "4"),
        ("LLAMA_ARG_RPC", "h:1"),
        ("LLAMA_API_KEY", ""),
        ("LLAMA_SERVER_SLOTS_DEBUG", "x"),
    ],
)
def test_a_bad_variable_is_named_without_usage(name: str, value: str) -> None:
    text = fault(**{name: value})
    assert text.startswith(f'error while handling environment variable "{name}": ')
    assert "usage" not in text


TOKENS = st.one_of(
    st.sampled_from(sorted(BY_SPELLING)),
    st.sampled_from(["0", "-1", "3", "1.5", "on", "auto", "all", "none", "{}", "a,b", "x=y", "/", ""]),
    st.text(max_size=12),
)


@given(st.lists(TOKENS, max_size=8), st.booleans())
def test_any_line_is_read_or_faulted_with_a_name(argv: list[str], has_model: bool) -> None:
    try:
        settings = read((*(MODEL if has_model else ()), *argv), {})
    except UsageError as error:
        text = str(error)
        known = any(spelling in text for spelling in BY_SPELLING)
        assert known or text.startswith("error: invalid argument: ")
        assert "\x1b" not in text
    else:
        assert settings.action in ("serve", "help", "version", "list-devices")


@given(
    st.dictionaries(
        st.sampled_from(sorted({flag.variable for flag in ALL if flag.variable})),
        st.text(max_size=12),
        max_size=4,
    )
)
def test_any_environment_is_read_or_faulted_with_a_name(environ: dict[str, str]) -> None:
    try:
        read(MODEL, environ)
    except UsageError as error:
        assert any(name in str(error) for name in (*environ, "--"))
