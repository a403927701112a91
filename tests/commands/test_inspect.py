"""`paddock inspect` (13 §3)."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from framework.api.answers import DevicesAnswer
from framework.api.inspect_query import read_settings
from framework.api.shapes import inspect_json
from framework.hardware.devices import host_memory
from tests.api.model_folder import fill, model_files
from tests.commands.conftest import Paddock
from tests.engines.programs import write_program
from tests.models.gguf_bytes import STRING, U32, U64, Tensor, gguf, pair
from tests.support.model_files import write_tiny_gguf


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with a projector beside it; facts are kept in a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "gemma-3-x.gguf"
    path.write_bytes(
        gguf(
            pair("general.architecture", STRING, "gemma3"),
            pair("general.name", STRING, "Gemma\x1b[31m X"),
            pair("general.file_type", U32, 15),
            pair("gemma3.block_count", U32, 6),
            pair("gemma3.embedding_length", U32, 640),
            pair("gemma3.attention.sliding_window", U32, 512),
            pair("tokenizer.chat_template", STRING, "{% if tools %}{{ reasoning_effort }}'low''high'"),
            tensors=(Tensor("token_embd.weight", (8, 4)),),
            data=128,
        )
    )
    projector = gguf(
        pair("general.architecture", STRING, "clip"), pair("clip.vision.projection_dim", U32, 640)
    )
    (tmp_path / "mmproj-gemma-3.gguf").write_bytes(projector)
    return path


def test_facts_as_json(paddock: Paddock, model: Path) -> None:
    document = paddock("inspect", str(model), "--json").json
    assert document.keys() == {"facts", "files", "template", "companions", "memory", "reasons"}
    facts = document["facts"]
    assert (facts["architecture"], facts["file_type"], facts["layers"]) == ("gemma3", "Q4_K_M", 6)
    assert (facts["parameters"], facts["sliding_window"], facts["windowed_layers"]) == (32, 512, 5)
    assert facts["experts"] is None
    assert document["files"] == [{"path": str(model), "bytes": model.stat().st_size}]
    assert document["memory"].keys() == {
        "budget_bytes", "total_bytes", "needed_bytes", "lines", "fits", "context", "slots", "remedies",
    }  # fmt: skip


def test_the_template_as_json(paddock: Paddock, model: Path) -> None:
    assert paddock("inspect", str(model), "--json").json["template"] == {
        "present": True,
        "reasoning": "reasoning_effort",
        "always_on": False,
        "efforts": ["low", "high"],
        "preserve_thinking": False,
        "tools": True,
    }


def test_companions_are_named(paddock: Paddock, model: Path) -> None:
    companions = paddock("inspect", str(model), "--json").json["companions"]
    assert companions == {"projector": str(model.parent / "mmproj-gemma-3.gguf"), "drafter": None}
    assert "mmproj-gemma-3.gguf" in paddock("inspect", str(model)).out


def test_facts_for_people_hold_nothing_that_drives_a_terminal(paddock: Paddock, model: Path) -> None:
    ended = paddock("inspect", str(model))
    assert ended.code == 0
    assert "Q4_K_M" in ended.out
    assert "\x1b" not in ended.out


def test_settings_of_a_launch_are_taken(paddock: Paddock, model: Path) -> None:
    flags = ("--context", "4096", "--slots", "2", "--kv-cache", "q8_0:f16", "--ubatch", "256", "--no-unified")
    more = ("--flash-attn", "on", "--swa-full", "--offload", "3", "--device", "CPU")
    assert paddock("inspect", str(model), *flags, *more).code == 0


@pytest.mark.parametrize(
    ("flags", "clause"),
    [
        (("--kv-cache", "q9_0"), "q8_0"),
        (("--kv-cache", "f16:"), ""),
        (("--flash-attn", "maybe"), "on, off"),
        (("--slots", "0"), "a whole number from 1 to 256;"),
        (("--slots", "257"), "a whole number from 1 to 256;"),
        (("--context", "many"), "a whole number from 1 to 16,777,216 tokens;"),
        (("--context", "100000000"), "a whole number from 1 to 16,777,216 tokens;"),
        (("--ubatch", "0"), "a whole number from 1 to 65,536 tokens;"),
        (("--offload", "-1"), "a whole number from 0"),
        (("--device", ""), "--device"),
        (("--kv-cache", "q8_0", "--flash-attn", "off"), "needs flash attention"),
        (("--kv-cache", "f16:q4_0", "--flash-attn", "off"), "needs flash attention"),
    ],
)
def test_settings_that_are_none_end_with_2(
    paddock: Paddock, model: Path, flags: tuple[str, ...], clause: str
) -> None:
    ended = paddock("inspect", str(model), *flags)
    assert (ended.code, clause in ended.err) == (2 if clause else 0, True)
    assert ("see `paddock inspect --help`" in ended.err) == bool(clause)


def test_only_the_value_cache_needs_flash_attention(paddock: Paddock, model: Path) -> None:
    assert paddock("inspect", str(model), "--kv-cache", "q8_0:f16", "--flash-attn", "off").code == 0


@pytest.fixture
def tiny(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that was trained for 8,192 tokens, in a folder whose manifest has no engine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    return write_tiny_gguf(place / "tiny.gguf")


def test_whether_it_fits_is_said_of_this_machine(paddock: Paddock, tiny: Path) -> None:
    memory = paddock("inspect", str(tiny), "--json").json["memory"]
    assert (memory["fits"], memory["budget_bytes"].keys()) == (True, {"CPU"})
    ended = paddock("inspect", str(tiny))
    assert "\n  fits\n" in ended.out
    assert "Memory for 8,192 tokens, 1 slot, KV cache f16, without speculation" in ended.out


async def test_command_and_page_agree(paddock: Paddock, tiny: Path) -> None:
    flags = {"context": "2048", "slots": "2", "kv_cache": "q8_0"}
    options = [part for name, value in flags.items() for part in (f"--{name.replace('_', '-')}", value)]
    said = paddock("inspect", str(tiny), *options, "--json").json
    host = DevicesAnswer((host_memory(),))
    fill(tiny.parent)
    files = model_files(tiny.parent, devices=host)
    listed = next(file for file in (await files.list()).files if file.path.name == "tiny-F32.gguf")
    view = await files.inspect(listed.id, read_settings(flags))
    assert view.inspection is not None
    shown = inspect_json(view.inspection)
    for document in (said, shown):
        document["memory"].pop("budget_bytes")  # what is free changes from one moment to the next
    assert (said["memory"], said["reasons"]) == (shown["memory"], shown["reasons"])


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--context", "16384"), "context_above_training"),
        (("--device", "GPU0"), "no_such_device"),
        (("--offload", "5"), "offload_without_gpu"),
        (("--context", "512", "--slots", "256"), "slot_context_small"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_launch_would_take_otherwise_is_told(
    paddock: Paddock, tiny: Path, flags: tuple[str, ...], code: str
) -> None:
    ended = paddock("inspect", str(tiny), *flags, "--json")
    (reason,) = ended.json["reasons"]
    assert (ended.code, reason["code"], reason["severity"]) == (0, code, "warning")
    assert reason["message"] in paddock("inspect", str(tiny), *flags).out


@pytest.mark.parametrize(
    "flags", [("--context", "8192"), ("--offload", "0"), ("--device", "CPU")], ids=" ".join
)
def test_ordinary_settings_are_not_remarked_on(paddock: Paddock, tiny: Path, flags: tuple[str, ...]) -> None:
    assert paddock("inspect", str(tiny), *flags, "--json").json["reasons"] == []


def test_a_device_of_the_manifests_engine_is_known(paddock: Paddock, tiny: Path, place: Path) -> None:
    lines = "Available devices:\n  CUDA0: A card (24000 MiB, 23000 MiB free)"
    engine = write_program(place / "engine" / "llama-server", f"echo {shlex.quote(lines)}")
    with (place / "serve.toml").open("a") as manifest:
        manifest.write(f'[engines.default]\nbinary = "{engine}"\n')
    document = paddock("inspect", str(tiny), "--device", "CUDA0", "--json").json
    assert (document["memory"]["fits"], document["reasons"]) == (True, [])
    assert document["memory"]["budget_bytes"].keys() == {"CUDA0", "CPU"}


def test_facts_have_names_and_units(paddock: Paddock, tiny: Path) -> None:
    lines = [" ".join(line.split()) for line in paddock("inspect", str(tiny)).out.splitlines()]
    assert "Trained context 8,192 tokens" in lines
    assert any(line.startswith("Weights ") and line.endswith("iB") for line in lines)
    assert any(line.startswith("Attention heads ") and line.endswith((" heads", " head")) for line in lines)


def test_a_missing_file_is_a_matter_of_the_path(paddock: Paddock, tmp_path: Path) -> None:
    said = paddock("inspect", str(tmp_path / "no.gguf")).err
    assert "correct the path" in said
    assert "source" not in said


def test_an_endless_name_is_cut_off(
    paddock: Paddock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "long.gguf"
    texts = ("general.name", "general.size_label", "tokenizer.ggml.model", "general.source.url")
    path.write_bytes(
        gguf(
            pair("general.architecture", STRING, "a" * 100_000),
            *(pair(key, STRING, "x" * 100_000) for key in texts),
            tensors=(Tensor("token_embd.weight", (64, 4)),),
            data=1024,
        )
    )
    assert len(paddock("inspect", str(path), "--json").out) < 10_000


@pytest.mark.parametrize(
    ("data", "clause"),
    [
        pytest.param(b"hello", "is not a GGUF file", id="another file"),
        pytest.param(b"GGUF\3\0\0\0" + b"\xff" * 16, "is damaged", id="damaged"),
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(None, "does not exist", id="missing"),
    ],
)
def test_a_file_that_no_engine_could_load_ends_with_1_and_one_line(
    paddock: Paddock, tmp_path: Path, data: bytes | None, clause: str
) -> None:
    path = tmp_path / "m.gguf"
    if data is not None:
        path.write_bytes(data)
    ended = paddock("inspect", str(path), "--json")
    assert (ended.code, ended.out) == (1, "")
    assert clause in ended.err
    assert ended.err.count("\n") == 1


def test_a_later_shard_shows_the_set(paddock: Paddock, model: Path) -> None:
    for index in (1, 2):
        data = model.read_bytes().replace(b"token_embd", b"token_emb%d" % index)
        (model.parent / f"m-0000{index}-of-00002.gguf").write_bytes(data)
    document = paddock("inspect", str(model.parent / "m-00002-of-00002.gguf"), "--json").json
    assert [Path(file["path"]).name for file in document["files"]] == [
        "m-00001-of-00002.gguf",
        "m-00002-of-00002.gguf",
    ]
    assert [reason["code"] for reason in document["reasons"]] == ["other_shard_named"]


@pytest.mark.parametrize(
    "keys",
    [
        ("context_length",),
        ("embedding_length", "attention.head_count"),
        ("attention.head_count_kv", "attention.key_length", "attention.value_length"),
        ("block_count", "ssm.inner_size", "ssm.state_size", "expert_count", "feed_forward_length"),
    ],
    ids=lambda keys: keys[0],
)
@pytest.mark.parametrize("number", [2**31 - 1, 2**60, 2**64 - 1])
def test_absurd_numbers_of_a_header_are_still_shown(
    paddock: Paddock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], number: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    usual = {"block_count": 4, "embedding_length": 64, "attention.head_count": 4, "context_length": 4096}
    pairs = [
        pair(f"llama.{key}", U64, value) for key, value in {**usual, **dict.fromkeys(keys, number)}.items()
    ]
    path = tmp_path / "absurd.gguf"
    path.write_bytes(
        gguf(
            pair("general.architecture", STRING, "llama"),
            *pairs,
            tensors=(Tensor("token_embd.weight", (64, 4)),),
            data=1024,
        )
    )
    assert paddock("inspect", str(path), "--json").json["facts"]["architecture"] == "llama"
    assert paddock("inspect", str(path)).code == 0
