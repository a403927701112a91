"""The families of routes over a real manager: reasoning, looks that load nothing, long prompts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest

from tests.e2e.clients import TIMEOUT_S, error_of, model_table, openai_client
from tests.support.paddock import RunningPaddock, start_paddock

pytestmark = pytest.mark.engine

# Thinks by its own account; the text that a switch adds can be counted in the prompt.
TEMPLATE = """{% if enable_thinking is defined and not enable_thinking %}NO THINKING{% endif %}\
{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
QUESTION: list[Any] = [{"role": "user", "content": "Say hello."}]
LONG: list[Any] = [{"role": "user", "content": "word " * 600}]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Iterator[RunningPaddock]:
    """`thinks` loads at start and hands long prompts to `wide`; nobody has asked for `idle` yet."""
    folder = tmp_path_factory.mktemp("families")
    (folder / "thinks.jinja").write_text(TEMPLATE, encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PADDOCK_STATE_DIR": str(folder / "state"),
    }
    tables = (
        model_table(
            "thinks", smollm2, template="file:thinks.jinja", overflow_to="large", context=512, slots=1
        )
        + model_table("wide", smollm2, aliases=["large"], load="on-demand", slots=1, context=2048)
        + model_table("idle", smollm2, load="on-demand")
    )
    paddock = start_paddock(folder, tables, environment)
    paddock.wait_state("thinks", "ready")
    yield paddock
    paddock.close()
    assert paddock.survivors() == []


@pytest.fixture
def http(real: RunningPaddock) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=real.base_url, timeout=TIMEOUT_S, trust_env=False) as client:
        yield client


def prompt(http: httpx.Client, **wishes: Any) -> str:
    """The prompt that a chat with these wishes becomes."""
    found: str = http.post("/m/thinks/apply-template", json={"messages": QUESTION, **wishes}).json()["prompt"]
    return found


def test_wishes_about_reasoning_reach_the_template(http: httpx.Client) -> None:
    assert "NO THINKING" not in prompt(http)
    assert "NO THINKING" in prompt(http, reasoning_effort="none")
    assert "NO THINKING" in prompt(http, enable_thinking=False)
    assert "NO THINKING" not in prompt(http, reasoning_effort="high")


def test_the_same_in_anthropics_words(http: httpx.Client) -> None:
    def counted(**wishes: Any) -> int:
        body = {"model": "thinks", "messages": QUESTION, "max_tokens": 9, **wishes}
        tokens: int = http.post("/v1/messages/count_tokens", json=body).json()["input_tokens"]
        return tokens

    assert counted(thinking={"type": "disabled"}) > counted()
    assert counted(thinking={"type": "enabled", "budget_tokens": 1024}) == counted()


def test_the_list_of_models_tells_how_a_model_reasons(http: httpx.Client) -> None:
    entries = {entry["id"]: entry["meta"] for entry in http.get("/v1/models").json()["data"]}
    assert entries["thinks"]["reasoning"] == {"default": "on", "switchable": True, "efforts": []}
    assert entries["idle"]["reasoning"] is None


def test_looking_loads_nothing(real: RunningPaddock, http: httpx.Client) -> None:
    props = http.get("/m/thinks/props").json()
    assert (props["model_alias"], props["default_generation_settings"]["n_ctx"]) == ("thinks", 512)
    assert "/" not in props["model_path"]
    assert len(http.get("/slots?model=thinks").json()) == 1
    refused = http.get("/m/idle/props")
    assert (refused.status_code, error_of(refused)["code"]) == (503, "model_not_loaded")
    assert real.model("idle")["state"] == "pending" or real.model("idle")["state"] == "stopped"


def test_a_long_prompt_goes_to_the_model_for_such(real: RunningPaddock) -> None:
    with openai_client(real) as client:
        answer = client.chat.completions.create(model="thinks", messages=LONG, max_tokens=3)
        short = client.chat.completions.create(model="thinks", messages=QUESTION, max_tokens=3)
    assert (answer.model, short.model) == ("large", "thinks")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 512


def test_a_message_loads_its_model(real: RunningPaddock) -> None:
    client = anthropic.Anthropic(base_url=real.base_url, api_key="none", max_retries=0, timeout=TIMEOUT_S)
    with client, client.messages.stream(model="idle", messages=QUESTION, max_tokens=4) as stream:
        assert "".join(stream.text_stream)
        assert stream.get_final_message().model == "idle"
    real.wait_state("idle", "ready")
