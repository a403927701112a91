"""Pictures and sound in chat messages: what may go to the engine, in which form (08 §8). Pure.

Engines fetch addresses and open files that a message names, and some drop a picture they cannot decode
without a word. So only inline data in a known format passes, labelled with what its first bytes say.
Called before a model is loaded; never changes the caller's lists and objects.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from framework.proxy.content_parts import CHAT_PARTS, check_kind
from framework.proxy.errors import ProxyError
from framework.values.request import ModelRequest

Message = Mapping[str, Any]
Part = Mapping[str, Any]
Medium = Literal["image", "audio"]

IMAGE_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
CONVENIENCE_FIELDS = ("image", "images")
REMOTE_SCHEMES = ("http:", "https:", "file:", "ftp:")


def prepare_messages(body: Mapping[str, Any]) -> Any:
    """The `messages` of a chat body as the engine shall get them; the same object when there is no media.

    Raises ProxyError `invalid_body` for parts of a kind that is not known, `invalid_image`,
    `image_format_not_supported`, `remote_media_disabled`, `image_without_user_message`. What else is wrong is
    left for the engine to refuse.
    """
    messages = body.get("messages")
    attached = [_image_part(data) for data in _attached(body)]
    if not isinstance(messages, list):
        if attached:
            raise _nowhere_to_attach()
        return messages
    for part in _parts(messages):
        check_kind(part, CHAT_PARTS, param="messages")
    if _has_media(messages):
        messages = [_prepare_message(message) for message in messages]
    return _attach(messages, attached) if attached else messages


def media_of(body: Mapping[str, Any]) -> frozenset[Medium]:
    """What media a chat body brings."""
    found = {_medium(part) for part in _parts(body.get("messages")) if _is_media(part)}
    return frozenset(found | ({"image"} if any(body.get(name) for name in CONVENIENCE_FIELDS) else set()))


def check_media_support(
    media: frozenset[Medium],
    *,
    model: ModelRequest,
    can_see: bool,
    can_hear: bool,
    vision_models: Iterable[str],
    param: str = "messages",
) -> None:
    """Refuse media for a model that cannot take it, naming those that can (cases BI-05)."""
    lacks_eyes = "image" in media and not can_see
    if not lacks_eyes and ("audio" not in media or can_hear):
        return
    others = ", ".join(vision_models)
    advice = f"Models with a projector: {others}." if others else "No model of the manifest has one."
    lack = "runs without a projector" if not can_see else "runs with a projector that takes none"
    if model.projector is None:
        lack = "has no projector"
    raise ProxyError(
        "image_not_supported" if lacks_eyes else "audio_not_supported",
        f"Model {model.id} {lack} and cannot take {'pictures' if lacks_eyes else 'sound'}. {advice}",
        param=param,
    )


def _attached(body: Mapping[str, Any]) -> list[str]:
    single, several = (body.get(name) for name in CONVENIENCE_FIELDS)
    if several is not None and not isinstance(several, list):
        raise _invalid_image("`images` must be a list of base64 texts or data URLs")
    found = ([] if single is None else [single]) + (several or [])
    if any(not isinstance(data, str) for data in found):
        raise _invalid_image("`image` and the entries of `images` must be base64 text or data URLs")
    return found


def _attach(messages: list[Any], parts: list[dict[str, Any]]) -> list[Any]:
    """A copy in which the last user message is a list of parts that ends with `parts` (08 §8.2)."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, Mapping) and message.get("role") == "user":
            content = message.get("content")
            former = content if isinstance(content, list) else _text_parts(content)
            return [*messages[:index], {**message, "content": [*former, *parts]}, *messages[index + 1 :]]
    raise _nowhere_to_attach()


def _text_parts(content: object) -> list[dict[str, Any]]:
    return [] if content is None else [{"type": "text", "text": content}]


