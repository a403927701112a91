"""Extra flags: one spelling, and the flags that are not the user's (06 §5.1, §5.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.manifest.engine_args import RESERVED, last_value, normalised, reserved_flags
from tests.manifest.reading import read, read_model


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        (["--ctx_size=512"], ("--ctx-size", "512")),
        (["-c=512"], ("-c", "512")),
        (["--rope_scaling", "yarn_x"], ("--rope-scaling", "yarn_x")),
        (["-ot", "exps=CPU"], ("-ot", "exps=CPU")),
        (["-ot=exps=CPU"], ("-ot", "exps=CPU")),
        (["--flag="], ("--flag", "")),
        (["-1", "--", "x_y=z"], ("-1", "--", "x_y=z")),
        (["--chat-template-kwargs", '{"a_b": "c=d"}'], ("--chat-template-kwargs", '{"a_b": "c=d"}')),
    ],
)
def test_flags_have_one_spelling_and_values_stay(args: list[str], tokens: tuple[str, ...]) -> None:
    assert normalised(args) == tokens


@given(st.lists(st.one_of(st.sampled_from(sorted(RESERVED)), st.text(max_size=12)), max_size=5))
def test_every_reserved_flag_of_any_tokens_is_found(args: list[str]) -> None:
    found = [flag for _, flag, _ in reserved_flags(args)]
    assert found == [token for token in normalised(args) if token in found]


def test_a_request_holds_the_one_spelling() -> None:
    assert read_model('engine_args = ["--ctx_size=512"]').request().extra_args == ("--ctx-size", "512")


@pytest.mark.parametrize("flag", sorted(RESERVED))
def test_a_reserved_flag_is_refused_with_what_to_use(flag: str) -> None:
    problem = read_model(f'engine_args = ["-t", "4", "{flag}"]').only
    assert (problem.code, problem.path, problem.found) == ("reserved_flag", "models.m.engine_args[2]", flag)
    assert RESERVED[flag] in problem.message


def test_every_reserved_flag_is_reported() -> None:
    assert read_model('engine_args = ["--port=80", "--host", "x"]').codes == ["reserved_flag"] * 2


def test_the_value_of_a_reserved_flag_is_not_repeated() -> None:
    assert "hunter2" not in repr(read_model('engine_args = ["--api_key=hunter2"]').errors)


def test_a_reserved_flag_in_the_defaults_is_reported_once() -> None:
    models = "".join(f'[models.m{n}]\nsource = "x"\n' for n in range(3))
    assert read(f'[defaults]\nengine_args = ["--port", "80"]\n{models}').paths == ["defaults.engine_args[0]"]


@pytest.mark.parametrize(
    ("args", "value"),
    [((), None), (("-fa",), None), (("-fa", "on"), "on"), (("-fa", "on", "--flash-attn", "off"), "off")],
)
def test_the_last_flag_wins(args: tuple[str, ...], value: str | None) -> None:
    assert last_value(args, "-fa", "--flash-attn") == value
