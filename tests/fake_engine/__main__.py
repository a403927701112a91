"""The program: read the script and the command line, start as the real build starts, go wrong as told."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.fake_engine.command_line import parse
from tests.fake_engine.engine import Engine
from tests.fake_engine.eras import ERAS, help_text
from tests.fake_engine.http import Server
from tests.fake_engine.script import Fault, Script, record
from tests.fake_engine.speculation import can_draft, types

STARTED_S = time.monotonic()
RECORDED_VARIABLES = ("LLAMA_", "PADDOCK_", "GGML_", "CUDA_", "LD_LIBRARY_PATH")
FOR_EVER_S = 3600.0
SECOND_SIGNAL_STATUS = 1
LATIN = "abcdefghijklmnopqrstuvwxyz "


def log(text: str, level: str = "I") -> None:
    """One line on stderr in the form of 15 §1: `<min>.<sec>.<ms>.<us> <level> <text>`."""
    micros = int((time.monotonic() - STARTED_S) * 1_000_000)
    seconds, rest = divmod(micros, 1_000_000)
    stamp = f"{seconds // 60}.{seconds % 60:02}.{rest // 1000:03}.{rest % 1000:03}"
    print(f"{stamp} {level} {text}", file=sys.stderr, flush=True)


def check_model(path: str) -> None:
    """End as the real loader ends when the file is missing or no GGUF (15 §7)."""
    try:
        with Path(path).open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        log(f"gguf_init_from_file: failed to open GGUF file '{path}' ({error.strerror})", "E")
    else:
        if magic == b"GGUF":
            return
        log(f"gguf_init_from_file_ptr: invalid magic characters: {magic!r}, expected 'GGUF'", "E")
    log(f"srv    load_model: failed to load model, '{path}'", "E")
    log("srv  llama_server: exiting due to model loading error", "E")
    raise SystemExit(1)


def print_startup(engine: Engine) -> None:
    """The lines of a healthy start up to the moment before the load ends, and what the script adds."""
    options, script = engine.options, engine.script
    log(f"srv    load_model: loading model '{options['--model']}'")
    if ERAS[script.era].trace_level in (None, options.get("--verbosity")):
        print_placement(options, script)
    for line in script.stderr:
        print(line, file=sys.stderr, flush=True)
    flood = (LATIN * (script.flood_line_bytes // len(LATIN) + 1))[: script.flood_line_bytes]
    for number in range(script.flood_lines):
        print(f"{number} {flood}", file=sys.stderr)
    unified = "true" if "--kv-unified" in options else "false"
    sizes = f"n_slots = {len(engine.slots)}, n_ctx_slot = {engine.slot_context}"
    log(f"srv    load_model: initializing, {sizes}, kv_unified = '{unified}'")


def print_placement(options: Mapping[str, str], script: Script) -> None:
    """Devices and buffers, as builds print them at the level of traces; an empty host has no rows (15 §7)."""
    seen = [] if script.lost_devices == "unseen" else list(script.devices)
    used = seen[0].partition(":")[0] if seen and script.lost_devices != "unused" else ""
    if options.get("--device") == "none" or options.get("--gpu-layers") == "0":
        used = ""
    log("cmn  common_param: device_info:")
    for device in seen:
        name, _, about = device.partition(": ")
        log(f"cmn  common_param:   - {name} : {about}")
    layers = "0" if options.get("--gpu-layers") == "0" else "31"
    log(f"load_tensors: offloaded {layers}/31 layers to GPU")
    if used and not script.card_mib:
        return
    if used:
        log(f"load_tensors:      {used} model buffer size = {script.card_mib:8.2f} MiB")
    log("load_tensors:   CPU_Mapped model buffer size =    92.10 MiB")
    log("llama_kv_cache:        CPU KV buffer size =    22.50 MiB")


def end_as_told(end: Script | Fault) -> None:
    """The scripted death."""
    if end.exit_signal is not None:
        os.kill(os.getpid(), signal.Signals[end.exit_signal])
    if end.exit_code is not None:
        os._exit(end.exit_code)


def meet(fault: Fault) -> None:
    """The last words of a fault, and its end."""
    time.sleep(fault.after_s)
    for line in fault.stderr:
        print(line, file=sys.stderr, flush=True)
    end_as_told(fault)


def leave_grandchild(listener: asyncio.Server) -> None:
    """A process that outlives us and keeps the port and the output pipe open."""
    sockets = tuple(socket.fileno() for socket in listener.sockets)
    for number in sockets:
        os.set_inheritable(number, True)
    subprocess.Popen(["sleep", str(FOR_EVER_S)], pass_fds=sockets)


def go_deaf(script: Script) -> None:
    """Nothing is answered any more, and no signal heard that could be answered."""
    while script.works_deaf:
        continue
    time.sleep(FOR_EVER_S)


async def load(engine: Engine) -> None:
    """Until the model is there: 503."""
    await asyncio.sleep(FOR_EVER_S if engine.script.load_s < 0 else engine.script.load_s)
    engine.ready = True
    log("srv  llama_server: model loaded")
    log(f"srv  llama_server: listening on http://{engine.options['--host']}:{engine.options['--port']}")


async def run(engine: Engine, server: Server, fault: Fault | None, *, faulty: bool) -> int:
    """Serve until a signal; returns the exit status (15 §8)."""
    loop, script = asyncio.get_running_loop(), engine.script
    stop = asyncio.Event()
    host, port = engine.options["--host"], int(engine.options["--port"])
    try:
        listener = await asyncio.start_server(server.serve, host, port)
    except OSError:
        log(f"srv         start: couldn't bind HTTP server socket, hostname: {host}, port: {port}", "E")
        log("srv  llama_server: exiting due to HTTP server error", "E")
        return 1
    check_model(engine.options["--model"])
    print_startup(engine)
    if fault is not None and fault.at_request == 0:
        meet(fault)
    engine.can_draft = can_draft(engine.options, script, log)
    if script.grandchild:
        leave_grandchild(listener)
    if faulty:
        loop.call_later(script.exit_after_s, end_as_told, script)
    if script.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    await load(engine)
    if faulty and script.goes_deaf_after_s >= 0:
        loop.call_later(script.goes_deaf_after_s, go_deaf, script)
    if not script.ignore_sigterm:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, partial(on_signal, stop))
    await stop.wait()
    listener.close()
    while server.active:
        await asyncio.sleep(0.01)
    log("srv    operator(): operator(): cleaning up before exit...")
    return 0


def on_signal(stop: asyncio.Event) -> None:
    """The first signal waits for open requests, the second does not."""
    if stop.is_set():
        log("Received second interrupt, terminating immediately.", "W")
        os._exit(SECOND_SIGNAL_STATUS)
    stop.set()


def informational(argv: list[str], script: Script) -> int | None:
    """Answer `--help`, `--version` and `--list-devices`; None when the line asks for none of them."""
    if "--version" in argv:
        print(script.version or ERAS[script.era].version, file=sys.stderr)
        return 0
    if "--help" in argv or "-h" in argv:
        if script.help == "hangs":
            time.sleep(FOR_EVER_S)
        print("" if script.help == "empty" else help_text(script.era))
        return int(script.help == "fails")
    if "--list-devices" in argv:
        print("\n".join(["Available devices:", *(f"  {device}" for device in script.devices)]))
        return 0
    return None


def main(argv: list[str], environ: Mapping[str, str]) -> int:
    """One start. The exit status is the real build's."""
    script = Script.read(environ)
    if (status := informational(argv, script)) is not None:
        return status
    variables = {name: value for name, value in environ.items() if name.startswith(RECORDED_VARIABLES)}
    starts = record("starts", {"pid": os.getpid(), "argv": argv, "environment": variables})
    faulty = script.faulty_starts is None or starts <= script.faulty_starts
    defaults = {"--host": "127.0.0.1", "--port": "8080"}
    options = defaults | parse(argv, script.era, script.reject_flags)
    types(options, script.era)
    if faulty and script.exit_after_s == 0 and (script.exit_signal or script.exit_code is not None):
        for line in script.stderr:
            print(line, file=sys.stderr, flush=True)
        end_as_told(script)
    keys = {environ.get("LLAMA_API_KEY", ""), *options.get("--api-key", "").split(",")} - {""}
    engine = Engine(script, options)
    fault = next((one for one in script.faults if faulty and one.applies(argv, environ)), None)
    server = Server(engine, frozenset(keys), partial(at_request, fault))
    return asyncio.run(run(engine, server, fault, faulty=faulty))


def at_request(fault: Fault | None, number: int) -> None:
    """Meet a fault whose time has come."""
    if fault is not None and fault.at_request == number:
        meet(fault)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
