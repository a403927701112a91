"""Pictures and sound in chat messages: what may go to the engine, in which form (08 §8). Pure.

Engines fetch addresses and open files that a message names, and some drop a picture they cannot decode
without a word. So only inline data in a known format passes, labelled with what its first bytes say.
Called before a model is loaded; never changes the caller's lists and objects.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from framework.proxy.errors import ProxyError
from framework.values.request import ModelRequest

Message = Mapping[str, Any]
Part = Mapping[str, Any]

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

    Raises ProxyError `invalid_image`, `image_format_not_supported`, `remote_media_disabled`,
    `image_without_user_message`. What is wrong besides media is left for the engine to refuse.
    """
    messages = body.get("messages")
    attached = [_image_part(data) for data in _attached(body)]
    if not isinstance(messages, list):
        if attached:
            raise _nowhere_to_attach()
        return messages
    if _has_media(messages):
        messages = [_prepare_message(message) for message in messages]
    return _attach(messages, attached) if attached else messages


def check_media_support(
    body: Mapping[str, Any], *, model: ModelRequest, can_see: bool, vision_models: Sequence[str]
) -> None:
    """Refuse media for a model that cannot take it, naming those that can (cases BI-05)."""
    media = [part.get("type") for part in _parts(body.get("messages")) if _is_media(part)]
    image = "image_url" in media or any(body.get(name) for name in CONVENIENCE_FIELDS)
    if can_see or not (media or image):
        return
    others = ", ".join(vision_models)
    advice = f"Models with a projector: {others}." if others else "No model of the manifest has one."
    lack = "has no projector" if model.projector is None else "runs without a projector"
    raise ProxyError(
        "image_not_supported" if image else "audio_not_supported",
        f"Model {model.id} {lack} and cannot take {'pictures' if image else 'sound'}. {advice}",
        param="messages",
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
    return part.get("type") not in (None, "text", "refusal")


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
        return {**part, "image_url": {**picture, "url": _image_url(address)}}
    for value in part.values():
        for inner in value.values() if isinstance(value, Mapping) else (value,):
            _refuse_remote(inner)
    return part


def _image_part(data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": _image_url(data)}}


def _image_url(address: str) -> str:
    """A data URL whose label is true, from a data URL or bare base64."""
    _refuse_remote(address)
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


def _refuse_remote(address: object) -> None:
    if isinstance(address, str) and address.lstrip()[:8].lower().startswith(REMOTE_SCHEMES):
        raise ProxyError(
            "remote_media_disabled",
            "Media must be sent inline as a data URL: the server fetches no addresses and opens no files "
            "for a request.",
            param="messages",
        )


def _invalid_image(what: str) -> ProxyError:
    return ProxyError("invalid_image", f"A picture cannot be used: {what}.", param="messages")


def _nowhere_to_attach() -> ProxyError:
    return ProxyError(
        "image_without_user_message",
        "`image` and `images` are attached to the last user message, and there is none.",
        param="messages",
    )
