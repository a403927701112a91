"""Access keys, and who may call an endpoint that has none (08 §2.9)."""

from __future__ import annotations

from hashlib import sha256

import pytest

from framework.proxy.access import authorise, may_use
from framework.proxy.errors import ProxyError
from framework.proxy.key_guesses import TRIES
from framework.values.manifest import AccessKey, Listener, Manifest, ServerSettings
from tests.proxy.world import World, manifest_of, model


def key(name: str, secret: str, *models: str) -> AccessKey:
    return AccessKey(name, sha256(secret.encode()).hexdigest(), models or ("*",))


GUARDED = manifest_of(model("smol"), access=(key("laptop", "s3cret"), key("phone", "pässword")))
OPEN = manifest_of(model("smol"))


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        pytest.param({"authorization": "Bearer s3cret"}, "laptop", id="bearer"),
        pytest.param({"authorization": "bearer  s3cret "}, "laptop", id="any-case-and-blanks"),
        pytest.param({"x-api-key": "s3cret"}, "laptop", id="x-api-key"),
        pytest.param({"authorization": "Basic eA==", "x-api-key": "s3cret"}, "laptop", id="basic-beside"),
        pytest.param({"x-api-key": "pässword".encode().decode("latin-1")}, "phone", id="utf-8-key"),
    ],
)
def test_a_known_key_opens(headers: dict[str, str], name: str) -> None:
    found = authorise(headers, GUARDED)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        pytest.param({}, "key_missing", id="none"),
        pytest.param({"authorization": "Bearer "}, "key_missing", id="empty"),
        pytest.param({"authorization": "s3cret"}, "key_missing", id="no-scheme"),
        pytest.param({"authorization": "Bearer wrong"}, "key_invalid", id="wrong"),
        pytest.param({"authorization": "Bearer s3cret2"}, "key_invalid", id="longer"),
        pytest.param(
            {"authorization": f"Bearer {sha256(b's3cret').hexdigest()}"}, "key_invalid", id="digest-as-key"
        ),
    ],
)
def test_without_a_known_key_nobody_enters(headers: dict[str, str], code: str) -> None:
    with pytest.raises(ProxyError) as caught:
        authorise(headers, GUARDED)
    assert (caught.value.code, caught.value.status) == (code, 401)
    assert caught.value.headers == {"www-authenticate": "Bearer"}


def test_a_refusal_does_not_repeat_the_key() -> None:
    with pytest.raises(ProxyError) as caught:
        authorise({"authorization": "Bearer hunter2"}, GUARDED)
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("models", "allowed"),
    [(("*",), True), (("smol",), True), (("gpt",), True), (("other",), False), ((), False)],
    ids=["every", "id", "alias", "other", "none"],
)
def test_a_key_opens_the_models_it_names(models: tuple[str, ...], allowed: bool) -> None:
    assert may_use(AccessKey("k", "0", models), model("smol", aliases=("gpt",))) is allowed


def open_on(host: str) -> Manifest:
    return manifest_of(model("smol"), server=ServerSettings(Listener(host)))


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8080", "LOCALHOST:9000", "127.0.0.1:8080", "[::1]:8080", "app.localhost:8080"],
)
def test_an_open_endpoint_answers_under_local_names(host: str) -> None:
    assert authorise({"host": host}, OPEN) is None


def test_an_open_endpoint_answers_under_its_own_name() -> None:
    assert authorise({"host": "paddock.lan:8080"}, open_on("paddock.lan")) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "a@localhost",
        "",
    ],
)
def test_a_rebound_name_is_refused(host: str) -> None:
    with pytest.raises(ProxyError) as caught:
        authorise({"host": host}, OPEN)
    assert (caught.value.code, caught.value.status) == ("host_not_allowed", 403)


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://localhost:3000", "null", "", "http://[", "file://localhost:8080"],
)
def test_pages_of_other_origins_are_refused(origin: str) -> None:
    with pytest.raises(ProxyError) as caught:
        authorise({"host": "localhost:8080", "origin": origin}, OPEN)
    assert (caught.value.code, caught.value.status) == ("origin_not_allowed", 403)


def test_our_own_pages_may_call() -> None:
    assert authorise({"host": "localhost:8080", "origin": "http://LOCALHOST:8080"}, OPEN) is None


def test_a_key_is_enough_under_any_name_and_from_any_origin() -> None:
    headers = {"host": "gpu.lan", "origin": "https://chat.lan", "x-api-key": "s3cret"}
    assert authorise(headers, GUARDED) is not None


async def test_keys_are_not_guessed_at_the_endpoint_and_who_was_right_goes_on(world: World) -> None:
    world.declare(model("smol"), access=(key("laptop", "s3cret"), key("phone", "pa55")))

    async def status(secret: str) -> int:
        return (
            await world.ask("/v1/models", method="GET", headers={"authorization": f"Bearer {secret}"})
        ).status

    assert await status("s3cret") == 200
    assert [await status(f"guess {n}") for n in range(TRIES + 2)] == [401] * TRIES + [429] * 2
    assert (await status("s3cret"), await status("pa55")) == (200, 429)
