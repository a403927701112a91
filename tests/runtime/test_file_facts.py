"""What a launch learns of its files, for decisions about drafting above all (05 §3)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from framework.models.facts import FactsReader
from framework.models.header_cache import HeaderCache
from framework.models.hub.facts import ResolvedSource
from framework.runtime.file_facts import FileFacts, file_facts
from framework.values.reason import Refused
from framework.values.request import ModelRequest, ModelSource, SpecPolicy
from framework.values.speculation import SpecFacts
from tests.models.gguf_bytes import STRING, U32, pair
from tests.models.test_companions import model as write_model

HEAD = (pair("llama.nextn_predict_layers", U32, 1), pair("llama.attention.kv_lora_rank", U32, 512))


def facts_of(request: ModelRequest, source: ResolvedSource | None = None) -> FileFacts:
    """The facts of a request, with a reader that keeps nothing on disk."""
    main = request.source.path
    assert main is not None
    reader = FactsReader(HeaderCache())
    found = source or ResolvedSource(request.source, main, (main,))
    return file_facts(request, found, reader.read(found.main), reader)


def asking(main: Path, drafter: Path | None = None, *args: str) -> ModelRequest:
    named = None if drafter is None else ModelSource(path=drafter)
    spec = SpecPolicy("auto" if named is None else "draft", drafter=named)
    return ModelRequest("m", ModelSource(path=main), spec=spec, extra_args=args)


def test_a_plain_model_brings_nothing_to_draft_with(tmp_path: Path) -> None:
    facts = facts_of(asking(write_model(tmp_path / "x.gguf")))
    assert facts.spec == SpecFacts(model_id="x", file_name="x.gguf")
    assert [identity.path for identity in facts.ids] == [tmp_path / "x.gguf"]


def test_a_head_and_latent_attention_are_read_from_the_header(tmp_path: Path) -> None:
    facts = facts_of(asking(write_model(tmp_path / "x.gguf", 64, 2, *HEAD)))
    assert (facts.spec.nextn_layers, facts.spec.kv_lora_rank) == (1, 512)


@pytest.mark.parametrize(
    ("name", "label", "params_b"),
    [
        ("Qwen3-30B-A3B.gguf", "4B", 30.0),
        ("x.gguf", "4B", 4.0),
        ("smollm2-135M.gguf", "", 0.135),
        ("x.gguf", "", None),
    ],
)
def test_the_size_is_that_of_the_name_then_of_the_label(
    tmp_path: Path, name: str, label: str, params_b: float | None
) -> None:
    main = write_model(tmp_path / name, 64, 2, pair("general.size_label", STRING, label))
    assert facts_of(asking(main)).spec.params_b == params_b


def test_a_model_of_a_hub_is_called_by_its_repository(tmp_path: Path) -> None:
    main = write_model(tmp_path / "file.gguf")
    source = ResolvedSource(ModelSource(repo="org/gemma-4-E2B-it"), main, (main,))
    spec = facts_of(asking(main), source).spec
    assert (spec.model_id, spec.file_name, spec.params_b) == ("org/gemma-4-E2B-it", "file.gguf", 2.0)


def test_a_drafter_is_one_of_the_files_of_the_launch(tmp_path: Path) -> None:
    main, drafter = write_model(tmp_path / "x.gguf"), write_model(tmp_path / "mtp-d.gguf")
    facts = facts_of(asking(main, drafter))
    assert (facts.spec.drafter, facts.spec.drafter_kind) == (drafter, "plain")
    assert [identity.path for identity in facts.ids] == [main, drafter]


def test_one_that_does_not_suit_is_none_and_says_why(tmp_path: Path) -> None:
    main, drafter = write_model(tmp_path / "x.gguf"), write_model(tmp_path / "d.gguf", tokens=900)
    facts = facts_of(asking(main, drafter))
    assert (facts.spec.drafter, facts.spec.drafter_kind) == (None, None)
    assert [reason.code for reason in facts.spec.drafter_reasons] == ["companion_unfit"]
    assert len(facts.ids) == 1


def test_a_user_who_drives_it_himself_gets_no_drafter_of_the_policy(tmp_path: Path) -> None:
    main, drafter = write_model(tmp_path / "x.gguf"), write_model(tmp_path / "d.gguf")
    spec = facts_of(asking(main, drafter, "--spec-type", "ngram-mod")).spec
    assert (spec.drafter, spec.drafter_reasons) == (None, ())


def test_an_adapter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    request = asking(write_model(tmp_path / "x.gguf"))
    with pytest.raises(Refused) as caught:
        facts_of(replace(request, adapters=((tmp_path / "gone.gguf", 1.0),)))
    assert caught.value.failure.reason.evidence["field"] == "adapters"
