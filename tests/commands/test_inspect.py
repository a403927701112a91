"""`paddock inspect` (13 §3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.conftest import Paddock
from tests.models.gguf_bytes import STRING, U32, U64, Tensor, gguf, pair


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
    more = ("--flash-attn", "off", "--swa-full", "--offload", "3", "--device", "CPU")
    assert paddock("inspect", str(model), *flags, *more).code == 0


@pytest.mark.parametrize(
    ("flags", "clause"),
    [
        (("--kv-cache", "q9_0"), "q8_0"),
        (("--kv-cache", "f16:"), ""),
        (("--flash-attn", "maybe"), "on, off"),
        (("--slots", "0"), "slots"),
        (("--context", "many"), "context"),
    ],
)
def test_settings_that_are_none_end_with_2(
    paddock: Paddock, model: Path, flags: tuple[str, ...], clause: str
) -> None:
    ended = paddock("inspect", str(model), *flags)
    assert (ended.code, clause in ended.err) == (2 if clause else 0, True)


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
