"""The list of model files and a look into each: bounded, by id only, never stopped by one bad file."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from framework.api import inspection
from framework.api.answers import DevicesAnswer
from framework.api.errors import ApiError
from framework.api.inspection import InspectSettings
from framework.api.model_files import FilesAnswer, ModelFile
from framework.models.hub.facts import ResolvedSource
from framework.values.device import Device
from framework.values.plan import FitPlan
from framework.values.request import ModelSource
from tests.api import samples
from tests.api.model_folder import fill, hostile, model_files
from tests.models.gguf_bytes import STRING, U32, Tensor, gguf, pair

SETTINGS = InspectSettings(context=1024)


def by_name(answer: FilesAnswer) -> dict[str, ModelFile]:
    return {file.path.name: file for file in answer.files}


async def test_every_file_is_listed_with_what_it_is(tmp_path: Path) -> None:
    answer = await model_files(fill(tmp_path)).list()
    files = by_name(answer)
    assert list(files) == [
        "big-00001-of-00003.gguf",
        "broken.gguf",
        "markup <b>.gguf",
        "mmproj-tiny.gguf",
        "tiny-F32.gguf",
        "set-00001-of-00002.gguf",
    ]
    tiny = files["tiny-F32.gguf"]
    assert (tiny.title, tiny.architecture, tiny.context_train) == ("Tiny", "llama", 8192)
    assert (files["mmproj-tiny.gguf"].role, tiny.role) == ("projector", "model")
    assert (files["set-00001-of-00002.gguf"].parts, answer.folders) == (2, (tmp_path / "models",))
    assert (answer.complete, answer.unread) == (True, 0)


@pytest.mark.parametrize(
    ("name", "code"), [("broken.gguf", "bad_model_file"), ("big-00001-of-00003.gguf", "incomplete_set")]
)
async def test_what_no_engine_could_load_says_why(tmp_path: Path, name: str, code: str) -> None:
    files = model_files(fill(tmp_path))
    file = by_name(await files.list())[name]
    assert file.fault is not None
    assert file.fault.code == code
    view = await files.inspect(file.id, SETTINGS)
    assert (view.inspection, view.file.fault) == (None, file.fault)


async def test_a_file_knows_the_models_that_use_it(tmp_path: Path) -> None:
    source = ModelSource(path=fill(tmp_path) / "models" / "tiny-F32.gguf")
    requests = [replace(samples.request(name), source=source) for name in ("one", "two")]
    files = by_name(await model_files(tmp_path, *requests).list())
    assert files["tiny-F32.gguf"].used_by == ("one", "two")
    assert files["markup <b>.gguf"].used_by == ()


async def test_folders_of_local_sources_are_looked_through(tmp_path: Path) -> None:
    away = fill(tmp_path / "away") / "models"
    request = replace(samples.request(), source=ModelSource(path=away / "tiny-F32.gguf"))
    answer = await model_files(tmp_path, request).list()
    assert answer.folders == (tmp_path / "models", away)
    assert len(answer.files) == 6


async def test_a_source_that_no_file_can_have_hides_no_others(tmp_path: Path) -> None:
    away = tmp_path / ("x" * 300)
    request = replace(samples.request(), source=ModelSource(path=away / "b.gguf"))
    answer = await model_files(fill(tmp_path), request).list()
    assert (len(answer.files), answer.missing_folders) == (6, (away,))


async def test_files_of_a_hub_source_are_listed_once_they_are_here(tmp_path: Path) -> None:
    main = fill(tmp_path) / "models" / "org" / "set-00001-of-00002.gguf"
    source = ModelSource(repo="org/repo", variant="Q4_K_M")
    request = replace(samples.request(), source=source)
    resolved = ResolvedSource(source, main, (main, main.with_name("set-00002-of-00002.gguf")))
    found = await model_files(tmp_path / "none", request, fetched=lambda _: resolved).list()
    assert [(file.path, file.used_by) for file in found.files] == [(main, ("chat",))]
    absent = await model_files(tmp_path / "none", request).list()
    assert absent.files == ()


async def test_a_look_into_a_file_tells_facts_companions_and_memory(tmp_path: Path) -> None:
    files = model_files(fill(tmp_path))
    view = await files.inspect(by_name(await files.list())["tiny-F32.gguf"].id, SETTINGS)
    assert view.inspection is not None
    assert view.inspection.companions.projector == tmp_path / "models" / "mmproj-tiny.gguf"
    assert view.inspection.memory.context == 1024
    assert set(view.inspection.memory.total_bytes) == {"CPU"}
    assert view.file.title == "Tiny"


async def test_the_devices_of_the_machine_say_whether_it_fits(tmp_path: Path) -> None:
    devices = DevicesAnswer((Device("CUDA0", "gpu", 2**33, 2**33), Device("CPU", "cpu", 2**36, 2**36)))
    files = model_files(fill(tmp_path), devices=devices)
    file_id = by_name(await files.list())["tiny-F32.gguf"].id

    async def memory(device: str, context: int) -> FitPlan:
        view = await files.inspect(file_id, InspectSettings(context=context, device=device))
        assert view.inspection is not None
        return view.inspection.memory

    small, large = await memory("CUDA0", 512), await memory("CUDA0", 2**24)
    assert (set(small.budget_bytes), small.fits, small.remedies) == ({"CUDA0", "CPU"}, True, ())
    assert large.fits is False
    assert large.remedies
    unknown = await memory("H200", 2**24)
    assert (unknown.fits, "H200" in unknown.total_bytes, unknown.remedies) == (None, True, ())


async def test_a_fault_in_memory_planning_is_a_reason_beside_the_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(inspection, "plan_memory", fails)
    files = model_files(fill(tmp_path))
    view = await files.inspect(by_name(await files.list())["tiny-F32.gguf"].id, SETTINGS)
    assert view.inspection is not None
    assert (view.inspection.facts.header.name, view.inspection.memory) == ("Tiny", FitPlan())
    assert view.inspection.reasons[-1].code == "planning_fault"


async def test_more_layers_than_any_engine_loads_are_told(tmp_path: Path) -> None:
    header = gguf(
        pair("general.architecture", STRING, "llama"),
        pair("llama.block_count", U32, 2**31 - 1),
        pair("llama.context_length", U32, 2**31 - 1),
        tensors=(Tensor("token_embd.weight", dims=(4, 8)),),
        data=128,
    )
    (fill(tmp_path) / "models" / "tall.gguf").write_bytes(header)
    files = model_files(tmp_path)
    view = await files.inspect(by_name(await files.list())["tall.gguf"].id, InspectSettings())
    assert view.inspection is not None
    assert (view.inspection.memory.lines, view.inspection.reasons[-1].code) == ((), "planning_fault")


@pytest.mark.parametrize(
    "file_id", ["0" * 16, "", "..", "../serve.toml", "/etc/passwd", "\x00", "x" * 10_000]
)
async def test_only_what_is_listed_can_be_looked_into(tmp_path: Path, file_id: str) -> None:
    with pytest.raises(ApiError) as refused:
        await model_files(fill(tmp_path)).inspect(file_id, SETTINGS)
    assert (refused.value.status, refused.value.code) == (404, "file_not_found")


async def test_a_file_that_is_gone_since_the_list_is_not_found(tmp_path: Path) -> None:
    files = model_files(fill(tmp_path))
    file = by_name(await files.list())["tiny-F32.gguf"]
    file.path.unlink()
    with pytest.raises(ApiError) as refused:
        await files.inspect(file.id, SETTINGS)
    assert refused.value.status == 404


async def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    ticks = iter(range(0, 10_000, 100))
    files = model_files(fill(tmp_path), clock=lambda: float(next(ticks)), read_limit_s=1e6)
    path = tmp_path / "models" / "tiny-F32.gguf"
    assert by_name(await files.list())[path.name].title == "Tiny"
    path.write_bytes(hostile())
    assert by_name(await files.list())[path.name].architecture == "<script>"


async def test_the_list_does_not_wait_for_all_headers(tmp_path: Path) -> None:
    ticks = iter(range(10_000))
    files = model_files(fill(tmp_path), clock=lambda: float(next(ticks)), read_limit_s=3.0)
    unread = [(await files.list()).unread for _ in range(8)]
    assert 0 < unread[0] < 6
    assert unread[-1] == 0


async def test_storage_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    def stuck(_source: ModelSource) -> None:
        time.sleep(0.3)

    request = replace(samples.request(), source=ModelSource(repo="org/repo"))
    files = model_files(tmp_path, request, fetched=stuck, answer_limit_s=0.01)
    with pytest.raises(ApiError) as refused:
        await files.list()
    assert (refused.value.status, refused.value.code) == (503, "storage_slow")


async def test_many_at_once_get_the_same_answer(tmp_path: Path) -> None:
    files = model_files(fill(tmp_path))
    answers = await asyncio.gather(*(files.list() for _ in range(10)))
    assert all(answer == answers[0] for answer in answers)


async def test_what_the_file_of_a_declared_model_says_is_known_before_it_is_loaded(tmp_path: Path) -> None:
    files = model_files(fill(tmp_path))
    tiny = samples.request(source=ModelSource(path=tmp_path / "models" / "tiny-F32.gguf"))
    header = await files.header_of(tiny)
    assert header is not None
    assert header.name == "Tiny"


@pytest.mark.parametrize("name", ["broken.gguf", "none.gguf", "big-00001-of-00003.gguf"])
async def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path, name: str) -> None:
    files = model_files(fill(tmp_path))
    asked = samples.request(source=ModelSource(path=tmp_path / "models" / name))
    assert await files.header_of(asked) is None


async def test_a_model_that_was_not_fetched_says_nothing(tmp_path: Path) -> None:
    asked = samples.request(source=ModelSource(repo="owner/repo", variant="Q4_K_M"))
    assert await model_files(fill(tmp_path)).header_of(asked) is None