def _parts(messages: object) -> list[Part]:
    """All parts of all messages that are lists of parts."""
    if not isinstance(messages, list):
        return []
    contents = [m.get("content") for m in messages if isinstance(m, Mapping)]
    return [p for content in contents if isinstance(content, list) for p in content if isinstance(p, Mapping)]


def _is_media(part: Part) -> bool:
    return part.get("type") in ("image_url", "input_audio")


def _medium(part: Part) -> Medium:
    return "audio" if part.get("type") == "input_audio" else "image"


def _has_media(messages: list[Any]) -> bool:
    return any(_is_media(part) for part in _parts(messages))


def _prepare_message(message: Any) -> Any:
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        return message
    return {**message, "content": [_prepare_part(part) for part in message["content"]]}


def _prepare_part(part: Any) -> Any:
    if not isinstance(part, Mapping) or not _is_media(part):
        return part
    if part["type"] == "image_url":
        given = part.get("image_url")
        picture = given if isinstance(given, Mapping) else {"url": given}
        address = picture.get("url")
        if not isinstance(address, str):
            raise _invalid_image("an `image_url` part needs `image_url.url`")
        return {**part, "image_url": {**picture, "url": image_url(address)}}
    return {**part, "input_audio": _sound(part.get("input_audio"))}


def _sound(given: object) -> dict[str, Any]:
    """Sound with its true format, whatever it was called (09 §6.1)."""
    data = given.get("data") if isinstance(given, Mapping) else None
    refuse_remote(data)
    if not isinstance(given, Mapping) or not isinstance(data, str):
        raise _invalid_audio("an `input_audio` part needs `input_audio.data` as base64 text")
    try:
        head = binascii.a2b_base64("".join(data.split()), strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid_audio("the data is not base64") from error
    return {**given, "format": audio_format(head)}


def audio_format(data: bytes) -> str:
    """`wav`, `flac` or `mp3`, by the first bytes. Raises ProxyError `audio_format_not_supported`."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "wav"
    if data[:4] == b"fLaC":
        return "flac"
    if data[:3] == b"ID3" or (data[:1] == b"\xff" and data[1:2] >= b"\xe0"):
        return "mp3"
    raise _invalid_audio("it is neither WAV nor FLAC nor MP3")


def _image_part(data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": image_url(data)}}


def image_url(address: str) -> str:
    """A data URL whose label is true, from a data URL or bare base64. Raises ProxyError."""
    refuse_remote(address)
    encoded = address.partition(",")[2] if address[:5].lower() == "data:" else address
    encoded = "".join(encoded.split())
    try:
        data = binascii.a2b_base64(encoded, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid_image("the data is not base64") from error
    return f"data:{_media_type(data)};base64,{encoded}"


def _media_type(data: bytes) -> str:
    for signature, media_type in IMAGE_SIGNATURES:
        if data.startswith(signature):
            return media_type
    if not data:
        raise _invalid_image("the data is empty")
    found = "WebP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else "an unknown format"
    raise ProxyError(
        "image_format_not_supported",
        f"A picture is {found}; the engine decodes PNG, JPEG, GIF and BMP.",
        param="messages",
    )


def refuse_remote(address: object) -> None:
    """Refuse an address that an engine would fetch or open."""
    if isinstance(address, str) and address.lstrip()[:8].lower().startswith(REMOTE_SCHEMES):
        raise ProxyError(
            "remote_media_disabled",
            "Media must be sent inline as a data URL: the server fetches no addresses and opens no files "
            "for a request.",
            param="messages",
        )


def _invalid_image(what: str) -> ProxyError:
    return ProxyError("invalid_image", f"A picture cannot be used: {what}.", param="messages")


def _invalid_audio(what: str) -> ProxyError:
    return ProxyError("audio_format_not_supported", f"The sound cannot be used: {what}.", param="messages")


def _nowhere_to_attach() -> ProxyError:
    return ProxyError(
        "image_without_user_message",
        "`image` and `images` are attached to the last user message, and there is none.",
        param="messages",
    )
