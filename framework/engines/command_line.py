"""The command line of a llama-server instance, as named sections in a fixed order (06 §6). Pure.

Called by planning; runtime fills in what is only known at the spawn. Recovery changes sections, never
positions. The user's own arguments come last, because the last occurrence of a flag wins.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framework.engines import args
from framework.engines.help_text import VERBOSITY_FLAGS
from framework.values.engine import Capabilities
from framework.values.plan import Section
from framework.values.reason import Failure, Reason, Refused
from framework.values.request import ModelRequest

PORT = "{port}"
TEMPLATE = "{template}"
SLOT_FOLDER = "{slots}"
SLOT_SAVING = "slot-save"
SLOT_SAVE_FLAG, KEEP_IDLE_FLAG = "--slot-save-path", "--no-cache-idle-slots"
LOOPBACK = "127.0.0.1"
# 06 §6.1 row 12': with nothing asked, the fit step may shrink the context, but not to something useless.
LEAST_FITTED_CONTEXT = 8192
# 06 §6.1 row 13: llama-server's own margin of 1024 MiB per device is more than manual mode wants to lose.
MANUAL_FIT_MARGIN_MIB = 512
ENGINE_BATCH = (2048, 512)


@dataclass(frozen=True)
class Directions:
    """Where planning sends a launch, by the engine's own names of devices (04 §8, §10.15)."""

    devices: tuple[str, ...] = ()
    """In the order in which they get layers; none for host memory alone."""
    servers: tuple[str, ...] = ()
    """`host:port` of the remote ones among them; an engine connects to all that it is given."""
    layers: int | None = None
    """On GPUs, the output counted as one; None leaves that to the fit step or to manual mode."""
    experts: int = 0
    """Experts of so many first layers stay in host memory."""
    shares: tuple[int, ...] = ()
    tensor: bool = False
    cache_ram_mib: int | None = None
    """Limit of the prompt cache; None leaves the engine's own."""


@dataclass(frozen=True)
class LineInputs:
    """What a line is made of: the request, the engine's facts, and what was granted.

    `context` is tokens over all slots, 0 = automatic. `spec_block` is the block of the speculation policy.
    `cpu_only` keeps everything off the devices. `cpu_moe` is the value for `--n-cpu-moe` (04 §13) and
    `tensor_split` the shares of the devices, both in manual mode only.
    `template` says that a template file will be written for the launch, `slot_saving` that there is a folder
    for saved slots. `thinking` are arguments of the chat template; those of the request win.
    """

    request: ModelRequest
    caps: Capabilities
    entry: Path
    main_gguf: Path
    slots: int
    context: int = 0
    cache_types: tuple[str | None, str | None] = (None, None)
    spec_block: tuple[str, ...] = ()
    cpu_only: bool = False
    cpu_moe: int | None = None
    tensor_split: tuple[float, ...] = ()
    projector: Path | None = None
    template: bool = False
    slot_saving: bool = False
    thinking: Mapping[str, bool | str | float] = field(default_factory=dict)
    directions: Directions | None = None
    """None where the engine uses whatever it sees."""

    @property
    def is_directed(self) -> bool:
        """Whether planning says how many layers go where, so that nothing is left to the fit step."""
        return self.directions is not None and self.directions.layers is not None

    @property
    def fixed_layers(self) -> bool:
        """Manual mode with a layer count: nothing is left to the fit step."""
        return self.request.memory_mode == "manual" and self.request.gpu_layers >= 0

    @property
    def fitted_layers(self) -> bool:
        """Manual mode that leaves the layers to llama-server's fit step."""
        return self.request.memory_mode == "manual" and not self.fixed_layers

    @property
    def fit(self) -> bool:
        """Whether llama-server's own fit step runs."""
        is_free = not self.cpu_only and not self.fixed_layers and not self.is_directed
        return is_free and self.may_set("--fit")

    def may_have(self, flag: str) -> bool:
        """False only when a conclusive probe did not list the flag: passing it would stop the start."""
        return self.caps.has(flag) or not self.caps.conclusive

    def may_set(self, flag: str) -> bool:
        """As `may_have`, with a value behind it: some builds have a switch of the same name."""
        return self.caps.takes_value(flag) or not self.caps.conclusive


def build_sections(line: LineInputs) -> tuple[Section, ...]:
    """All sections in order; empty ones are left out.

    `{port}`, `{slots}` and `{template}` stand for values of the launch (`fill_line`). Raises `Refused` with
    `adapters_unsupported` when this build cannot load the adapters asked for.
    """
    return tuple(section for section in _rows(line) if section.tokens)


