"""Whatever is wrong with one model is one clear sentence everywhere; the others go on; the file heals it."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import MakeFake, StartPaddock
from tests.e2e.clients import chat, engine_table, error_of, model_table
from tests.support.bad_model_files import BAD_MODEL_FILES
from tests.support.paddock import run_command

GOOD_ENGINE, BAD_ENGINE = "good-engine", "bad-engine"


def page_text(url: str) -> str:
    """The words of a page, as a reader sees them."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", httpx.get(url, trust_env=False).text)).split())


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "does not exist", id="no-such-file"),
        pytest.param(b"hello world, this is no model at all", "not a GGUF file", id="not-gguf"),
        pytest.param("cut", "cut off", id="truncated"),
        pytest.param("folder", "director", id="a-directory"),
    ],
)
def test_a_bad_model_file(
    paddock_up: StartPaddock,
    fake_engine: MakeFake,
    tiny_gguf: Path,
    tmp_path: Path,
    content: Any,
    said: str,
) -> None:
    bad = tmp_path / "bad.gguf"
    if content == "cut":
        bad.write_bytes(tiny_gguf.read_bytes()[:-50])
    elif content == "folder":
        bad.mkdir()
    elif content is not None:
        bad.write_bytes(content)
    tables = engine_table(fake_engine()) + model_table("good", tiny_gguf) + model_table("bad", bad)
    paddock = paddock_up(tables)
    assert_told_everywhere(paddock, said)
    paddock.edit(str(bad), str(tiny_gguf))
    paddock.wait_state("bad", "ready")


def test_every_kind_of_bad_model_file_is_one_failed_model(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, tmp_path: Path
) -> None:
    words_of: dict[str, str] = {}
    tables = engine_table(fake_engine()) + model_table("good", tiny_gguf)
    for number, (make, said) in enumerate(BAD_MODEL_FILES.values()):
        folder = tmp_path / f"folder-{number}"
        folder.mkdir()
        path = make(folder)
        if path.name.isprintable():
            tables += model_table(f"bad-{number}", path)
            words_of[f"bad-{number}"] = said
    paddock = paddock_up(tables)
    paddock.wait_state("good", "ready")
    for name, said in words_of.items():
        paddock.wait_state(name, "failed")
        message = paddock.model(name)["instances"][0]["last_error"]["message"]
        assert said in message, name
        assert "\n" not in message


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param({"exit_signal": "SIGILL"}, "CPU instructions that this machine lacks", id="signal-4"),
        pytest.param({"exit_code": 1, "stderr": ["error: no luck today"]}, "no luck today", id="exit-1"),
        pytest.param({"load_s": -1}, "not ready after 1 s", id="never-healthy"),
        pytest.param({}, "does not exist", id="no-engine"),
    ],
)
def test_a_bad_engine(
    paddock_up: StartPaddock, fake_engine: MakeFake, tiny_gguf: Path, script: dict[str, Any], said: str
) -> None:
    good, bad = fake_engine(), fake_engine(**script)
    if not script:
        bad.path.unlink()
    tables = (
        engine_table(good)
        + f'[engines.other]\nbinary = "{bad.path}"\n'
        + model_table("good", tiny_gguf)
        + model_table(
            "bad", tiny_gguf, engine="other", timeout={"load": "1s" if "load_s" in script else "2m"}
        )
    )
    paddock = paddock_up(tables)
    assert_told_everywhere(paddock, said)
    # The good engine may take longer than the one that hangs was given.
    text = paddock.manifest.read_text(encoding="utf-8")
    paddock.write(text.replace('engine = "other"\n', "").replace('"1s"', '"2m"'))
    paddock.wait_state("bad", "ready")


