"""Which model a name means (08 §2.1, cases BI-09)."""

from __future__ import annotations

from typing import Any

import pytest

from framework.proxy.errors import ProxyError
from framework.proxy.model_choice import ModelChoice, choose_model, nearest_names, shown
from framework.values.manifest import AccessKey, Manifest
from tests.proxy.recording_fleet import RecordingFleet
from tests.proxy.world import manifest_of, model

SEVERAL = manifest_of(
    model("org/m:q4_k_m"), model("m1", aliases=("gpt-4o-mini",)), model("hidden", aliases=("m11",))
)


def choose(name: object, manifest: Manifest = SEVERAL, key: AccessKey | None = None) -> ModelChoice:
    fleet = RecordingFleet(lambda: manifest, lambda: "")
    return choose_model(name, manifest=manifest, fleet=fleet, key=key)


def refusal(name: object, manifest: Manifest = SEVERAL, key: AccessKey | None = None) -> ProxyError:
    with pytest.raises(ProxyError) as caught:
        choose(name, manifest, key)
    return caught.value


@pytest.mark.parametrize(("name", "model_id"), [("m1", "m1"), ("gpt-4o-mini", "m1")], ids=["id", "alias"])
def test_names_are_ids_and_aliases(name: str, model_id: str) -> None:
    choice = choose(name)
    assert (choice.id, choice.asked) == (model_id, name)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        pytest.param("ORG/M:Q4_K_M", "org/m:q4_k_m", id="other-case"),
        pytest.param(" m1 ", "m1", id="blanks"),
        pytest.param("m1/", "m1", id="slash"),
        pytest.param("gpt-4o", "gpt-4o-mini", id="shorter"),
    ],
)
def test_an_unknown_name_gets_the_nearest_ones(name: str, suggestion: str) -> None:
    error = refusal(name)
    assert (error.code, error.status, error.param) == ("model_not_found", 404, "model")
    assert f'"{suggestion}"' in error.message


@pytest.mark.parametrize("name", ["x" * 4000, "../../etc/passwd", "zzz"], ids=["long", "path", "foreign"])
def test_a_name_like_none_gets_no_suggestion(name: str) -> None:
    error = refusal(name)
    assert error.code == "model_not_found"
    assert len(error.message) < 250
    assert "GET /v1/models" in error.message


@pytest.mark.parametrize(
    "name",
    [5, True, 1.5, ["m1"], {"a": 1}, "m1\u0000", "m1\n", "\u0085m1", "\x7f"],
    ids=["int", "bool", "float", "list", "object", "nul", "newline", "c1", "delete"],
)
def test_what_cannot_be_a_name_is_a_bad_request(name: Any) -> None:
    error = refusal(name)
    assert (error.code, error.status) == ("invalid_body", 400)


@pytest.mark.parametrize("name", [None, ""], ids=["missing", "empty"])
def test_the_only_model_needs_no_name(name: Any) -> None:
    assert choose(name, manifest_of(model("smol"))) == ModelChoice("smol", "smol", model("smol"))


@pytest.mark.parametrize("manifest", [SEVERAL, manifest_of()], ids=["several-models", "no-model"])
def test_otherwise_a_name_is_required(manifest: Manifest) -> None:
    error = refusal(None, manifest)
    assert (error.code, error.status) == ("model_required", 400)


def test_a_key_may_not_use_other_models() -> None:
    error = refusal("m1", key=AccessKey("k", "0", ("hidden",)))
    assert (error.code, error.status) == ("model_not_allowed", 403)


def test_suggestions_name_only_what_the_key_may_use() -> None:
    assert "hidden" not in refusal("hiden", key=AccessKey("k", "0", ("m1",))).message


def test_nearest_names_are_at_most_three() -> None:
    assert len(nearest_names("model", [f"model{number}" for number in range(9)])) == 3


def test_names_are_shown_in_plain_text() -> None:
    assert shown('a"\\\u202e\n') == '"a\\"\\\\\\u202e\\x0a"'


def test_letters_of_any_script_are_shown_as_they_are() -> None:
    assert shown("\u6f22\u5b57") == '"\u6f22\u5b57"'
