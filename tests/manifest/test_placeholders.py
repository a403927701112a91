"""`${...}` is an error wherever it stands: nothing is substituted (case MR-07)."""

from __future__ import annotations

import pytest

from tests.manifest.reading import MODEL, read


@pytest.mark.parametrize(
    ("text", "path", "variable"),
    [
        ('[engines.default]\nbinary = "${latest}"', "engines.default.binary", "latest"),
        ('[models.m]\nsource = "${env.MODELS_DIR}/a.gguf"', "models.m.source", "MODELS_DIR"),
        (f'{MODEL}display_name = "${{MODEL_ID}}-x"', "models.m.display_name", "MODEL_ID"),
        (f'{MODEL}engine_args = ["-x", "a${{B}}"]', "models.m.engine_args[1]", "B"),
        (f'{MODEL}environment = {{ A = "${{B}}" }}', "models.m.environment.A", "B"),
        (
            f'{MODEL}template_arguments = {{ a = [{{ b = "${{B}}" }}] }}',
            "models.m.template_arguments.a[0].b",
            "B",
        ),
        ('[models."${B}-x"]\nsource = "a"', 'models."${B}-x"', "B"),
        (f'{MODEL}display_name = "\\u0024{{B}}"', "models.m.display_name", "B"),
    ],
)
def test_a_placeholder_is_refused_with_its_key_and_variable(text: str, path: str, variable: str) -> None:
    problem = read(text).only
    assert (problem.code, problem.path) == ("placeholder", path)
    assert variable in problem.message


@pytest.mark.parametrize("text", ["${", "${}", "${unclosed", "a ${b} c ${d}"])
def test_no_form_of_it_passes(text: str) -> None:
    assert read(f"{MODEL}display_name = '{text}'").codes == ["placeholder"]


@pytest.mark.parametrize("text", ["$HOME", "$ {x}", "{x}", "%h"])
def test_other_signs_are_plain_text(text: str) -> None:
    assert read(f"{MODEL}display_name = '{text}'").request().live.display_name == text


def test_every_placeholder_is_reported() -> None:
    assert read("[models.m]\nsource = '${A}'\ndisplay_name = '${B}'").codes == ["placeholder"] * 2


def test_a_placeholder_in_a_comment_is_nothing() -> None:
    assert read(f"{MODEL}# ${{A}}").errors == []
