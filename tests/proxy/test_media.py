"""Pictures and sound in messages (08 §8, cases BI-05)."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from framework.proxy.errors import ProxyError
from framework.proxy.media import check_media_support, media_of, prepare_messages
from tests.proxy.world import model

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
PNG_URL = f"data:image/png;base64,{PNG}"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def picture(url: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def refusal(body: dict[str, Any]) -> str:
    """The code that a body is refused with."""
    with pytest.raises(ProxyError) as caught:
        prepare_messages(body)
    return caught.value.code


def check(body: dict[str, Any], **given: Any) -> None:
    """Whether a model without eyes and ears, unless told otherwise, may get what a body brings."""
    defaults = {"model": model("smol"), "can_see": False, "can_hear": False, "vision_models": []}
    check_media_support(media_of(body), **{**defaults, **given})


def test_messages_without_media_stay_the_same_list() -> None:
    messages = [user("hi"), user([{"type": "text", "text": "x"}])]
    assert prepare_messages({"messages": messages}) is messages


def test_a_picture_is_attached_to_the_last_user_message() -> None:
    messages = [user("a"), user("b"), {"role": "assistant", "content": "c"}]
    prepared = prepare_messages({"messages": messages, "image": PNG})
    assert prepared == [
        user("a"),
        user([{"type": "text", "text": "b"}, picture(PNG_URL)]),
        {"role": "assistant", "content": "c"},
    ]


def test_the_request_is_not_changed() -> None:
    messages = [user([{"type": "text", "text": "b"}])]
    prepare_messages({"messages": messages, "images": [PNG]})
    assert messages == [user([{"type": "text", "text": "b"}])]


def test_pictures_come_in_order_after_the_parts_there_are() -> None:
    jpeg = encoded(b"\xff\xd8\xffrest")
    text = {"type": "text", "text": "b"}
    prepared = prepare_messages({"messages": [user([text])], "image": PNG, "images": [jpeg]})
    assert prepared == [user([text, picture(PNG_URL), picture(f"data:image/jpeg;base64,{jpeg}")])]


@pytest.mark.parametrize("messages", [None, [], [{"role": "system", "content": "x"}], "x"])
def test_without_a_user_message_there_is_nowhere_to_attach(messages: Any) -> None:
    assert refusal({"messages": messages, "image": PNG}) == "image_without_user_message"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"BM1234", "image/bmp"),
    ],
    ids=["png", "jpeg", "gif87", "gif89", "bmp"],
)
def test_a_wrong_label_is_corrected(data: bytes, media_type: str) -> None:
    wrong = f"data:image/webp;base64,{encoded(data)}"
    prepared = prepare_messages({"messages": [user([picture(wrong)])]})
    assert prepared == [user([picture(f"data:{media_type};base64,{encoded(data)}")])]


def test_line_breaks_in_base64_are_no_fault() -> None:
    prepared = prepare_messages({"messages": [user([picture(f"data:image/png;base64,\n{PNG}\n")])]})
    assert prepared == [user([picture(PNG_URL)])]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        pytest.param("http://10.0.0.1/x.png", "remote_media_disabled", id="http"),
        pytest.param(" HTTPS://host/x.png", "remote_media_disabled", id="https"),
        pytest.param("file:///etc/passwd", "remote_media_disabled", id="file"),
        pytest.param(encoded(b"RIFF0000WEBPVP8 "), "image_format_not_supported", id="webp"),
        pytest.param(encoded(b"plain text"), "image_format_not_supported", id="unknown"),
        pytest.param("data:image/png;base64,!!!", "invalid_image", id="no-base64"),
        pytest.param("data:image/png;base64,", "invalid_image", id="empty"),
        pytest.param("/etc/passwd", "invalid_image", id="path"),
        pytest.param("gopher://x", "invalid_image", id="other-scheme"),
        pytest.param(None, "invalid_image", id="null"),
        pytest.param(5, "invalid_image", id="number"),
    ],
)
def test_what_is_no_inline_picture_is_refused(url: Any, code: str) -> None:
    assert refusal({"messages": [user([picture(url)])]}) == code


def test_the_short_form_of_a_picture_part_is_taken() -> None:
    prepared = prepare_messages({"messages": [user([{"type": "image_url", "image_url": PNG}])]})
    assert prepared == [user([picture(PNG_URL)])]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "file:///x"}},
        {"type": "image_url", "image_url": "http://host/x"},
    ],
    ids=["audio", "flat"],
)
def test_no_part_names_an_address(part: dict[str, Any]) -> None:
    assert refusal({"messages": [user([part])]}) == "remote_media_disabled"


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ({"type": "video_url", "video_url": {"url": "http://host/x"}}, 'is of type "video_url"'),
        ({"type": "file", "file": {"file_id": "f"}}, 'is of type "file"'),
        ({"type": "media_marker", "text": "x"}, 'is of type "media_marker"'),
        ({"type": "a\x1b[31m" + "b" * 5000}, "b..."),
        ({"text": "x"}, "has no `type`"),
        ({"type": ["a"]}, "has a `type` that is no text"),
    ],
    ids=["video", "file", "marker", "hostile", "none", "list"],
)
def test_a_part_of_another_kind_is_named_with_what_is_allowed(part: dict[str, Any], found: str) -> None:
    body = {"messages": [user([{"type": "text", "text": "x"}, part])]}
    check(body)
    with pytest.raises(ProxyError) as caught:
        prepare_messages(body)
    assert (caught.value.code, caught.value.param) == ("invalid_body", "messages")
    assert found in caught.value.message
    assert "Allowed are text, refusal, image_url and input_audio" in caught.value.message
    assert "\x1b" not in caught.value.message
    assert "picture" not in caught.value.message
    assert len(caught.value.message) < 500


@pytest.mark.parametrize(
    "body",
    [{"image": 5}, {"images": "x"}, {"images": [1]}, {"images": [None]}],
    ids=["number", "no-list", "number-in-list", "null-in-list"],
)
def test_convenience_fields_of_the_wrong_type_are_refused(body: dict[str, Any]) -> None:
    assert refusal({"messages": [user("a")], **body}) == "invalid_image"


@pytest.mark.parametrize(
    "messages",
    [5, [None], ["x"], [{"content": 5}], [user([None, 5, "x"])]],
    ids=str,
)
def test_other_faults_of_messages_are_left_to_the_engine(messages: Any) -> None:
    assert prepare_messages({"messages": messages}) == messages


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"messages": [user([picture(PNG_URL)])]}, "image_not_supported", id="picture"),
        pytest.param({"messages": [user("a")], "image": PNG}, "image_not_supported", id="field"),
        pytest.param(
            {"messages": [user([{"type": "input_audio", "input_audio": {}}])]},
            "audio_not_supported",
            id="sound",
        ),
    ],
)
def test_media_for_a_model_that_cannot_take_it(body: dict[str, Any], code: str) -> None:
    with pytest.raises(ProxyError) as caught:
        check(body, vision_models=["eye", "lens"])
    assert caught.value.code == code
    assert "smol has no projector" in caught.value.message
    assert "eye, lens" in caught.value.message


def test_a_projector_that_did_not_start_is_not_denied() -> None:
    with_projector = model("smol", projector=Path("/p.gguf"))
    with pytest.raises(ProxyError) as caught:
        check({"image": PNG}, model=with_projector)
    assert "runs without a projector" in caught.value.message


@pytest.mark.parametrize("can_see", [True, False], ids=["vision", "text"])
def test_text_is_for_every_model(can_see: bool) -> None:
    body = {"messages": [user("a"), user([{"type": "text", "text": "b"}])], "image": None, "images": []}
    check(body, can_see=can_see)
