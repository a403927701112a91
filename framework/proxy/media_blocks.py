"""Pictures in the bodies of the Messages and the Responses API, by the rules of chat messages (08 §8). Pure.

Called before a model is loaded; never changes the caller's lists and objects. What is wrong besides pictures
is left for the engine to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from framework.proxy.content_parts import MESSAGE_BLOCKS, check_kind
from framework.proxy.errors import ProxyError
from framework.proxy.media import image_url, refuse_remote

Block = Mapping[str, Any]
# A result of a tool holds blocks itself; nothing goes deeper.
MOST_DEPTH = 3


def prepare_blocks(messages: Any) -> Any:
    """The `messages` of a Messages body as the engine shall get them. Raises ProxyError."""
    return _each_content(messages, _message_block)


def prepare_items(items: Any) -> Any:
    """The `input` of a Responses body as the engine shall get it. Raises ProxyError."""
    if not isinstance(items, list):
        return items
    return [_item(item) for item in items]


def has_images(messages: Any, kind: str) -> bool:
    """Whether any content holds a block of this kind, those in results of tools included."""
    found = False

    def look(block: Block, depth: int) -> Block:
        nonlocal found
        found = found or block.get("type") == kind
        for name in ("content", "output"):
            _blocks(block.get(name), look, depth + 1)
        return block

    _each_content(messages, look)
    if isinstance(messages, list):
        for item in messages:
            _blocks(item.get("output") if isinstance(item, Mapping) else None, look, 0)
    return found


Change = Callable[[Block, int], Block]


def _each_content(messages: Any, change: Change) -> Any:
    if not isinstance(messages, list):
        return messages
    return [
        {**message, "content": _blocks(message.get("content"), change, 0)}
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


def _blocks(content: Any, change: Change, depth: int) -> Any:
    if not isinstance(content, list) or depth > MOST_DEPTH:
        return content
    return [change(block, depth) if isinstance(block, Mapping) else block for block in content]


def _message_block(block: Block, depth: int) -> Block:
    kind = block.get("type")
    check_kind(block, MESSAGE_BLOCKS, param="messages")
    if kind == "tool_result":
        return {**block, "content": _blocks(block.get("content"), _message_block, depth + 1)}
    return {**block, "source": _source(block.get("source"))} if kind == "image" else block


def _source(source: Any) -> dict[str, Any]:
    """A picture in base64 whose `media_type` is true."""
    given = source if isinstance(source, Mapping) else {}
    if given.get("type") == "file":
        raise _no_files("messages")
    data = given.get("url") if given.get("type") == "url" else given.get("data")
    if not isinstance(data, str):
        raise ProxyError(
            "invalid_image", "A picture cannot be used: its `source` holds no data.", param="messages"
        )
    label, _, encoded = image_url(data).partition(";base64,")
    return {"type": "base64", "media_type": label.removeprefix("data:"), "data": encoded}


def _item(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    parts = {name: item[name] for name in ("content", "output") if isinstance(item.get(name), list)}
    return {**item, **{name: _blocks(part, _input_part, 0) for name, part in parts.items()}}


def _input_part(part: Block, _depth: int) -> Block:
    if part.get("type") != "input_image":
        return part
    address = part.get("image_url")
    if address is None and part.get("file_id") is not None:
        raise _no_files("input")
    refuse_remote(address)
    if not isinstance(address, str):
        raise ProxyError(
            "invalid_image", "A picture cannot be used: `image_url` must be a data URL.", param="input"
        )
    return {**part, "image_url": image_url(address)}


def _no_files(param: str) -> ProxyError:
    return ProxyError(
        "invalid_image",
        "A picture cannot be used: files are not stored here; send it inline, in base64.",
        param=param,
    )
