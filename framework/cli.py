"""The console script `paddock`: which commands there are, and how any of them ends (00 §5).

A command's module is imported when it is run, so that `check` does not wait for a server's imports. Whatever
goes wrong is one line on stderr and an exit code; a trace is shown with PADDOCK_DEBUG=1 only.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from framework import __version__
from framework.commands.failure import BAD_INPUT, NOT_SO, OK, BadUsage, CommandFailed
from framework.commands.output import complain
from framework.standard_streams import discard
from framework.values.process import DEBUG_VARIABLE, INTERRUPTED

COMMANDS = (
    "up",
    "check",
    "plan",
    "inspect",
    "pull",
    "diff",
    "status",
    "logs",
    "load",
    "unload",
    "reload",
    "replan",
    "events",
    "engines",
    "devices",
    "doctor",
    "key",
    "bench",
)
HELP = "help"
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
# What a write to a stream fails with; errors about files name the file.
CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class LazyCommands(TyperGroup):
    """The group of all commands, each built from its module when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or None for an unknown name."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As its base, which knows no names to suggest for an unknown one."""
        near = difflib.get_close_matches(args[0], COMMANDS, 1)
        if args[0] not in COMMANDS and near:
            ctx.fail(f"there is no command {args[0]!r}; did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


def load_command(name: str) -> Any:
    """Import a command's module and build the command of its function `command`."""
    module = importlib.import_module(f"framework.commands.{name}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, context_settings=HELP_OPTIONS)(module.command)
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=LazyCommands,
    name="paddock",
    add_completion=False,
    rich_markup_mode=None,
    context_settings=HELP_OPTIONS,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"paddock {__version__}")
        raise typer.Exit(OK)


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
]


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context, version: VersionOption = False) -> int | None:
    """Serve many GGUF models from one declarative file."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        return BAD_INPUT
    return None


def import_command(arguments: list[str]) -> None:
    """Import what a command line needs; what goes wrong comes up again in `run`, which tells."""
    if arguments and arguments[0] in COMMANDS:
        with suppress(Exception):
            importlib.import_module(f"framework.commands.{arguments[0]}")


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code. Never raises."""
    code = OK
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except BadUsage as failure:
        complain(_with_help(str(failure), arguments))
        return failure.code
    except CommandFailed as failure:
        complain(str(failure))
        return failure.code
    except typer.TyperException as error:
        complain(_with_help(getattr(error, "format_message", error.__str__)(), arguments))
        return BAD_INPUT
    except BrokenPipeError:
        # The reader has seen enough, as in `paddock logs m | head`; what was asked may be so or not.
        discard(sys.stdout)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in CANNOT_WRITE:
            discard(sys.stdout)
            complain(f"The output cannot be written: {error.strerror}.")
            return NOT_SO
        if os.environ.get(DEBUG_VARIABLE):
            raise
        fault = f"{type(error).__name__}: {error}"
        complain(f"a fault of paddock itself: {fault} ({DEBUG_VARIABLE}=1 shows more)")
        return NOT_SO
    return code


def _invoke(arguments: list[str]) -> int:
    """Let the command do its work; its exit code."""
    if arguments[:1] == [HELP]:
        arguments = [*arguments[1:2], "--help"]
    try:
        command = typer.main.get_command(app)
        with command.make_context("paddock", list(arguments)) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return code if isinstance(code, int) else OK


def _with_help(text: str, arguments: Sequence[str]) -> str:
    """What is wrong with a command line, and where to look: at the help of its command."""
    if text.endswith("?"):
        return text
    named = [word for word in arguments[:1] if word in COMMANDS]
    return f"{text.rstrip('.?')}; see `{' '.join(['paddock', *named])} --help`."
