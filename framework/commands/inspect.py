"""`paddock inspect`: what a model file holds, what stands beside it, and the memory it would take (13 §3)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from framework.api.inspection import InspectSettings, inspect_file
from framework.api.shapes import inspect_json
from framework.commands.failure import BAD_INPUT, NOT_SO, OK, CommandFailed
from framework.commands.memory_table import print_memory
from framework.commands.options import JsonOption
from framework.commands.output import print_json, print_reason, print_table, say
from framework.engines.granted import CACHE_TYPES
from framework.manifest.number_values import LARGEST_BATCH, LARGEST_CONTEXT, MOST_SLOTS
from framework.models.facts import FactsReader
from framework.values.reason import Refused
from framework.values.units_text import size as size_text

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A GGUF file; any shard names the set.")]
ContextOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=LARGEST_CONTEXT, help="Tokens of all slots; default: as trained."),
]
SlotsOption = Annotated[int, typer.Option(metavar="N", min=1, max=MOST_SLOTS, help="Requests at a time.")]
CacheOption = Annotated[str, typer.Option("--kv-cache", metavar="K[:V]", help="Cache types, as q8_0:f16.")]
BatchOption = Annotated[
    int | None, typer.Option("--ubatch", metavar="N", min=1, max=LARGEST_BATCH, help="Micro-batch, tokens.")
]
UnifiedOption = Annotated[
    bool | None, typer.Option("--unified/--no-unified", help="One cache for all slots, or one each.")
]
FlashOption = Annotated[str, typer.Option("--flash-attn", metavar="on|off", help="Flash attention.")]
WindowOption = Annotated[
    bool, typer.Option("--swa-full", help="Full cache for layers with a sliding window.")
]
OffloadOption = Annotated[
    int | None, typer.Option("--offload", metavar="N", min=0, help="Layers on the device; default: all.")
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="NAME", help="Where it would run, as `devices` names it.")
]
SWITCH = {"on": True, "off": False}
HIDDEN = ("weight_bytes_by_type", "kv_heads_by_layer")


def command(
    file: FileArgument,
    context: ContextOption = None,
    slots: SlotsOption = 1,
    kv_cache: CacheOption = "f16",
    ubatch: BatchOption = None,
    unified: UnifiedOption = None,
    flash_attn: FlashOption = "on",
    swa_full: WindowOption = False,
    offload: OffloadOption = None,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show what a model file holds and the memory it would take."""
    settings = InspectSettings(
        context=context,
        slots=slots,
        cache_types=_cache_types(kv_cache),
        ubatch=ubatch,
        unified=unified,
        flash_attn=_switch(flash_attn),
        swa_full=swa_full,
        gpu_layers=offload,
        device=device,
    )
    try:
        answer = inspect_json(inspect_file(file, settings, FactsReader()))
    except Refused as refusal:
        reason = refusal.failure.reason
        raise CommandFailed(NOT_SO, reason.message, reason.remedy) from refusal
    if as_json:
        print_json(answer)
    else:
        _print(answer)
    return OK


def _print(answer: dict[str, Any]) -> None:
    say(answer["facts"]["name"] or answer["files"][0]["path"], "bold")
    known = {
        name: value for name, value in answer["facts"].items() if value is not None and name not in HIDDEN
    }
    print_table(("FACT", ""), [(f"  {_words(name)}", _value(name, value)) for name, value in known.items()])
    print_table(("FILE", "SIZE"), [(f"  {f['path']}", size_text(f["bytes"])) for f in answer["files"]])
    print_table(("TEMPLATE", ""), [(f"  {_words(k)}", _value(k, v)) for k, v in answer["template"].items()])
    beside = {name: path for name, path in answer["companions"].items() if path}
    if beside:
        print_table(("BESIDE IT", ""), [(f"  {name}", path) for name, path in beside.items()])
    print_memory(answer["memory"])
    for reason in answer["reasons"]:
        print_reason(reason, owner=reason["severity"])


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes"):
        return size_text(value)
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _words(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _cache_types(text: str) -> tuple[str, str]:
    key, _, value = text.partition(":")
    types = (key, value or key)
    for cache_type in types:
        if cache_type not in CACHE_TYPES:
            raise _bad_option("--kv-cache", text, CACHE_TYPES)
    return types


def _switch(text: str) -> bool:
    if text not in SWITCH:
        raise _bad_option("--flash-attn", text, SWITCH)
    return SWITCH[text]


def _bad_option(option: str, found: str, allowed: Iterable[str]) -> CommandFailed:
    return CommandFailed(BAD_INPUT, f"{option}: found {found!r}; allowed: {', '.join(allowed)}.")