def assert_told_everywhere(paddock: Any, said: str) -> None:
    """The failure of `bad`: terminal, status command, API, endpoint, both pages; `good` serves."""
    entry = paddock.wait_state("bad", "failed")
    reason = entry["instances"][0]["last_error"]
    assert said in reason["message"]
    assert reason["remedy"]
    sentence = words(reason["message"])
    paddock.wait_state("good", "ready")
    assert chat(paddock, "good").status_code == 200
    assert sentence in words(paddock.log_text())
    shown = paddock.command("status")
    assert sentence in words(shown.stdout)
    assert sentence in page_text(f"{paddock.base_url}/")
    assert sentence in page_text(f"{paddock.base_url}/models/bad")
    assert any(sentence == words(e["reason"]["message"]) for e in paddock.events(model="bad") if e["reason"])
    answer = chat(paddock, "bad")
    assert answer.status_code == 500
    error = error_of(answer)
    assert error["code"] == "model_load_failed"
    assert error["reason"]["code"] == reason["code"]
    # Clients get the sentence too, but no path of this machine.
    assert said in error["message"]
    assert str(paddock.manifest.parent.parent) not in answer.text


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        pytest.param(None, "1:1", "serve.toml", id="no-file"),
        pytest.param("[server]\nlisten = 8080\n", "2:10", "listen", id="wrong-type"),
        pytest.param('listen = "127.0.0.1:9090"\n', "1:1", "server.listen", id="key-in-the-wrong-table"),
        pytest.param('[models.m]\nsource = "m.gguf"\ncontex = 8192\n', "3:1", "context", id="unknown-key"),
        pytest.param("[models.m\n", "1:", "TOML", id="not-toml"),
        pytest.param(
            '[models.m]\nsource = "m.gguf"\non_drift = "report"\n', "3:", "not in this", id="later-feature"
        ),
        pytest.param(
            '[speculation.s]\nmode = "ngram"\ndraft = "d.gguf"\n',
            "3:1",
            "drafts without a model",
            id="drafter-nobody-uses",
        ),
    ],
)
def test_a_manifest_that_cannot_be_used_ends_up_with_its_place(
    tmp_path: Path, clean_env: dict[str, str], text: str | None, place: str, said: str
) -> None:
    manifest = tmp_path / "serve.toml"
    if text is not None:
        manifest.write_text(text)
    ended = run_command("up", "--manifest", str(manifest), environment=clean_env)
    assert ended.returncode == 2
    assert f"serve.toml:{place}" in ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        pytest.param(b"", "application/json", 400, id="empty"),
        pytest.param(b"{", "application/json", 400, id="cut"),
        pytest.param(b"[" * 100_000, "application/json", 400, id="nested-deep"),
        pytest.param(b"[1]", "application/json", 400, id="array"),
        pytest.param(b"{}", "text/plain", 415, id="wrong-type"),
        pytest.param(b'{"model":"good","temperature":NaN}', "application/json", 400, id="nan"),
        pytest.param(b'{"model":5}', "application/json", 400, id="number-as-model"),
        pytest.param(b'{"model":"GOOD","messages":[]}', "application/json", 404, id="other-case"),
        pytest.param(b'{"model":" good","messages":[]}', "application/json", 404, id="leading-blank"),
        pytest.param(b'{"model":"../../etc/passwd","messages":[]}', "application/json", 404, id="path"),
        pytest.param(b'{"model":"good\\u0000","messages":[]}', "application/json", 400, id="control"),
        pytest.param(b'{"model":"' + b"x" * 4000 + b'"}', "application/json", 404, id="long-name"),
    ],
)
def test_a_bad_request_is_refused_before_the_engine(
    one_good: Any, body: bytes, kind: str, status: int
) -> None:
    paddock, engine = one_good
    before = len(engine.requests())
    answer = httpx.post(
        f"{paddock.base_url}/v1/chat/completions",
        content=body,
        headers={"Content-Type": kind},
        trust_env=False,
    )
    assert answer.status_code == status
    assert error_of(answer)["message"]
    assert len(engine.requests()) == before


@pytest.fixture(scope="module")
def one_good(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One manager with one loaded model for all bad requests."""
    import os

    from tests.support.fakes import write_fake_engine
    from tests.support.model_files import write_tiny_gguf
    from tests.support.paddock import start_paddock

    folder = tmp_path_factory.mktemp("bad-requests")
    engine = write_fake_engine(folder / "engine")
    model = write_tiny_gguf(folder / "tiny.gguf")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PADDOCK_STATE_DIR": str(folder / "state"),
    }
    paddock = start_paddock(folder / "up", engine_table(engine) + model_table("good", model), environment)
    paddock.wait_state("good", "ready")
    yield paddock, engine
    paddock.close()
