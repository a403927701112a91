"""`paddock inspect`: what a model file holds, what stands beside it, and the memory it would take (13 §3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from framework.api.answers import DevicesAnswer
from framework.api.facts import list_all_devices
from framework.api.inspect_notes import InspectSettings, value_cache_fault
from framework.api.inspect_query import MOST_LAYERS, SWITCH
from framework.api.inspection import inspect_file
from framework.api.named_facts import named_abilities, named_facts
from framework.api.shapes import inspect_json
from framework.commands import parsers
from framework.commands.context import manifest_path, read_settings
from framework.commands.failure import NOT_SO, OK, BadUsage, CommandFailed
from framework.commands.local import load
from framework.commands.memory_table import print_memory, print_verdict
from framework.commands.options import JsonOption
from framework.commands.output import note, print_json, print_reason, print_table, say
from framework.hardware.devices import host_memory
from framework.manifest.number_values import LARGEST_BATCH, LARGEST_CONTEXT, MOST_SLOTS
from framework.models.facts import FactsReader
from framework.values.cache_types import CACHE_TYPES
from framework.values.device import HOST_NAME
from framework.values.engine import EngineRef
from framework.values.manifest import Manifest
from framework.values.reason import Refused
from framework.values.units_text import counted, tokens
from framework.values.units_text import size as size_text

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A GGUF file; any shard names the set.")]
ContextOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=parsers.whole_number("--context", 1, LARGEST_CONTEXT, "tokens"),
        help="Tokens of all slots; default: as trained.",
    ),
]
SlotsOption = Annotated[
    int,
    typer.Option(
        metavar="N", parser=parsers.whole_number("--slots", 1, MOST_SLOTS), help="Requests at a time."
    ),
]
CacheOption = Annotated[str, typer.Option("--kv-cache", metavar="K[:V]", help="Cache types, as q8_0:f16.")]
BatchOption = Annotated[
    int | None,
    typer.Option(
        "--ubatch",
        metavar="N",
        parser=parsers.whole_number("--ubatch", 1, LARGEST_BATCH, "tokens"),
        help="Micro-batch, tokens.",
    ),
]
UnifiedOption = Annotated[
    bool | None, typer.Option("--unified/--no-unified", help="One cache for all slots, or one each.")
]
FlashOption = Annotated[str, typer.Option("--flash-attn", metavar="on|off", help="Flash attention.")]
WindowOption = Annotated[
    bool, typer.Option("--swa-full", help="Full cache for layers with a sliding window.")
]
OffloadOption = Annotated[
    int | None,
    typer.Option(
        "--offload",
        metavar="N",
        parser=parsers.whole_number("--offload", 0, MOST_LAYERS),
        help="Layers on the device; default: all.",
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        parser=parsers.text("--device"),
        help="Where it would run, as `devices` names it.",
    ),
]


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
    """Show what a model file holds and the memory it would take, without speculation."""
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
    if fault := value_cache_fault(settings):
        raise BadUsage(f"--kv-cache: {fault}.")
    known = _devices(device)
    try:
        answer = inspect_json(inspect_file(file, settings, FactsReader(), known.devices))
    except Refused as refusal:
        reason = refusal.failure.reason
        raise CommandFailed(NOT_SO, reason.message, reason.remedy) from refusal
    if as_json:
        print_json(answer)
    else:
        _print(answer, settings)
    return OK


def _devices(name: str | None) -> DevicesAnswer:
    """What this machine has. Where only host memory counts, no engine is asked; else those of the manifest
    are, or the usual one where there is no good manifest."""
    if name in (None, HOST_NAME):
        return DevicesAnswer((host_memory(),))
    settings = read_settings()
    path = manifest_path(settings, None)
    loaded = load(path, settings).manifest if path.exists() else None
    manifest = loaded or Manifest(path, "", (), engines={"default": EngineRef()})
    answer = asyncio.run(list_all_devices(manifest, os.environ))
    for reason in answer.reasons:
        note(f"{reason.message} {reason.remedy}")
    return answer


def _print(answer: dict[str, Any], settings: InspectSettings) -> None:
    say(answer["facts"]["name"] or answer["files"][0]["path"], "bold")
    for title, rows in (
        ("FACT", named_facts(answer["facts"])),
        ("TEMPLATE", named_abilities(answer["template"])),
        ("BESIDE IT", ((name, path) for name, path in answer["companions"].items() if path)),
    ):
        if told := [(f"  {name}", text) for name, text in rows]:
            print_table((title, ""), told)
    print_table(("FILE", "SIZE"), [(f"  {f['path']}", size_text(f["bytes"])) for f in answer["files"]])
    memory = answer["memory"]
    if memory["lines"]:
        say(f"Memory for {_launch(memory, settings)}", "bold")
    print_memory(memory)
    print_verdict(memory)
    for reason in answer["reasons"]:
        print_reason(reason, owner=reason["severity"])


def _launch(memory: dict[str, Any], settings: InspectSettings) -> str:
    """What the numbers are for."""
    cache = " / ".join(dict.fromkeys(settings.cache_types))
    size = f"{tokens(memory['context'])}, {counted(memory['slots'], 'slot')}"
    return f"{size}, KV cache {cache}, without speculation"


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


def _bad_option(option: str, found: str, allowed: Iterable[str]) -> BadUsage:
    return parsers.refusal(option, found, ", ".join(allowed))