def fill_line(
    sections: Iterable[Section],
    *,
    port: int,
    template_path: Path | None = None,
    slot_folder: Path | None = None,
) -> list[str]:
    """The argument vector of one launch, entry first. Placeholders count only in their own sections."""
    values = {("listen", PORT): str(port)}
    if slot_folder is not None:
        values[SLOT_SAVING, SLOT_FOLDER] = str(slot_folder)
    if template_path is not None:
        values["template", TEMPLATE] = str(template_path)
    return [values.get((section.name, token), token) for section in sections for token in section.tokens]


def _rows(line: LineInputs) -> Iterator[Section]:
    """Rows of 06 §6.1 by number."""
    request, caps = line.request, line.caps
    yield Section("model", (str(line.entry), "-m", str(line.main_gguf)))  # 1
    yield Section("listen", ("--host", LOOPBACK, "--port", PORT))  # 2
    yield Section("slots", ("--parallel", str(line.slots)))  # 3
    yield Section("flash", _flash(line))  # 4
    yield Section("shift", _switch(line.may_have("--no-context-shift"), "--no-context-shift"))  # 5
    yield Section("context", _context(line))  # 6
    yield Section("alias", ("--alias", request.id))  # 7
    yield Section("placement", _placement(line))  # 8
    yield Section("metrics", _switch(caps.has("--metrics"), "--metrics"), "optional")  # 9
    yield Section(SLOT_SAVING, _slot_saving(line), "optional")  # 10
    unified = line.slots > 1 and caps.has("--kv-unified")
    yield Section("unified", _switch(unified, "--kv-unified"), "optional")  # 11
    yield Section("fit-ctx", _fit_context(line), "optional")  # 12, 12'
    yield Section("fit-target", _fit_target(line), "optional")  # 13
    yield Section("threads", () if request.threads is None else ("--threads", str(request.threads)))  # 14
    yield Section("jinja", _switch(line.may_have("--jinja"), "--jinja"))  # 15
    yield Section("batch", _batch(request))  # 15a
    yield Section("kv", _cache_types(line))  # 16
    yield Section("prompt-cache", _prompt_cache(line), "optional")
    full_window = request.swa_full and caps.has("--swa-full")
    yield Section("window", _switch(full_window, "--swa-full"), "optional")
    yield Section("spec", line.spec_block, "optional")  # 18
    yield Section("template", ("--chat-template-file", TEMPLATE) if line.template else ())  # 19
    yield Section("template-kwargs", _template_arguments(line))  # 20
    yield Section("projector", () if line.projector is None else ("--mmproj", str(line.projector)))  # 21
    yield Section("adapters", _adapters(request, caps), "optional")  # 21a
    yield Section("verbosity", _verbosity(caps), "optional")
    yield Section("user", request.extra_args, "user")  # 24


def _switch(wanted: bool, flag: str) -> tuple[str, ...]:
    return (flag,) if wanted else ()


def _flash(line: LineInputs) -> tuple[str, ...]:
    """Row 4. In builds where it is a switch, flash attention is off without it, and there is no `auto`."""
    asked = line.request.flash_attn
    if line.may_set("--flash-attn"):
        return ("--flash-attn", asked)
    return _switch(asked != "off" and line.caps.has("--flash-attn"), "--flash-attn")


def _context(line: LineInputs) -> tuple[str, ...]:
    """Row 6. An explicit 0 means the whole native window and forbids the fit step to shrink it, so an
    automatic context is left out wherever that step runs: our memory plan predicts, it alone knows what fits.
    """
    if line.context == 0 and line.fit:
        return ()
    return ("-c", str(line.context))


def _placement(line: LineInputs) -> tuple[str, ...]:
    """Rows 8 and 23. Which layers go where is said by planning, by manual mode, or by the fit step."""
    fit_off = ("--fit", "off") if line.may_set("--fit") else ()
    directions = line.directions
    if line.cpu_only or (line.is_directed and directions is not None and not directions.devices):
        return (*_on_devices(line, "none", otherwise=("--gpu-layers", "0")), *fit_off)
    pins = _pins(line, directions) if directions is not None else ()
    if line.fixed_layers:
        return (*pins, "--gpu-layers", str(line.request.gpu_layers), *fit_off, *_by_hand(line))
    if directions is not None and directions.layers is not None:
        return (*pins, "--gpu-layers", str(directions.layers), *fit_off, *_directed(directions))
    return (*pins, "--fit", "on") if line.fit else pins


def _pins(line: LineInputs, directions: Directions) -> tuple[str, ...]:
    servers = ("--rpc", ",".join(directions.servers)) if directions.servers else ()
    return (*servers, *_on_devices(line, ",".join(directions.devices) or "none"))


