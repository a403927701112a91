"""The console script `paddock`: which commands there are, and how any of them ends (00 §5).

A command's module is imported when it is run, so that `check` does not wait for a server's imports. Whatever
goes wrong is one line on stderr and an exit code; a trace is shown with PADDOCK_DEBUG=1 only.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from framework import __version__
from framework.commands.failure import BAD_INPUT, NOT_SO, OK, CommandFailed
from framework.commands.output import complain

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
    "events",
    "engines",
    "devices",
    "doctor",
)
INTERRUPTED = 130
DEBUG_VARIABLE = "PADDOCK_DEBUG"


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
    alone.command(name)(module.command)
    return typer.main.get_command(alone)


app = typer.Typer(cls=LazyCommands, name="paddock", add_completion=False, rich_markup_mode=None)


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


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code. Never raises."""
    try:
        command = typer.main.get_command(app)
        with command.make_context("paddock", list(arguments)) as context:
            code = command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except CommandFailed as failure:
        complain(str(failure))
        return failure.code
    except typer.TyperException as error:
        complain(_usage_text(error))
        return BAD_INPUT
    except BrokenPipeError:
        # The reader has seen enough, as in `paddock logs m | head`. Python must not flush into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        complain(
            f"a fault of paddock itself: {type(error).__name__}: {error} ({DEBUG_VARIABLE}=1 shows more)"
        )
        return NOT_SO
    return code if isinstance(code, int) else OK


def _usage_text(error: typer.TyperException) -> str:
    """What is wrong with a command line, and where to look."""
    text = getattr(error, "format_message", error.__str__)()
    return f"{text.rstrip('.?')}; see `paddock --help`." if not text.endswith("?") else text


def main() -> None:
    """Entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape instead of a fault.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(run(sys.argv[1:]))
