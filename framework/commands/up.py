"""`paddock up`: run everything in the foreground until it is told to end (00 §5)."""

from __future__ import annotations

from typing import Annotated

import typer

from framework.app import ManifestBroken, serve
from framework.commands.context import manifest_path, read_settings
from framework.commands.failure import BAD_INPUT, NOT_SO, CommandFailed
from framework.commands.local import broken_manifest
from framework.commands.options import ManifestOption
from framework.listener import ListenerTaken
from framework.proxy.limits import LimitError
from framework.state_dir import StateDirError
from framework.tls import TlsFault

ListenOption = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Instead of server.listen of the manifest."),
]
StateDirOption = Annotated[
    str | None,
    typer.Option("--state-dir", metavar="PATH", help="Instead of server.state_dir of the manifest."),
]


def command(
    manifest: ManifestOption = None, listen: ListenOption = None, state_dir: StateDirOption = None
) -> int:
    """Run everything in the foreground until Ctrl-C."""
    settings = read_settings()
    overrides = settings.overrides({"listen": listen, "state_dir": state_dir})
    try:
        return serve(manifest_path(settings, manifest), overrides)
    except ManifestBroken as error:
        raise broken_manifest(error.loaded.problems) from error
    except LimitError as error:
        raise CommandFailed(BAD_INPUT, str(error)) from error
    except (ListenerTaken, StateDirError, TlsFault) as error:
        raise CommandFailed(NOT_SO, str(error)) from error