def _on_devices(line: LineInputs, names: str, otherwise: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The devices by name; a build that knows no names can only be told by layers and by what it is shown."""
    return ("--device", names) if line.may_have("--device") else otherwise


def _directed(directions: Directions) -> Iterator[str]:
    if directions.experts:
        yield from ("--n-cpu-moe", str(directions.experts))
    if directions.tensor:
        yield from ("--split-mode", "tensor")
    if len(directions.shares) > 1:
        yield from ("--tensor-split", ",".join(map(str, directions.shares)))


def _by_hand(line: LineInputs) -> Iterator[str]:
    if line.directions is not None and line.directions.tensor:
        yield from ("--split-mode", "tensor")
    if line.cpu_moe is not None:
        yield from ("--n-cpu-moe", str(line.cpu_moe))
    if line.tensor_split:
        yield from ("--tensor-split", ",".join(f"{share:g}" for share in line.tensor_split))


def _slot_saving(line: LineInputs) -> tuple[str, ...]:
    """Row 10. An engine that moves idle slots into its prompt cache has nothing left in them to be saved, so
    it is told to leave them where they are."""
    if not line.slot_saving:
        return ()
    stays = _switch(line.caps.has(KEEP_IDLE_FLAG), KEEP_IDLE_FLAG)
    return (SLOT_SAVE_FLAG, SLOT_FOLDER, *stays)


def _fit_context(line: LineInputs) -> tuple[str, ...]:
    """Rows 12 and 12': an asked context is kept by moving layers, or the start fails; it never shrinks."""
    if not line.fit or not line.caps.has("--fit-ctx"):
        return ()
    asked = args.context(line.request.extra_args, line.request.n_ctx)
    if asked > 0 and line.context > 0:
        return ("--fit-ctx", str(line.context))
    if asked == 0:
        return ("--fit-ctx", str(LEAST_FITTED_CONTEXT))
    return ()


def _fit_target(line: LineInputs) -> tuple[str, ...]:
    wanted = line.fit and line.fitted_layers and line.caps.has("--fit-target")
    return ("--fit-target", str(MANUAL_FIT_MARGIN_MIB)) if wanted else ()


def _prompt_cache(line: LineInputs) -> tuple[str, ...]:
    limit_mib = line.directions.cache_ram_mib if line.directions is not None else None
    return () if limit_mib is None or not line.may_have("--cache-ram") else ("--cache-ram", str(limit_mib))


def _batch(request: ModelRequest) -> tuple[str, ...]:
    if (request.batch, request.ubatch) == ENGINE_BATCH:
        return ()
    return ("--batch-size", str(request.batch), "--ubatch-size", str(request.ubatch))


def _cache_types(line: LineInputs) -> tuple[str, ...]:
    k, v = line.cache_types
    return (*(("--cache-type-k", k) if k else ()), *(("--cache-type-v", v) if v else ()))


def _template_arguments(line: LineInputs) -> tuple[str, ...]:
    arguments = {**line.thinking, **line.request.template_kwargs}
    if not arguments:
        return ()
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return ("--chat-template-kwargs", text)


def _adapters(request: ModelRequest, caps: Capabilities) -> tuple[str, ...]:
    """Row 21a, in the form the help text shows: `path:scale,...` as one value, or path and scale as two."""
    if not request.adapters:
        return ()
    if caps.adapter_form is None:
        raise _adapters_refused("this engine does not list --lora-scaled.", "Use a newer llama-server.")
    pairs = [(str(path), f"{scale:g}") for path, scale in request.adapters]
    if caps.adapter_form == "pair":
        return tuple(token for path, scale in pairs for token in ("--lora-scaled", path, scale))
    for path, _ in pairs:
        if ":" in path:
            raise _adapters_refused(
                f"this engine cannot be given an adapter path with a colon: {path}.", "Rename the file."
            )
    return ("--lora-scaled", _csv_row([f"{path}:{scale}" for path, scale in pairs]))


def _csv_row(items: list[str]) -> str:
    """Comma list as the engine reads it: an item with a comma or a quote is quoted, inner quotes doubled."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(items)
    return row.getvalue()


def _adapters_refused(what: str, remedy: str) -> Refused:
    reason = Reason("adapters_unsupported", f"Adapters are not possible: {what}", remedy, "error")
    return Refused(Failure(reason))


def _verbosity(caps: Capabilities) -> tuple[str, ...]:
    """The offload verdict and the memory lines exist only at the level that the build calls trace (15 §7)."""
    flag = next((flag for flag in VERBOSITY_FLAGS if caps.has(flag)), None)
    return () if flag is None or caps.trace_level is None else (flag, str(caps.trace_level))
