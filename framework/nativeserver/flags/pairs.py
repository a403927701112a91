"""Lists whose items have parts: adapters with scales, metadata by key, tensors with places."""

from __future__ import annotations

import re

from framework.nativeserver.flags.values import Value, list_of, number, shown, text_list, whole

OVERRIDE = re.compile(r"(?P<key>[^=]{1,127})=(?P<type>int|float|bool|str):(?P<value>.*)", re.DOTALL)
LONGEST_TEXT = 127
"""Bytes that llama.cpp keeps of a text in place of a file's."""
MOST_SPLITS = 16
SCALE = number()


def _lora(text: str) -> tuple[str, float]:
    return text, 1.0


def _scaled_lora(text: str) -> tuple[str, float]:
    path, colon, scale = text.rpartition(":")
    if not colon or not path:
        raise ValueError(f"expected FNAME:SCALE, found {shown(text)}")
    return path, SCALE.read(scale)


def _override(text: str) -> tuple[str, str, str]:
    match = OVERRIDE.fullmatch(text)
    if match is None:
        raise ValueError(f"expected KEY=TYPE:VALUE with TYPE int, float, bool or str, found {shown(text)}")
    kind, value = match["type"], match["value"]
    if kind == "int":
        whole(-(10**17), 10**17).read(value)
    elif kind == "float":
        number().read(value)
    elif kind == "bool" and value not in ("true", "false"):
        raise ValueError(f"expected true or false for {shown(match['key'])}, found {shown(value)}")
    elif len(value.encode()) > LONGEST_TEXT:
        raise ValueError(f"the text for {shown(match['key'])} has more than {LONGEST_TEXT} bytes")
    return match["key"], kind, value


def _placement(text: str) -> tuple[str, str]:
    pattern, equals, buffer = text.rpartition("=")
    if not equals or not pattern or not buffer:
        raise ValueError(f"expected PATTERN=BUFFER, found {shown(text)}")
    return pattern, buffer


def _shares(text: str) -> list[float]:
    """Proportions, separated by commas or slashes."""
    parts = text.replace("/", ",").split(",")
    if len(parts) > MOST_SPLITS:
        raise ValueError(f"found {len(parts)} shares, at most {MOST_SPLITS} are allowed")
    shares = [number(0).read(part.strip()) for part in parts]
    if not any(shares):
        raise ValueError("at least one share has to be above 0")
    return shares


def _devices(text: str) -> list[str]:
    names = list(text_list("DEVICE,...").read(text))
    if "none" in names and len(names) > 1:
        raise ValueError("'none' stands alone; it means that no device is used")
    return names


LORA_PATHS = list_of(Value("FNAME", _lora), "FNAME,...")
SCALED_LORAS = list_of(Value("FNAME:SCALE", _scaled_lora), "FNAME:SCALE,...")
OVERRIDES = list_of(Value("KEY=TYPE:VALUE", _override), "KEY=TYPE:VALUE,...")
PLACEMENTS = list_of(Value("PATTERN=BUFFER", _placement), "PATTERN=BUFFER,...")
SHARES = Value("N0,N1,...", _shares)
DEVICES = Value("DEVICE,...", _devices)
