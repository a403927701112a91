"""What those who may only look see of a manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.editing.documents import ManifestFile
from framework.editing.veil import veiled


def seen(text: str) -> str:
    return veiled(ManifestFile("serve.toml", Path("/etc/serve.toml"), text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('environment = { HF_TOKEN = "S3CR3T" }', id="inline-environment"),
        pytest.param('[models.a.environment]\nMY_API_KEY = """S3\nCR3T"""', id="over-lines"),
        pytest.param('engine_args = ["-v", "--api-key", "S3CR3T"]', id="argument"),
        pytest.param('engine_args = ["--hf-token=S3CR3T"]', id="argument-with-equals"),
        pytest.param('[access.a]\nkey = "S3CR3T"', id="a-key-where-none-belongs"),
        pytest.param('[access.a]\nkey = "sha256:S3CR3T"', id="digest-of-a-key"),
        pytest.param('# HF_TOKEN = "S3CR3T"', id="commented-out"),
        pytest.param('  #environment = { PASSWORD="S3CR3T" }', id="commented-out-inline"),
        pytest.param('slots = 2  # environment = { HF_TOKEN = "S3CR3T" }', id="behind-a-value"),
        pytest.param("[models.a]  # password: S3CR3T", id="behind-a-table"),
        pytest.param('a = [\n  1,  # MY_KEY="S3CR3T"\n]', id="inside-a-list"),
        pytest.param('a = "x\nHF_TOKEN = "S3CR3T"', id="while-it-is-no-toml"),
    ],
)
def test_no_secret_is_shown(text: str) -> None:
    assert "S3" not in seen(text)
    assert "CR3T" not in seen(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[access.a]\nkey = "env:MY_KEY"  # mine\ntokens = "5/day"\n', id="references"),
        pytest.param('environment = { LLAMA_ARG_THREADS = "4" }\n', id="other-variables"),
        pytest.param('[models."monkey/token"]\nsource = "a.gguf"\n', id="names"),
        pytest.param('environment_passthrough = ["HF_TOKEN"]\n# about the key of\n', id="names-of-variables"),
        pytest.param('template = """\n# token = {{ x }}\n"""  # mine\n', id="marks-in-values"),
        pytest.param('engine_args = ["--jinja", "--threads", "4"]\n', id="arguments"),
    ],
)
def test_everything_else_is(text: str) -> None:
    assert seen(text) == text


def test_a_comment_that_is_too_long_to_be_looked_through_is_hidden() -> None:
    # In one expression over the text this took most of a second, in which no other request was answered.
    assert seen("#" + "key" * 2**17 + "\n# mine\n") == "# <redacted>\n# mine\n"
